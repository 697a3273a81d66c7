"""Hold a page of a log's messages past its window, for consumers that find nothing in the window.

A window full of messages nobody able wants must not keep others from theirs, however many lie before those. So a log
reads on past its window, page by page, for consumers who want none of it; each remembers how far it has looked
(`Subscription.scanned_up_to`), so that a page is shown to those alone who have seen everything before it. One page is
in memory at a time; what is not taken of it stays in the store, as if nobody had looked.

Beside the page it knows which messages past the window are in flight, and of a prioritized log all that are: there the
window may end before them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from brokerapp.engine.entries.message_order import OrderedMessage, OrderKey, order_key_for

if TYPE_CHECKING:
    from brokerapp.engine.dispatch.selective_dispatch import SelectiveDispatch
    from brokerapp.engine.dispatch.subscription import Subscription
    from brokerapp.engine.entries.log_entry import LogEntry

#: Messages, and bytes of them, that a page at the end of a log grows to with what is published meanwhile.
MAX_PAGE = 2_000
MAX_PAGE_BYTES = 8 * 1024 * 1024


class Lookahead:
    """Hold one page of a log past its window, and know which messages there are in flight."""

    __slots__ = (
        "_bytes",
        "_entries",
        "_in_flight_up_to",
        "_knows_all_in_flight",
        "_not_in_flight",
        "_order_key",
        "_settled_while_reading",
        "after",
        "in_flight_seqs",
        "reaches_end",
        "upto",
    )  # fmt: skip

    def __init__(self, prioritized: bool = False) -> None:
        self.in_flight_seqs: set[int] = set()  #: in flight past the window: to be passed over when it gets there
        self._settled_while_reading: list[
            int
        ] = []  # of them, settled while a page is being read that may still hold them
        self._in_flight_up_to = 0  # up to this number all are in flight, too, or gone
        self._not_in_flight: set[int] = set()  # but for these
        self._order_key: OrderKey = order_key_for(prioritized)
        self._knows_all_in_flight = prioritized  # whether all that are in flight are known
        self.discard_page()

    def discard_page(self) -> None:
        """Discard the page that is held past the window."""
        self._entries: deque[LogEntry] = deque()
        self._bytes = 0
        self.after = self.upto = 0  #: the page holds what is left between these places
        self.reaches_end = False  #: nothing is stored behind it

    def __bool__(self) -> bool:
        return self.upto > self.after

    def reset(self) -> None:
        """Forget the page and what is in flight."""
        self.discard_page()
        self.in_flight_seqs.clear()
        self._settled_while_reading.clear()
        self._in_flight_up_to = 0
        self._not_in_flight.clear()

    def reorder(self, prioritized: bool, loaded: int, waiting: Iterable[int]) -> None:
        """Sort by other positions from now on. The window reached to `loaded` and held those that are `waiting`."""
        if prioritized:
            self._not_in_flight = {*waiting, *(seq for seq in self._not_in_flight if seq > loaded)}
            self._in_flight_up_to = max(self._in_flight_up_to, loaded)
        self._order_key, self._knows_all_in_flight = order_key_for(prioritized), prioritized
        self.discard_page()

    def set_page(self, entries: Iterable[LogEntry], after: int, upto: int | None) -> None:
        """Hold the page after the position `after`, up to `upto`; None at the end of the log."""
        self._entries = deque(entries)
        self._bytes = sum(entry.size for entry in self._entries)
        self.after, self.upto, self.reaches_end = after, after if upto is None else upto, upto is None

    def append(self, entry: LogEntry) -> None:
        """Add a stored message to a page at the end of the log, while there is room."""
        if not self.reaches_end:
            return
        if len(self._entries) >= MAX_PAGE or self._bytes >= MAX_PAGE_BYTES:
            self.reaches_end = False
            return
        self._entries.append(entry)
        self._bytes += entry.size
        self.upto = self._order_key(entry)

    def offer_to(self, choosing: SelectiveDispatch) -> int:
        """Offer the page to those who have seen all that is before it; how many messages were taken."""
        assigned = choosing.offer(self._entries, self.upto, self.after)
        self._bytes -= sum(entry.size for entry in assigned)
        self.in_flight_seqs.update(entry.seq for entry in assigned)
        return len(assigned)

    def next_position(self, consumers: Iterable[Subscription], log: str, loaded: int) -> int | None:
        """Return the position to read on from for consumers with credit; None when all have seen all."""
        seen = [max(consumer.scanned_up_to.get(log, 0), loaded) for consumer in consumers]
        if not seen or (self.reaches_end and min(seen) >= self.upto):
            return None
        return min(seen)

    # -- the window comes on, messages leave

    def is_in_flight(self, seq: int) -> bool:
        """Return whether a stored message past the window is in flight."""
        return seq in self.in_flight_seqs or (seq <= self._in_flight_up_to and seq not in self._not_in_flight)

    def exclude_in_flight(self, entries: Iterable[LogEntry]) -> list[LogEntry]:
        """Return the messages that are not in flight."""
        if not (self.in_flight_seqs or self._in_flight_up_to):
            return list(entries)
        return [entry for entry in entries if not self.is_in_flight(entry.seq)]

    def advance_to(self, upto: int) -> None:
        """Leave all up to this position to the window."""
        while self._entries and self._order_key(self._entries[0]) <= upto:
            self._bytes -= self._entries.popleft().size
        if not self._knows_all_in_flight:
            self.in_flight_seqs = {seq for seq in self.in_flight_seqs if seq > upto}

    def note_inserted(self, place: int) -> None:
        """Note that a message of a prioritized log was stored at this position, past the window."""
        if self.after < place <= self.upto:
            self.discard_page()
        self.reaches_end = False

    def mark_in_flight(self, entries: Iterable[OrderedMessage]) -> None:
        """Note that these messages of the window are in flight."""
        if self._knows_all_in_flight:
            self.in_flight_seqs.update(entry.seq for entry in entries)

    def unmark_in_flight(self, entries: Iterable[LogEntry]) -> None:
        """Note that these messages are not in flight any more, but wait."""
        if self.in_flight_seqs:
            self.in_flight_seqs.difference_update(entry.seq for entry in entries)
        if self._in_flight_up_to:
            self._not_in_flight.update(entry.seq for entry in entries if entry.seq <= self._in_flight_up_to)

    def on_page_read(self) -> None:
        """Forget what was settled while the page was read."""
        self.in_flight_seqs.difference_update(self._settled_while_reading)
        self._settled_while_reading.clear()

    def remove_settled(self, seq: int, reading: bool) -> None:
        """Note that a message in flight was settled."""
        if reading:
            self._settled_while_reading.append(seq)
        else:
            self.in_flight_seqs.discard(seq)

    def remove(self, gone: set[int]) -> None:
        """Remove these messages from the page."""
        self.in_flight_seqs -= gone
        self._entries = deque(entry for entry in self._entries if entry.seq not in gone)
        self._bytes = sum(entry.size for entry in self._entries)
