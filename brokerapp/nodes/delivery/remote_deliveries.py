"""Gifts: what homes give to consumers of ours. A part of Homes.

What this node stored itself comes as its number: it is kept here (deposits.py), or read from the store when it was
forgotten meanwhile. Until that has answered all that the same home gives waits, so that order is kept; nobody has it,
and it counts as told of a moment later. If its home, or the link with it, is another one by then, it was never said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brokerapp.engine.entries.entry_factory import entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.links.protocol import Word, unpacked
from brokerapp.store import StoredLogEntry

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker
    from brokerapp.nodes.ownership.coordinator import Homes


#: Messages read at once: as many as are given in one word. One gift more may go beyond it.
NUMBERS_AT_ONCE = 500


@dataclass(slots=True)
class Gift:
    """Entries of a log for the consumer of this key, or the numbers of those that are not found yet."""

    key: int
    log: str
    entries: list[LogEntry | int]


class Gifts:
    """Those that one node gets."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._late: dict[str, deque[Gift]] = {}  # session of the home -> what waits for the store, or behind that

    def given(self, session: str, key: int, name: str, packed: list[Any]) -> None:
        """A home gives us these."""
        take = self._homes.deposits.take
        entries = [(take(name, each) or each) if isinstance(each, int) else unpacked(name, each) for each in packed]
        gift, late = Gift(key, name, entries), self._late.get(session)
        if late is not None:
            late.append(gift)
        elif _missing(gift):
            self._late[session] = deque((gift,))
            self._find(session)
        else:
            self._homes.abroad.given(session, key, name, entries)

    def _find(self, session: str) -> None:
        """Read what is missing of the next gift, and of those behind it of the same log."""
        waiting = self._late[session]
        first, sought = waiting[0], _of_one_log(waiting)

        def found(stored: list[StoredLogEntry]) -> None:
            if self._late.get(session) is not waiting or not waiting or waiting[0] is not first:
                return  # it was never said
            by_number = {each.seq: entry_of(first.log, each) for each in stored}
            for gift in sought:
                self._fill(session, gift, by_number)
            self._hand_over(session, waiting)

        missing = [number for each in sought for number in _missing(each)]
        self._broker.commits.ask(lambda store: store.entries.read_by_seq(first.log, missing), found)

    def _fill(self, session: str, gift: Gift, found: Mapping[int, LogEntry]) -> None:
        """These were missing. What the store has no more is held by nobody: others may be given in its place."""
        gift.entries = [found.get(each, each) if isinstance(each, int) else each for each in gift.entries]
        if gone := _missing(gift):
            self._homes.tell(session, Word.SETTLED, gift.log, None, gone)
            self._homes.tell(session, Word.CREDIT, gift.key, len(gone))
            gift.entries = [each for each in gift.entries if isinstance(each, LogEntry)]

    def _hand_over(self, session: str, waiting: deque[Gift]) -> None:
        """Give what is complete to whom it is for, in order."""
        while waiting and not _missing(waiting[0]):
            gift = waiting.popleft()
            if gift.entries:
                self._homes.abroad.given(session, gift.key, gift.log, gift.entries)
        if waiting:
            self._find(session)
        else:
            del self._late[session]
        self._homes.pump()

    def moved(self) -> None:
        """The members are others: what a node gave whose log is at home elsewhere now, the new home gives."""
        for session, waiting in list(self._late.items()):
            kept = deque(each for each in waiting if self._homes.home(each.log) == session)
            self._late[session] = kept
            if kept:
                self._find(session)
            else:
                del self._late[session]

    def unlinked(self, session: str) -> None:
        """A node hears us no longer: what it gave and nobody has, it finds again by itself."""
        self._late.pop(session, None)


def _of_one_log(waiting: Iterable[Gift]) -> list[Gift]:
    """The first of these, and those behind it of the same log, as many as are read at once."""
    found, numbers, log = [], 0, next(iter(waiting)).log
    for each in waiting:
        if each.log == log and numbers < NUMBERS_AT_ONCE:
            found.append(each)
            numbers += len(_missing(each))
    return found


def _missing(gift: Gift) -> list[int]:
    return [each for each in gift.entries if isinstance(each, int)]
