"""Hold messages at the end of a log while those before them still have to be read.

Where several nodes write, something may always be on its way that is not known here yet. What comes behind it is kept,
and joins the page that reaches it: else a log that had to read once would read on as long as more comes.
"""

from __future__ import annotations

from collections.abc import Sequence

from brokerapp.engine.entries.log_entry import LogEntry


class OutOfOrderTail:
    """That of one log: nothing stands between its messages, by what stood before each when it was stored."""

    __slots__ = ("_before", "_bytes", "_entries", "_max_bytes", "_max_entries")

    def __init__(self, most: int, most_bytes: int) -> None:
        """It holds so many, of so many bytes: with more it begins anew."""
        self._max_entries, self._max_bytes = most, most_bytes
        self.clear()

    def clear(self) -> None:
        """Discard all entries that are held."""
        self._entries: list[LogEntry] = []
        self._before = self._bytes = 0

    def add(self, entries: Sequence[LogEntry], before: int | None) -> None:
        """These came, one after the other; `before` stood last then, as far as it is known."""
        if before is None:
            return
        if not self._entries or before > self._entries[-1].seq:
            self.clear()
            self._before = before
        elif entries[0].seq <= self._entries[-1].seq:  # told of late, by another node: it stands before all of these
            return
        self._entries += entries
        self._bytes += sum([entry.size for entry in entries])
        if len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self.clear()

    def take_after(self, number: int) -> list[LogEntry]:
        """Remove and return the entries after a number up to which the log was read."""
        if not self._entries or self._before > number:
            return []
        found = [entry for entry in self._entries if entry.seq > number]
        self.clear()
        return found
