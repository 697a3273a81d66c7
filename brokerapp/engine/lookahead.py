"""Lookahead: a page of a log's messages past the window, for consumers that find nothing in the window.

A window full of messages nobody able wants must not keep others from theirs, however many lie before those. So a log
reads on past its window, page by page, for consumers who want none of it; each remembers how far it has looked
(`Subscription.tested`), so that a page is shown to those alone who have seen everything before it. One page is in
memory at a time; what is not taken of it stays in the store, as if nobody had looked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerapp.engine.choosing import Choosing
    from brokerapp.engine.entry import Entry
    from brokerapp.engine.subscription import Subscription

#: Messages, and bytes of them, that a page at the end of a log grows to with what is published meanwhile.
MAX_PAGE = 2_000
MAX_PAGE_BYTES = 8 * 1024 * 1024


class Lookahead:
    """The page, and which messages past the window are in flight."""

    __slots__ = ("_bytes", "_entries", "_leaving", "after", "at_end", "taken", "upto")

    def __init__(self) -> None:
        self.taken: set[int] = set()  #: in flight past the window: to be passed over when it gets there
        self._leaving: list[int] = []  # of them, settled while a page is being read that may still hold them
        self.forget()

    def forget(self) -> None:
        """Have no page."""
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self.after = self.upto = 0  #: the page holds what is left between these numbers
        self.at_end = False  #: nothing is stored behind it

    def __bool__(self) -> bool:
        return self.upto > self.after

    def reset(self) -> None:
        """Nothing is in flight, and nobody looks."""
        self.forget()
        self.taken.clear()
        self._leaving.clear()

    def put(self, entries: Iterable[Entry], after: int, upto: int | None) -> None:
        """The page behind the number `after`, up to `upto`; None at the end of the log."""
        self._entries = deque(entries)
        self._bytes = sum(entry.size for entry in self._entries)
        self.after, self.upto, self.at_end = after, after if upto is None else upto, upto is None

    def append(self, entry: Entry) -> None:
        """A message was stored: it is part of a page at the end of the log while there is room."""
        if not self.at_end:
            return
        if len(self._entries) >= MAX_PAGE or self._bytes >= MAX_PAGE_BYTES:
            self.at_end = False
            return
        self._entries.append(entry)
        self._bytes += entry.size
        self.upto = entry.seq

    def give(self, choosing: Choosing) -> int:
        """Offer the page to those who have seen all that is before it; how many messages were taken."""
        given = choosing.offer(self._entries, self.upto, self.after)
        self._bytes -= sum(entry.size for entry in given)
        self.taken.update(entry.seq for entry in given)
        return len(given)

    def wanted_after(self, hungry: Iterable[Subscription], log: str, loaded: int) -> int | None:
        """The number to read on from for consumers who may be given more; None when all of them have seen all."""
        seen = [max(consumer.tested.get(log, 0), loaded) for consumer in hungry]
        if not seen or (self.at_end and min(seen) >= self.upto):
            return None
        return min(seen)

    # -- the window comes on, messages leave

    def pass_over(self, entries: Iterable[Entry]) -> list[Entry]:
        """What the window may hold of messages that were read."""
        return [entry for entry in entries if entry.seq not in self.taken] if self.taken else list(entries)

    def loaded(self, upto: int) -> None:
        """The window reaches to this number: what lies before is its own."""
        while self._entries and self._entries[0].seq <= upto:
            self._bytes -= self._entries.popleft().size
        self.taken = {seq for seq in self.taken if seq > upto}

    def read(self) -> None:
        """A page was read: what was settled meanwhile cannot come again."""
        self.taken.difference_update(self._leaving)
        self._leaving.clear()

    def settled(self, seq: int, reading: bool) -> None:
        """A message in flight is gone."""
        if reading:
            self._leaving.append(seq)
        else:
            self.taken.discard(seq)

    def take_out(self, gone: set[int]) -> None:
        """These messages are no more."""
        self.taken -= gone
        self._entries = deque(entry for entry in self._entries if entry.seq not in gone)
        self._bytes = sum(entry.size for entry in self._entries)
