"""Completes deliveries that owners of logs send to consumers of this node.

What this node stored itself comes as its number: it is cached here (append_notices), or read from the store if it was
evicted meanwhile. Until the store has answered, all that the same owner sends waits, so that the order is kept; it
counts as sent a moment later. If the log has another owner by then, or the link is another one, it was never sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.core.ports import BrokerContext
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.delivery.append_notices import AppendNotices
from brokerapp.nodes.delivery.outbound_deliveries import OutboundDeliveries
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType, unpack_entry
from brokerapp.store import StoredLogEntry

#: Messages read at once: as many as are sent in one message to another node. One delivery more may go beyond it.
READ_SIZE = 500


@dataclass(slots=True)
class RemoteDelivery:
    """Entries of a log for the consumer with this key, or the numbers of those that are not read yet."""

    key: int
    log: str
    entries: list[LogEntry | int]

    @property
    def missing(self) -> list[int]:
        """The numbers of entries that are not read yet."""
        return [each for each in self.entries if isinstance(each, int)]

    @property
    def found(self) -> list[LogEntry]:
        """The entries that are at hand."""
        return [each for each in self.entries if isinstance(each, LogEntry)]


class RemoteDeliveries(NodeObserver):
    """Deliveries of other owners, of which some entries have to be read from the store."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        append_notices: AppendNotices,
        deliveries: OutboundDeliveries,
        request_dispatch: Callable[[], None],
    ) -> None:
        self._commits, self._peers, self._append_notices = context.commits, peers, append_notices
        self._deliveries, self._request_dispatch = deliveries, request_dispatch
        self._pending: dict[str, deque[RemoteDelivery]] = {}  # by session, what waits for the store or behind that

    def on_delivery(self, session: str, key: int, name: str, packed: list[Any]) -> None:
        """Take a delivery from the owner of a log."""
        take = self._append_notices.take_cached
        entries = [(take(name, each) or each) if isinstance(each, int) else unpack_entry(name, each) for each in packed]
        delivery, pending = RemoteDelivery(key, name, entries), self._pending.get(session)
        if pending is not None:
            pending.append(delivery)
        elif delivery.missing:
            self._pending[session] = deque((delivery,))
            self._read_missing(session)
        else:
            self._deliveries.on_delivery(session, key, name, delivery.found)

    def _read_missing(self, session: str) -> None:
        """Read what is missing of the next delivery, and of those behind it from the same log."""
        pending = self._pending[session]
        first, batch = pending[0], _of_one_log(pending)

        def on_read(stored: list[StoredLogEntry]) -> None:
            if self._pending.get(session) is not pending or not pending or pending[0] is not first:
                return  # it was never sent
            by_number = {each.seq: log_entry_of(first.log, each) for each in stored}
            for delivery in batch:
                self._fill_in(session, delivery, by_number)
            self._deliver_complete(session, pending)

        missing = [number for each in batch for number in each.missing]
        self._commits.read_with(lambda store: store.entries.read_by_seq(first.log, missing), on_read, first.log)

    def _fill_in(self, session: str, delivery: RemoteDelivery, found: Mapping[int, LogEntry]) -> None:
        """Insert what was read. What the store does not have any more is settled, so that others may be sent."""
        delivery.entries = [found.get(each, each) if isinstance(each, int) else each for each in delivery.entries]
        if gone := delivery.missing:
            self._peers.send(session, PeerMessageType.SETTLED, delivery.log, None, gone)
            self._peers.send(session, PeerMessageType.CREDIT, delivery.key, len(gone))
            delivery.entries = list(delivery.found)

    def _deliver_complete(self, session: str, pending: deque[RemoteDelivery]) -> None:
        """Deliver, in order, what is complete."""
        while pending and not pending[0].missing:
            delivery = pending.popleft()
            if delivery.entries:
                self._deliveries.on_delivery(session, delivery.key, delivery.log, delivery.found)
        if pending:
            self._read_missing(session)
        else:
            del self._pending[session]
        self._request_dispatch()

    def on_members_changed(self) -> None:
        """Drop deliveries from logs that have another owner now: that one sends them."""
        for session, pending in list(self._pending.items()):
            kept = deque(each for each in pending if self._peers.owner_of(each.log) == session)
            self._pending[session] = kept
            if kept:
                self._read_missing(session)
            else:
                del self._pending[session]

    def on_link_down(self, session: str) -> None:
        """Drop deliveries of a node: it finds by itself what nobody has got."""
        self._pending.pop(session, None)


def _of_one_log(pending: Iterable[RemoteDelivery]) -> list[RemoteDelivery]:
    """Return the first delivery, and those behind it from the same log, as many as are read at once."""
    found: list[RemoteDelivery] = []
    count = 0
    for each in pending:
        if each.log == (found[0].log if found else each.log) and count < READ_SIZE:
            found.append(each)
            count += len(each.missing)
    return found
