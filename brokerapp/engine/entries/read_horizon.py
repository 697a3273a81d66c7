"""Track how far a log in the store is known, while it is read and others append to it.

What another node stored can be read before that node tells of it, and what comes while a page is being read may be in
that page or behind it. Numbers tell which: they only grow, and a page has all up to its last one.
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.engine.entries.log_entry import UNCOMMITTED

#: A number above all that are known.
UNKNOWN_SEQ = UNCOMMITTED


class ReadHorizon:
    """Track up to which number one log is known to reach in the store."""

    __slots__ = ("arrived_up_to", "arrived_while_reading", "counted_up_to", "highest_seq")

    def __init__(self) -> None:
        self.highest_seq = 0  #: the highest number that was read, offered or told of: what comes above it is new here
        self.counted_up_to = 0  #: up to this number all was counted when the log was taken: who tells of it is late
        self.arrived_while_reading = 0  #: messages that came while a page was being read, which may not hold them
        self.arrived_up_to = 0  #: the highest number of those

    def is_new(self, number: int) -> bool:
        """Whether it can neither have been read nor counted."""
        return number > self.highest_seq and number > self.counted_up_to

    def note_seq(self, number: int) -> None:
        """Note that the message with this number is known."""
        if number > self.highest_seq:
            self.highest_seq = number

    def note_seqs(self, numbers: Iterable[int]) -> None:
        """Note that the messages with these numbers are known."""
        self.note_seq(max(numbers, default=0))

    def note_arrivals(self, count: int, upto: int, *, reading: bool) -> None:
        """So many came, with numbers up to this one, perhaps while a page is being read."""
        if upto < UNKNOWN_SEQ:
            self.note_seq(upto)
        if reading:
            self.arrived_while_reading, self.arrived_up_to = (
                self.arrived_while_reading + count,
                max(self.arrived_up_to, upto),
            )

    def unread_after(self, loaded: int) -> int:
        """Return at most how many messages arrived that are not in a page that ended at this number."""
        return self.arrived_while_reading if self.arrived_up_to > loaded else 0

    def on_page_read(self) -> None:
        """The page is there: what comes from now on is not in it."""
        self.arrived_while_reading = self.arrived_up_to = 0
