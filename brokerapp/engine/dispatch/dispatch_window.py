"""Keep a window of a log's messages in memory, in order, and page the rest from the store.

The rest is paged in when the window runs low. Without consumers it holds nothing.

    store:   | loaded, settled or in flight | ready (window) | unloaded ... |
                                            ^ in memory      ^ `loaded` is the place of the last one read

The window holds whatever is up to that place and not in flight. Where messages have priorities (see
message_order.py) new ones
may belong into it; then it gives back to the store what has become too much at its end.
"""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.lookahead import Lookahead
from brokerapp.engine.dispatch.message_groups import MessageGroups, have_groups
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.message_order import OrderedMessage, order_key_for
from brokerapp.engine.entries.read_horizon import UNKNOWN_SEQ, ReadHorizon

#: Messages read from the store at once: a few hundred kilobytes at common sizes, one round trip.
PAGE_SIZE = 500
#: Messages held ready in memory per log. More than ActiveMQ's default prefetch, so that one consumer can be filled.
WINDOW_SIZE = 2_000
#: Bytes of messages at which a window grows no more however few they are.
WINDOW_BYTES = 8 * 1024 * 1024
_size = attrgetter("size")


class DispatchWindow:
    """Hold the messages of one log that are in memory, for its consumers."""

    __slots__ = (
        "consumers",
        "depth",
        "end_is_unknown",
        "generation",
        "groups",
        "horizon",
        "in_flight",
        "loaded_up_to",
        "lookahead",
        "maybe_delivered_up_to",
        "name",
        "order_key",
        "paging",
        "policy",
        "ready",
        "ready_bytes",
        "redelivery_counts",
        "unloaded_count",
    )  # fmt: skip

    def __init__(self, name: str, depth: int, suspect: int, rules: DispatchPolicy) -> None:
        self.name = name
        self.policy = rules
        self.consumers: list[Subscription] = []
        self.depth = depth  #: messages of the log, wherever they are
        self.in_flight = 0  #: of them, with a consumer
        self.unloaded_count = depth  #: of them, in the store alone
        self.end_is_unknown = False  #: the store may hold more than is known, until its end was read
        self.loaded_up_to = 0
        self.ready: deque[LogEntry] = deque()
        self.ready_bytes = 0
        self.generation = 0  #: grows whenever the window is forgotten: what was read for an earlier one is of no use
        self.paging = False
        self.horizon = ReadHorizon()
        self.order_key = order_key_for(rules.prioritized)  #: what orders its messages
        self.groups: MessageGroups | None = None  #: None: no message had a group
        self.lookahead = Lookahead(rules.prioritized)
        #: Entries that came back, with their deliveries: kept while the window is not.
        self.redelivery_counts: dict[int, int] = {}
        #: Entries up to this number may have been delivered by a node that died.
        self.maybe_delivered_up_to = suspect

    # -- messages that are new

    def _append(self, entry: LogEntry) -> None:
        """Add a stored message: to the window if nothing older waits outside it and there is room."""
        self.depth += 1
        self.horizon.note_seq(entry.seq)
        full = len(self.ready) >= WINDOW_SIZE or self.ready_bytes >= WINDOW_BYTES
        if self.policy.prioritized:
            self._insert_by_priority(entry)
        elif self.unloaded_count or not self.consumers or full:
            self.unloaded_count += 1
            self.lookahead.append(entry)
        else:
            self.loaded_up_to = entry.seq
            self.ready.append(entry)
            self.ready_bytes += entry.size
            if self.lookahead.in_flight_seqs:
                self.lookahead.advance_to(entry.seq)
            self._note_group(entry)

    def _insert_by_priority(self, entry: LogEntry) -> None:
        """Insert a message by priority: into the window if that reaches so far, else at the end of the log."""
        place = self.order_key(entry)
        for consumer in self.consumers:
            if consumer.scanned_up_to.get(self.name, 0) >= place:
                consumer.scanned_up_to[self.name] = place - 1
        if place > self.loaded_up_to and (self.unloaded_count or self.paging or not self.consumers):
            self.unloaded_count += 1
            self.lookahead.note_inserted(place)
            return
        self.loaded_up_to = max(self.loaded_up_to, place)
        if self.ready and place < self.order_key(self.ready[-1]):
            insort_right(self.ready, entry, key=self.order_key)
        else:
            self.ready.append(entry)
        self.ready_bytes += entry.size
        self._note_group(entry)
        self._trim_to_size()

    def _trim_to_size(self) -> None:
        """Leave to the store what is too much at the end of the window."""
        if len(self.ready) <= 2 * WINDOW_SIZE and self.ready_bytes <= 2 * WINDOW_BYTES:
            return
        while len(self.ready) > WINDOW_SIZE or (self.ready_bytes > WINDOW_BYTES and len(self.ready) > 1):
            self.ready_bytes -= self.ready.pop().size
            self.unloaded_count += 1
        self.loaded_up_to = self.order_key(self.ready[-1])
        self.lookahead.discard_page()
        self.generation += 1

    def append_batch(self, entries: Sequence[LogEntry]) -> None:
        """Add messages that were stored one after the other."""
        size = sum(map(_size, entries))
        fits = len(self.ready) + len(entries) <= WINDOW_SIZE and self.ready_bytes + size <= WINDOW_BYTES
        plain = not (self.policy.prioritized or self.lookahead.in_flight_seqs or have_groups(entries))
        if self.unloaded_count or not self.consumers or not fits or not plain:
            for entry in entries:
                self._append(entry)
            return
        self.depth += len(entries)
        self.loaded_up_to = entries[-1].seq
        self.horizon.note_seq(self.loaded_up_to)
        self.ready.extend(entries)
        self.ready_bytes += size

    def note_appended(self, count: int = 1, upto: int = UNKNOWN_SEQ) -> None:
        """Count messages that were stored, with numbers up to this one, and are read when they are wanted."""
        if upto <= self.horizon.counted_up_to:
            return
        self.depth += count
        if upto <= self.loaded_up_to and not self.policy.prioritized:  # another node's, read before it told of them
            return
        self.unloaded_count += count
        self.horizon.note_arrivals(count, upto, reading=self.paging)
        self.lookahead.reaches_end = False
        if self.policy.prioritized:  # who knows where they belong
            self._reload()

    def _note_group(self, entry: LogEntry) -> None:
        if entry.message.has_group and self.groups is None:
            self.groups = MessageGroups(self.policy.groups)

    # -- what the store answers

    @property
    def has_room_for_page(self) -> bool:
        """Return whether there is room for a page."""
        return len(self.ready) < PAGE_SIZE and self.ready_bytes < WINDOW_BYTES

    def on_page_read(self, entries: Iterable[LogEntry], window: int) -> None:
        """Take the page that was read after `loaded_up_to`, unless the window has another generation now."""
        self.paging = False
        if window != self.generation:
            self.horizon.on_page_read()  # what came meanwhile is counted, and in any page that is asked for from now on
            return
        found = list(entries)
        for entry in self._without_in_flight(found):
            self.ready.append(entry)
            self.ready_bytes += entry.size
            self.unloaded_count -= 1
        if found:
            self.loaded_up_to = self.order_key(found[-1])
            self.lookahead.advance_to(self.loaded_up_to)
            self._set_unloaded(max(self.unloaded_count, self._least_unread))
        else:
            self.unloaded_count = self.horizon.arrived_while_reading
            self.end_is_unknown = self.end_is_unknown and self.unloaded_count > 0
        self._on_read(found)

    @property
    def _least_unread(self) -> int:
        """Return how many messages are known to be behind the page that was read, at least."""
        if self.policy.prioritized:  # its places tell nothing of that
            return self.horizon.arrived_while_reading
        return self.horizon.unread_after(self.loaded_up_to)

    def _on_read(self, found: Iterable[LogEntry]) -> None:
        self.horizon.note_seqs(entry.seq for entry in found)
        self.horizon.on_page_read()
        self.lookahead.on_page_read()
        self.release_memory()

    def on_lookahead_read(self, entries: Iterable[LogEntry], window: int, after: int) -> None:
        """Take the page that was read after `after` for `lookahead_position`."""
        self.paging = False
        if window != self.generation:
            self.horizon.on_page_read()  # what came meanwhile is counted, and in any page that is asked for from now on
            return
        found = list(entries)
        page = [entry for entry in self._without_in_flight(found) if self.order_key(entry) > self.loaded_up_to]
        self.lookahead.set_page(page, after, self.order_key(found[-1]) if found else None)
        if self.horizon.arrived_while_reading:
            self.lookahead.reaches_end = False
        self._on_read(found)

    def _without_in_flight(self, entries: list[LogEntry]) -> list[LogEntry]:
        """Return the messages that are not in flight, with their redelivery counts."""
        found = self.lookahead.exclude_in_flight(entries)
        for entry in found:
            entry.redelivery_count = self.redelivery_count_of(entry)
            self._note_group(entry)
        return found

    def redelivery_count_of(self, entry: LogEntry) -> int:
        """Return how often a waiting message was delivered before."""
        return self.redelivery_counts.get(
            entry.seq, entry.redelivery_count + int(entry.seq <= self.maybe_delivered_up_to)
        )

    # -- what comes back, and what leaves

    def requeue(self, entries: Iterable[LogEntry], *, seen: bool = True) -> None:
        """Return messages in flight to their positions, with one more redelivery if a consumer may have `seen` them."""
        back = sorted(entries, key=self.order_key)
        if not back:
            return
        for entry in back:
            entry.redelivery_count += seen
            entry.first_of_group = False
            self.redelivery_counts[entry.seq] = entry.redelivery_count
        self.in_flight -= len(back)
        self.lookahead.unmark_in_flight(back)
        if self.order_key(back[-1]) > self.loaded_up_to:
            back = self._keep_loaded(back)
        self.ready_bytes += sum(entry.size for entry in back)
        if self.ready and back and self.order_key(back[-1]) > self.order_key(self.ready[0]):
            self.ready = deque(sorted([*back, *self.ready], key=self.order_key))
        else:
            self.ready.extendleft(reversed(back))
        self.reset_offers()
        self.release_memory()

    def _keep_loaded(self, back: list[LogEntry]) -> list[LogEntry]:
        """Return the messages that belong into the window; the others wait in the store again."""
        inside = [entry for entry in back if self.order_key(entry) <= self.loaded_up_to]
        self.lookahead.discard_page()
        self.unloaded_count += len(back) - len(inside)
        return inside

    def remove_settled(self, entries: Sequence[LogEntry]) -> None:
        """Remove messages in flight for good."""
        self.in_flight -= len(entries)
        self.depth -= len(entries)
        if self.redelivery_counts:
            for entry in entries:
                self.redelivery_counts.pop(entry.seq, None)
        if self.lookahead.in_flight_seqs:
            for entry in entries:
                self.lookahead.remove_settled(entry.seq, self.paging)
        if not self.in_flight:
            self.release_memory()

    def seqs_not_in_flight(self, stored: Collection[OrderedMessage]) -> set[int]:
        """Return the numbers of those stored messages that no consumer holds."""
        ready = {entry.seq for entry in self.ready}
        return {
            each.seq
            for each in stored
            if each.seq in ready
            or (self.order_key(each) > self.loaded_up_to and not self.lookahead.is_in_flight(each.seq))
        }

    def remove_ready(self, stored: Collection[OrderedMessage]) -> set[int]:
        """Remove those stored messages that no consumer holds, and return their numbers."""
        gone = self.seqs_not_in_flight(stored)
        left = deque(entry for entry in self.ready if entry.seq not in gone)
        unloaded = len(gone) - (len(self.ready) - len(left))
        self.ready, self.ready_bytes = left, sum(entry.size for entry in left)
        self._set_unloaded(self.unloaded_count - unloaded)
        self.depth -= len(gone)
        for seq in gone:
            self.redelivery_counts.pop(seq, None)
        self.horizon.note_seqs(gone)
        self.lookahead.remove(gone)
        return gone

    def reserve(self, stored: Collection[OrderedMessage]) -> set[int]:
        """Mark those stored messages as in flight that no consumer holds, and return their numbers."""
        seized = self.remove_ready(stored)
        self.depth += len(seized)
        self.in_flight += len(seized)
        self.lookahead.mark_in_flight([each for each in stored if each.seq in seized])
        if self.paging:  # what is being read for the window may hold them
            self.generation += 1
        return seized

    # -- beginning anew

    def apply_policy(self, rules: DispatchPolicy) -> None:
        """Dispatch by this policy from now on."""
        former, self.policy = self.policy, rules
        if rules.bridge_filter != former.bridge_filter:
            self.reset_offers()
        if rules.prioritized != former.prioritized:
            self.order_key = order_key_for(rules.prioritized)
            self.lookahead.reorder(rules.prioritized, self.loaded_up_to, [entry.seq for entry in self.ready])
            self._reload()

    def _reload(self) -> None:
        """Leave the whole window to the store."""
        self.ready.clear()
        self.ready_bytes = 0
        self._set_unloaded(self.depth - self.in_flight)
        self.loaded_up_to = 0
        self.generation += 1
        self.lookahead.discard_page()
        self.reset_offers()

    def take_over(
        self, depth: int, suspect: int, returned: Mapping[int, int], held: Collection[int], last: int
    ) -> None:
        """Hold what the store holds, whose `last` number this is, as another node left it; the numbers of what
        consumers hold are known.
        """
        self.release_ownership()
        self.horizon.counted_up_to = last
        self.depth, self.in_flight = depth, len(held)
        self.maybe_delivered_up_to = suspect
        self.redelivery_counts.update(returned)
        self.lookahead.in_flight_seqs.update(held)
        self.unloaded_count = max(0, depth - len(held))
        self.recheck_store()

    def release_ownership(self) -> None:
        """Hold nothing any more: another node owns the log."""
        self.ready.clear()
        self.ready_bytes = self.depth = self.in_flight = self.unloaded_count = self.loaded_up_to = 0
        self.horizon.on_page_read()
        self.end_is_unknown = False
        self.generation += 1
        self.redelivery_counts.clear()
        self.lookahead.reset()
        self.groups = None
        self.reset_offers()

    def recheck_store(self) -> None:
        """Assume that the store may hold more than is known."""
        self.end_is_unknown = True
        self.unloaded_count += 1
        self.horizon.note_arrivals(1, UNKNOWN_SEQ, reading=self.paging)
        self.lookahead.reaches_end = False

    def release_memory(self) -> None:
        """Empty the window when there are neither consumers nor messages in flight."""
        if not (self.consumers or self.in_flight):
            self.ready.clear()
            self.ready_bytes = 0
            self._set_unloaded(self.depth)
            self.loaded_up_to = 0
            self.generation += 1
            self.lookahead.reset()
            self.groups = None

    def _set_unloaded(self, count: int) -> None:
        """Set how many messages are in the store only; at least one until the log's end has been read."""
        self.unloaded_count = max(count, int(self.end_is_unknown))

    def reset_offers(self) -> None:
        """Offer messages again that consumers did not take before."""
        for consumer in self.consumers:
            consumer.scanned_up_to.pop(self.name, None)
