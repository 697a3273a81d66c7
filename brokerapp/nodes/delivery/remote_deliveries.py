"""Takes deliveries that owners of logs send to consumers of this node.

What this node stored itself comes as its number: it is kept here (append_notices), or read from the store when it was
forgotten meanwhile. Until that has answered all that the same home gives waits, so that order is kept; nobody has it,
and it counts as told of a moment later. If its home, or the link with it, is another one by then, it was never said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.links.protocol import PeerMessageType, unpack_entry
from brokerapp.store import StoredLogEntry

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership


#: Messages read at once: as many as are given in one word. One gift more may go beyond it.
READ_SIZE = 500


@dataclass(slots=True)
class RemoteDelivery:
    """Entries of a log for the consumer of this key, or the numbers of those that are not found yet."""

    key: int
    log: str
    entries: list[LogEntry | int]


class RemoteDeliveries:
    """Takes deliveries sent here by the nodes that own the logs."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._pending: dict[
            str, deque[RemoteDelivery]
        ] = {}  # session of the home -> what waits for the store, or behind that

    def on_delivery(self, session: str, key: int, name: str, packed: list[Any]) -> None:
        """A home gives us these."""
        take = self._ownership.append_notices.take_cached
        entries = [(take(name, each) or each) if isinstance(each, int) else unpack_entry(name, each) for each in packed]
        gift, late = RemoteDelivery(key, name, entries), self._pending.get(session)
        if late is not None:
            late.append(gift)
        elif _missing(gift):
            self._pending[session] = deque((gift,))
            self._read_missing(session)
        else:
            self._ownership.outbound_consumers.on_delivery(session, key, name, entries)

    def _read_missing(self, session: str) -> None:
        """Read what is missing of the next gift, and of those behind it of the same log."""
        waiting = self._pending[session]
        first, sought = waiting[0], _of_one_log(waiting)

        def found(stored: list[StoredLogEntry]) -> None:
            if self._pending.get(session) is not waiting or not waiting or waiting[0] is not first:
                return  # it was never said
            by_number = {each.seq: log_entry_of(first.log, each) for each in stored}
            for gift in sought:
                self._fill_in(session, gift, by_number)
            self._deliver_complete(session, waiting)

        missing = [number for each in sought for number in _missing(each)]
        self._broker.commits.read_with(lambda store: store.entries.read_by_seq(first.log, missing), found)

    def _fill_in(self, session: str, gift: RemoteDelivery, found: Mapping[int, LogEntry]) -> None:
        """These were missing. What the store has no more is held by nobody: others may be given in its place."""
        gift.entries = [found.get(each, each) if isinstance(each, int) else each for each in gift.entries]
        if gone := _missing(gift):
            self._ownership.send(session, PeerMessageType.SETTLED, gift.log, None, gone)
            self._ownership.send(session, PeerMessageType.CREDIT, gift.key, len(gone))
            gift.entries = [each for each in gift.entries if isinstance(each, LogEntry)]

    def _deliver_complete(self, session: str, waiting: deque[RemoteDelivery]) -> None:
        """Give what is complete to whom it is for, in order."""
        while waiting and not _missing(waiting[0]):
            gift = waiting.popleft()
            if gift.entries:
                self._ownership.outbound_consumers.on_delivery(session, gift.key, gift.log, gift.entries)
        if waiting:
            self._read_missing(session)
        else:
            del self._pending[session]
        self._ownership.request_dispatch()

    def on_members_changed(self) -> None:
        """The members are others: what a node gave whose log is at home elsewhere now, the new home gives."""
        for session, waiting in list(self._pending.items()):
            kept = deque(each for each in waiting if self._ownership.owner_of(each.log) == session)
            self._pending[session] = kept
            if kept:
                self._read_missing(session)
            else:
                del self._pending[session]

    def on_link_down(self, session: str) -> None:
        """A node hears us no longer: what it gave and nobody has, it finds again by itself."""
        self._pending.pop(session, None)


def _of_one_log(waiting: Iterable[RemoteDelivery]) -> list[RemoteDelivery]:
    """The first of these, and those behind it of the same log, as many as are read at once."""
    found, numbers, log = [], 0, next(iter(waiting)).log
    for each in waiting:
        if each.log == log and numbers < READ_SIZE:
            found.append(each)
            numbers += len(_missing(each))
    return found


def _missing(gift: RemoteDelivery) -> list[int]:
    return [each for each in gift.entries if isinstance(each, int)]
