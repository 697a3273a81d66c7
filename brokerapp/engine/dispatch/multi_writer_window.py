"""Keep the window of a log to which messages come that are told of late: those that other nodes append, too.

New messages are dispatched from memory where nothing of another node stands before them, as the store's answer tells;
else they are read from the store, in order with those of other nodes, as far as they are not in memory already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.dispatch_window import WINDOW_BYTES, WINDOW_SIZE, DispatchWindow
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.message_order import OrderedMessage
from brokerapp.engine.entries.out_of_order_tail import OutOfOrderTail


class MultiWriterWindow(DispatchWindow):
    """Hold the window of a log that other nodes append to as long as it is `shared`."""

    __slots__ = ("is_spread", "shared", "tail")

    def __init__(self, name: str, depth: int, suspect: int, rules: DispatchPolicy) -> None:
        super().__init__(name, depth, suspect, rules)
        self.shared = False  #: other nodes write to it, too
        self.is_spread = False  #: writes to several shards go to it: they are told of late
        self.tail = OutOfOrderTail(WINDOW_SIZE, WINDOW_BYTES)

    @property
    def has_late_arrivals(self) -> bool:
        """Return whether the store may hold messages that are told of only after others which follow them."""
        return self.shared or self.is_spread

    @property
    def has_active_consumers(self) -> bool:
        """Return whether new messages are dispatched soon, so that those in memory need not be read."""
        if not self.has_late_arrivals or self.policy.prioritized:
            return False
        return bool(self.consumers) and self.unloaded_count <= WINDOW_SIZE

    def append_batch(self, entries: Sequence[LogEntry], before: int | None = None) -> None:
        """Add messages stored one after the other; `before` was the last number then, as far as the store told."""
        if not self.has_late_arrivals or self._holds_all_up_to(before):
            super().append_batch(entries)
            return
        self.note_appended(len(entries), entries[-1].seq)
        if self.has_active_consumers:
            self.tail.add(entries, before)

    def append_late(self, entries: Sequence[LogEntry], before: int | None) -> None:
        """Add messages that could be read before they are told of: another node stored them, or several shards."""
        if self.has_late_arrivals and self.horizon.is_new(entries[0].seq):
            self.append_batch(entries, before)
        else:
            self.note_appended(len(entries), entries[-1].seq)

    def _holds_all_up_to(self, before: int | None) -> bool:
        """Return whether nothing up to this number is in the store only, from whichever node."""
        all_is_read = self.has_active_consumers and not (self.unloaded_count or self.paging)
        return all_is_read and before is not None and before <= self.loaded_up_to

    def on_page_read(self, entries: Iterable[LogEntry], window: int) -> None:
        found = list(entries)
        if window == self.generation:
            found += self.tail.take_after(found[-1].seq if found else self.loaded_up_to)
        super().on_page_read(found, window)

    @property
    def _least_unread(self) -> int:
        is_incomplete = self.has_late_arrivals and self.loaded_up_to < self.horizon.highest_seq
        return max(super()._least_unread, int(is_incomplete and not self.policy.prioritized))

    # -- where some of what is at hand may be gone, or the window is another one

    def on_lookahead_read(self, entries: Iterable[LogEntry], window: int, after: int) -> None:
        self.tail.clear()
        super().on_lookahead_read(entries, window, after)

    def remove_ready(self, stored: Collection[OrderedMessage]) -> set[int]:
        self.tail.clear()
        return super().remove_ready(stored)

    def _reload(self) -> None:
        self.tail.clear()
        super()._reload()

    def release_ownership(self) -> None:
        self.tail.clear()
        super().release_ownership()

    def release_memory(self) -> None:
        if not self.consumers:
            self.tail.clear()
        super().release_memory()
