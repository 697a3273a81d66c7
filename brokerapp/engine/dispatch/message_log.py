"""Decide which consumer gets which message of a queue, at the queue's owner node. Pure.

`dispatch_window.py` says what of the queue is in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from brokerapp.engine.dispatch.bridge_rate_filter import BridgeRateFilter
from brokerapp.engine.dispatch.dispatch_policy import DEFAULT_DISPATCH_POLICY, DispatchPolicy
from brokerapp.engine.dispatch.message_groups import MessageGroups, have_groups
from brokerapp.engine.dispatch.multi_writer_window import MultiWriterWindow
from brokerapp.engine.dispatch.round_robin import (
    Assignments,
    EligibleConsumers,
    deal_round_robin,
    eligible_by_selectivity,
    eligible_consumers,
)
from brokerapp.engine.dispatch.selective_dispatch import SelectiveDispatch
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import UNCOMMITTED, LogEntry
from brokerapp.model.stats_records import DestinationStats

_seq, _size = attrgetter("seq"), attrgetter("size")


class MessageLog(MultiWriterWindow):
    """Decide which consumer gets which message of one queue. `counts` are its DestinationStats."""

    __slots__ = (
        "bridge_filter",
        "counts",
        "destination",
        "dispatched_up_to",
        "handoff_count",
        "is_remote",
        "ownerless",
        "paused",
        "suspend_reasons",
        "turn",
        "uncommitted_bytes",
    )  # fmt: skip

    def __init__(
        self,
        counts: DestinationStats,
        depth: int = 0,
        suspect: int = 0,
        rules: DispatchPolicy = DEFAULT_DISPATCH_POLICY,
    ) -> None:
        super().__init__(str(counts.destination), depth, suspect, rules)
        self.counts = counts
        self.destination = counts.destination
        self.turn = 0
        self.dispatched_up_to = 0  #: the highest number that was dispatched
        self.uncommitted_bytes = 0  #: bytes of messages that were dispatched and are not committed yet
        self.is_remote = False  #: another node dispatches from it, or this one is to take it over and has not yet
        self.handoff_count = 0  #: grows whenever another node dispatches from it
        self.paused = False  #: an operator paused it
        self.suspend_reasons: set[str] = set()  #: reasons for which nothing is dispatched for a moment
        #: Entries that consumers left behind before they were stored: they come back when they are.
        self.ownerless: list[LogEntry] = []
        self.bridge_filter: BridgeRateFilter | None = None  #: once bridges consume

    def remove_consumer(self, consumer: Subscription, *, keeps_groups: bool = False) -> None:
        """Remove a consumer; its groups go to others, unless `keeps_groups`."""
        self.consumers.remove(consumer)
        if self.groups is not None and not keeps_groups:
            self.groups.remove_consumer(consumer)
        if self.policy.bridge_filter is not None:  # what it kept here may cross now
            self.reset_offers()
        self.release_memory()

    def release_ownership(self) -> None:
        super().release_ownership()
        self.consumers.clear()
        self.dispatched_up_to = 0

    def take_over(
        self, depth: int, suspect: int, returned: Mapping[int, int], held: Collection[int], last: int
    ) -> None:
        consumers = list(self.consumers)
        super().take_over(depth, suspect, returned, held, last)
        self.consumers[:] = consumers
        self.dispatched_up_to = max(held, default=0)

    def assign_group(self, group: str, consumer: Subscription) -> None:
        """Give a message group to the consumer that holds messages of it."""
        if self.groups is None:
            self.groups = MessageGroups(self.policy.groups)
        self.groups.assign(group, consumer)

    # -- reading from the store

    @property
    def needs_page(self) -> bool:
        """Return whether the window should be filled from the store."""
        if not self.unloaded_count or self.paging or self.is_suspended or not self.has_room_for_page:
            return False
        return any(each.is_ready for each in self.consumers)

    @property
    def lookahead_position(self) -> int | None:
        """Return where to read on for consumers that find nothing in the window; None: nowhere."""
        if not (self.unloaded_count and self.consumers and self._is_selective) or self.paging or self.is_suspended:
            return None
        return self.lookahead.next_position(
            (consumer for consumer, _ in self._eligible_consumers()), self.name, self.loaded_up_to
        )

    # -- dispatch

    @property
    def has_active_consumers(self) -> bool:
        return super().has_active_consumers and not self.paused

    @property
    def is_suspended(self) -> bool:
        """Return whether nothing is dispatched, whatever waits.

        A node that is to take the log over is told of consumers at other nodes before it knows all that they hold:
        what it dispatched to them by then, they would get twice.
        """
        return self.is_remote or self.paused or bool(self.suspend_reasons)

    @property
    def _is_selective(self) -> bool:
        """Return whether it matters which consumer gets which message."""
        return self.groups is not None or any(each.selector is not None for each in self.consumers)

    def _eligible_consumers(self) -> EligibleConsumers:
        if self._is_selective:
            return eligible_by_selectivity(self.consumers, self.name, self.turn, self.policy)
        return eligible_consumers(self.consumers, self.turn, self.policy)

    def dispatch(self) -> Assignments:
        """Assign messages to consumers, in order. They are in flight from here on."""
        if self.is_suspended or not self.consumers or not (self.ready or self.lookahead):
            return []
        assignments = self._dispatch_selective() if self._is_selective else self._dispatch_round_robin()
        for consumer, entries in assignments:
            count = len(entries)
            consumer.credit -= count
            consumer.delivered_count += count
            self.in_flight += count
            self.lookahead.mark_in_flight(entries)
            self.dispatched_up_to = max(self.dispatched_up_to, *map(_seq, entries))
        return assignments

    def _dispatch_round_robin(self) -> Assignments:
        """Assign each message to the next consumer with credit."""
        if not self.ready:
            return []
        assignments, turns = deal_round_robin(self.ready, self._eligible_consumers(), self.policy)
        self.turn += turns
        self.ready_bytes -= sum([sum(map(_size, entries)) for _, entries in assignments])
        return assignments

    def _dispatch_selective(self) -> Assignments:
        """Assign each message to the next consumer that has credit and wants it; others stay where they are."""
        if self.groups is not None and self.groups.released:  # older ones first
            self.groups.released = False
            self.reset_offers()
        choosing = SelectiveDispatch(
            self._eligible_consumers(),
            self.name,
            self.destination,
            self.groups,
            self.policy,
            self.order_key,
            self.turn,
            self.bridge_filter,
        )
        while True:
            self.ready_bytes -= sum([entry.size for entry in choosing.offer(self.ready, self.loaded_up_to)])
            self._set_unloaded(self.unloaded_count - self.lookahead.offer_to(choosing))
            if self.groups is None or not self.groups.released:
                self.turn = choosing.turn
                return choosing.assignments
            self.groups.released = False
            self.reset_offers()

    def remove_settled(self, entries: Sequence[LogEntry]) -> None:
        super().remove_settled(entries)
        if self.uncommitted_bytes:
            for entry in entries:
                entry.acked_before_commit = entry.seq == UNCOMMITTED

    # -- dispatch before the commit

    @property
    def can_bypass_window(self) -> bool:
        """Return whether the next message may go to a consumer at once, because nothing waits before it."""
        if (
            self.has_late_arrivals or self.end_is_unknown
        ):  # another node may have confirmed what is older, and not told of it yet
            return False
        if self.ready:  # another node may not have told of it yet, so that `depth` does not count it
            return False
        return bool(self.consumers) and self.depth == self.in_flight and not (self.is_suspended or self.paging)

    @property
    def may_take_unstored(self) -> bool:
        """Return whether consumers take new messages without their being stored, as soon as they have room."""
        return (
            self.can_bypass_window
            and not self._is_selective
            and all(each.ack_mode == "auto" and each.started for each in self.consumers)
        )

    @property
    def room_for_unstored(self) -> int:
        """Return how many new messages consumers in auto mode take now without their being stored."""
        if not self.can_bypass_window or self._is_selective:
            return 0
        able = self._eligible_consumers()
        return sum([room for _, room in able]) if all(each.ack_mode == "auto" for each, _ in able) else 0

    def dispatch_unstored(self, entries: Sequence[LogEntry]) -> Assignments:
        """Assign new messages at once, without their being stored.

        None, unless consumers in auto mode take all and nothing is overtaken. They are in flight from here on.
        """
        if have_groups(entries) or self.room_for_unstored < len(entries):
            return []
        return self._dispatch_new(entries)

    def dispatch_uncommitted(self, entries: Sequence[LogEntry]) -> Assignments:
        """Assign new messages while the store commits them: all are taken, or none; see `on_committed`.

        Where it matters who gets which, only one can be assigned. They are in flight from here on.
        """
        if (
            self.policy.prioritized or not self.can_bypass_window
        ):  # by priority what is in flight is known by its number
            return []
        for entry in entries:
            self._note_group(entry)
        if self._is_selective:
            return self._dispatch_one_uncommitted(entries) if len(entries) == 1 else []
        if sum([room for _, room in self._eligible_consumers()]) < len(entries):
            return []
        self.uncommitted_bytes += sum([entry.size for entry in entries])
        return self._dispatch_new(entries)

    def _dispatch_one_uncommitted(self, entries: Sequence[LogEntry]) -> Assignments:
        assignments = self._dispatch_new(entries)
        self.reset_offers()  # as nothing waits, nobody has seen anything
        if assignments:
            self.uncommitted_bytes += entries[0].size
        else:
            self.ready.clear()
            self.ready_bytes = 0
            self.depth -= 1
        return assignments

    def _dispatch_new(self, entries: Sequence[LogEntry]) -> Assignments:
        self.depth += len(entries)
        self.ready.extend(entries)
        self.ready_bytes += sum([entry.size for entry in entries])
        dispatched = self.dispatched_up_to
        assignments = self.dispatch()
        self.dispatched_up_to = dispatched  # without numbers they leave no mark
        return assignments

    def on_committed(self, entries: Sequence[LogEntry], numbers: Iterable[int], payloads: Iterable[int]) -> None:
        """Give the numbers of the store's answer to messages that were dispatched before the commit."""
        for entry, number, payload in zip(entries, numbers, payloads, strict=True):
            entry.seq, entry.payload = number, payload
        last = entries[-1].seq
        self.uncommitted_bytes -= sum([entry.size for entry in entries])
        self.dispatched_up_to = max(self.dispatched_up_to, last)
        if (
            self.unloaded_count or self.paging or self.has_late_arrivals or self.policy.prioritized
        ):  # the window may come there, and is to pass them over
            if not self.paging:
                self.lookahead.on_page_read()
            self.lookahead.in_flight_seqs.update([entry.seq for entry in entries])
            for entry in entries:
                if entry.acked_before_commit:  # the next batch removes it
                    self.lookahead.remove_settled(entry.seq, reading=True)
        else:
            self.loaded_up_to = max(self.loaded_up_to, last)
            if self.lookahead.in_flight_seqs:
                self.lookahead.advance_to(last)

    def hold_returned(self, entries: Sequence[LogEntry], numbers: Iterable[int]) -> None:
        """Take messages that came back, under these numbers, as in flight: their consumer has kept them."""
        self.depth += len(entries)
        self.in_flight += len(entries)
        self.uncommitted_bytes += sum([entry.size for entry in entries])
        self.on_committed(entries, numbers, [0] * len(entries))

    def on_refused(self, entries: Sequence[LogEntry]) -> None:
        """Treat messages that were dispatched and then refused by a limit as messages that are not stored."""
        for entry in entries:
            entry.seq = 0
        self.uncommitted_bytes -= sum([entry.size for entry in entries])
