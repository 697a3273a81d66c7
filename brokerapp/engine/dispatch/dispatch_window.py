"""Window: what a log holds of its messages in memory, in their order, and how the rest waits in the store.

The rest is paged in when the window runs low. Without consumers it holds nothing.

    store:   | loaded, settled or in flight | ready (window) | unloaded ... |
                                            ^ in memory      ^ `loaded` is the place of the last one read

The window holds whatever is up to that place and not in flight. Where messages have priorities (see places.py) new ones
may belong into it; then it gives back to the store what has become too much at its end.
"""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.lookahead import Lookahead
from brokerapp.engine.dispatch.message_groups import MessageGroups
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.message_order import OrderedMessage, place_in
from brokerapp.engine.entries.read_horizon import UNKNOWN_SEQ, ReadHorizon

#: Messages read from the store at once: a few hundred kilobytes at common sizes, one round trip.
PAGE = 500
#: Messages held ready in memory per log. More than ActiveMQ's default prefetch, so that one consumer can be filled.
WINDOW = 2_000
#: Bytes of messages at which a window grows no more however few they are.
WINDOW_BYTES = 8 * 1024 * 1024


class DispatchWindow:
    """The window of the log of this name, for its consumers."""

    __slots__ = (
        "ahead", "consumers", "depth", "groups", "horizon", "in_flight", "loaded", "may_have_been_delivered", "name",
        "paging", "place", "ready", "ready_bytes", "returned", "rules", "unloaded", "unsure", "window",
    )  # fmt: skip

    def __init__(self, name: str, depth: int, suspect: int, rules: DispatchPolicy) -> None:
        self.name = name
        self.rules = rules
        self.consumers: list[Subscription] = []
        self.depth = depth  #: messages of the log, wherever they are
        self.in_flight = 0  #: of them, with a consumer
        self.unloaded = depth  #: of them, in the store alone
        self.unsure = False  #: the store may hold more than is known, until its end was read
        self.loaded = 0
        self.ready: deque[LogEntry] = deque()
        self.ready_bytes = 0
        self.window = 0  #: grows whenever the window is forgotten: what was read for an earlier one is of no use
        self.paging = False
        self.horizon = ReadHorizon()
        self.place = place_in(rules.prioritized)  #: what orders its messages
        self.groups: MessageGroups | None = None  #: None: no message had a group
        self.ahead = Lookahead(rules.prioritized)
        #: Entries that came back, with their deliveries: kept while the window is not.
        self.returned: dict[int, int] = {}
        #: Entries up to this number may have been delivered by a node that died.
        self.may_have_been_delivered = suspect

    # -- messages that are new

    def offer(self, entry: LogEntry) -> None:
        """A message was stored. It joins the window if nothing older waits outside and there is room."""
        self.depth += 1
        self.horizon.saw(entry.seq)
        full = len(self.ready) >= WINDOW or self.ready_bytes >= WINDOW_BYTES
        if self.rules.prioritized:
            self._take_place(entry)
        elif self.unloaded or not self.consumers or full:
            self.unloaded += 1
            self.ahead.append(entry)
        else:
            self.loaded = entry.seq
            self.ready.append(entry)
            self.ready_bytes += entry.size
            if self.ahead.taken:
                self.ahead.loaded(entry.seq)
            self._note_group(entry)

    def _take_place(self, entry: LogEntry) -> None:
        """A message takes its place by priority: in the window if that reaches so far, or to the end of the log."""
        place = self.place(entry)
        for consumer in self.consumers:
            if consumer.tested.get(self.name, 0) >= place:
                consumer.tested[self.name] = place - 1
        if place > self.loaded and (self.unloaded or self.paging or not self.consumers):
            self.unloaded += 1
            self.ahead.arrived(place)
            return
        self.loaded = max(self.loaded, place)
        if self.ready and place < self.place(self.ready[-1]):
            insort_right(self.ready, entry, key=self.place)
        else:
            self.ready.append(entry)
        self.ready_bytes += entry.size
        self._note_group(entry)
        self._shed()

    def _shed(self) -> None:
        """Leave to the store what is too much at the window's end."""
        if len(self.ready) <= 2 * WINDOW and self.ready_bytes <= 2 * WINDOW_BYTES:
            return
        while len(self.ready) > WINDOW or (self.ready_bytes > WINDOW_BYTES and len(self.ready) > 1):
            self.ready_bytes -= self.ready.pop().size
            self.unloaded += 1
        self.loaded = self.place(self.ready[-1])
        self.ahead.forget()
        self.window += 1

    def offer_run(self, entries: Sequence[LogEntry]) -> None:
        """Messages were stored, one after the other."""
        size = sum([entry.size for entry in entries])
        fits = len(self.ready) + len(entries) <= WINDOW and self.ready_bytes + size <= WINDOW_BYTES
        plain = not (self.rules.prioritized or self.ahead.taken or entries[0].message.grouped)
        if self.unloaded or not self.consumers or not fits or not plain:
            for entry in entries:
                self.offer(entry)
            return
        self.depth += len(entries)
        self.loaded = entries[-1].seq
        self.horizon.saw(self.loaded)
        self.ready.extend(entries)
        self.ready_bytes += size

    def offer_unseen(self, count: int = 1, upto: int = UNKNOWN_SEQ) -> None:
        """Messages were stored, with numbers up to this one, and are read when they are wanted."""
        if upto <= self.horizon.begun:
            return
        self.depth += count
        if upto <= self.loaded and not self.rules.prioritized:  # another node's, read before it told of them
            return
        self.unloaded += count
        self.horizon.came(count, upto, reading=self.paging)
        self.ahead.at_end = False
        if self.rules.prioritized:  # who knows where they belong
            self._read_anew()

    def _note_group(self, entry: LogEntry) -> None:
        if entry.message.grouped and self.groups is None:
            self.groups = MessageGroups(self.rules.groups)

    # -- what the store answers

    @property
    def is_low(self) -> bool:
        """Whether there is room for a page."""
        return len(self.ready) < PAGE and self.ready_bytes < WINDOW_BYTES

    def load(self, entries: Iterable[LogEntry], window: int) -> None:
        """What the store answered to reading on after `loaded`, when the window was the one of this number."""
        self.paging = False
        if window != self.window:
            return
        found = list(entries)
        for entry in self._known_again(found):
            self.ready.append(entry)
            self.ready_bytes += entry.size
            self.unloaded -= 1
        if found:
            self.loaded = self.place(found[-1])
            self.ahead.loaded(self.loaded)
            self._leave_unloaded(max(self.unloaded, self._behind))
        else:
            self.unloaded = self.horizon.fresh
            self.unsure = self.unsure and self.unloaded > 0
        self._have_read(found)

    @property
    def _behind(self) -> int:
        """How many are known to be behind the page that was read, at least."""
        if self.rules.prioritized:  # its places tell nothing of that
            return self.horizon.fresh
        return self.horizon.behind(self.loaded)

    def _have_read(self, found: Iterable[LogEntry]) -> None:
        self.horizon.saw_all(entry.seq for entry in found)
        self.horizon.read()
        self.ahead.read()
        self.forget_window()

    def load_ahead(self, entries: Iterable[LogEntry], window: int, after: int) -> None:
        """What the store answered to reading on after that place, for `wants_ahead`."""
        self.paging = False
        if window != self.window:
            return
        found = list(entries)
        kept = [entry for entry in self._known_again(found) if self.place(entry) > self.loaded]
        self.ahead.put(kept, after, self.place(found[-1]) if found else None)
        if self.horizon.fresh:
            self.ahead.at_end = False
        self._have_read(found)

    def _known_again(self, entries: list[LogEntry]) -> list[LogEntry]:
        """Those not in flight, as they are known here."""
        found = self.ahead.pass_over(entries)
        for entry in found:
            entry.deliveries = self.deliveries_of(entry)
            self._note_group(entry)
        return found

    def deliveries_of(self, entry: LogEntry) -> int:
        """How often a waiting message was delivered before."""
        return self.returned.get(entry.seq, entry.deliveries + int(entry.seq <= self.may_have_been_delivered))

    # -- what comes back, and what leaves

    def take_back(self, entries: Iterable[LogEntry]) -> None:
        """Entries that were in flight return to their place, one delivery older."""
        back = sorted(entries, key=self.place)
        if not back:
            return
        for entry in back:
            entry.deliveries += 1
            entry.first_of_group = False
            self.returned[entry.seq] = entry.deliveries
        self.in_flight -= len(back)
        self.ahead.came_back(back)
        if self.place(back[-1]) > self.loaded:
            back = self._left_in_store(back)
        self.ready_bytes += sum(entry.size for entry in back)
        if self.ready and back and self.place(back[-1]) > self.place(self.ready[0]):
            self.ready = deque(sorted([*back, *self.ready], key=self.place))
        else:
            self.ready.extendleft(reversed(back))
        self.offer_again()
        self.forget_window()

    def _left_in_store(self, back: list[LogEntry]) -> list[LogEntry]:
        """Those of the window; those past it are not loaded, as before they were given out."""
        inside = [entry for entry in back if self.place(entry) <= self.loaded]
        self.ahead.forget()
        self.unloaded += len(back) - len(inside)
        return inside

    def settled(self, entries: Sequence[LogEntry]) -> None:
        """Messages in flight are gone for good."""
        self.in_flight -= len(entries)
        self.depth -= len(entries)
        if self.returned:
            for entry in entries:
                self.returned.pop(entry.seq, None)
        if self.ahead.taken:
            for entry in entries:
                self.ahead.settled(entry.seq, self.paging)
        if not self.in_flight:
            self.forget_window()

    def free(self, stored: Collection[OrderedMessage]) -> set[int]:
        """The numbers of those of these stored messages that no consumer holds."""
        ready = {entry.seq for entry in self.ready}
        return {
            each.seq
            for each in stored
            if each.seq in ready or (self.place(each) > self.loaded and not self.ahead.is_out(each.seq))
        }

    def take_out(self, stored: Collection[OrderedMessage]) -> set[int]:
        """Remove those of these stored messages that no consumer holds; their numbers."""
        gone = self.free(stored)
        left = deque(entry for entry in self.ready if entry.seq not in gone)
        unloaded = len(gone) - (len(self.ready) - len(left))
        self.ready, self.ready_bytes = left, sum(entry.size for entry in left)
        self._leave_unloaded(self.unloaded - unloaded)
        self.depth -= len(gone)
        for seq in gone:
            self.returned.pop(seq, None)
        self.horizon.saw_all(gone)
        self.ahead.take_out(gone)
        return gone

    def seize(self, stored: Collection[OrderedMessage]) -> set[int]:
        """Take those of these stored messages that no consumer holds, as if one held them now; their numbers."""
        seized = self.take_out(stored)
        self.depth += len(seized)
        self.in_flight += len(seized)
        self.ahead.given([each for each in stored if each.seq in seized])
        if self.paging:  # what is being read for the window may hold them
            self.window += 1
        return seized

    # -- beginning anew

    def tune(self, rules: DispatchPolicy) -> None:
        """Give out messages by these rules from now on."""
        former, self.rules = self.rules, rules
        if rules.bridges != former.bridges:
            self.offer_again()
        if rules.prioritized != former.prioritized:
            self.place = place_in(rules.prioritized)
            self.ahead.reorder(rules.prioritized, self.loaded, [entry.seq for entry in self.ready])
            self._read_anew()

    def _read_anew(self) -> None:
        """Leave the whole window to the store."""
        self.ready.clear()
        self.ready_bytes = 0
        self._leave_unloaded(self.depth - self.in_flight)
        self.loaded = 0
        self.window += 1
        self.ahead.forget()
        self.offer_again()

    def begin(self, depth: int, suspect: int, returned: Mapping[int, int], held: Collection[int], last: int) -> None:
        """Hold what the store holds, whose `last` number this is, as another node left it; the numbers of what
        consumers hold are known.
        """
        self.vacate()
        self.horizon.begun = last
        self.depth, self.in_flight = depth, len(held)
        self.may_have_been_delivered = suspect
        self.returned.update(returned)
        self.ahead.taken.update(held)
        self.unloaded = max(0, depth - len(held))
        self.look_again()

    def vacate(self) -> None:
        """Hold nothing, and know nothing of who holds what: another node does."""
        self.ready.clear()
        self.ready_bytes = self.depth = self.in_flight = self.unloaded = self.loaded = 0
        self.horizon.read()
        self.unsure = False
        self.window += 1
        self.returned.clear()
        self.ahead.reset()
        self.groups = None
        self.offer_again()

    def look_again(self) -> None:
        """There may be more in the store than is known."""
        self.unsure = True
        self.unloaded += 1
        self.horizon.came(1, UNKNOWN_SEQ, reading=self.paging)
        self.ahead.at_end = False

    def forget_window(self) -> None:
        """Without consumers and messages in flight nothing needs to be in memory."""
        if not (self.consumers or self.in_flight):
            self.ready.clear()
            self.ready_bytes = 0
            self._leave_unloaded(self.depth)
            self.loaded = 0
            self.window += 1
            self.ahead.reset()
            self.groups = None

    def _leave_unloaded(self, count: int) -> None:
        """So many are in the store alone, as far as is known; it is read on to its end where that is not sure."""
        self.unloaded = max(count, int(self.unsure))

    def offer_again(self) -> None:
        """What consumers were offered before may be for them now."""
        for consumer in self.consumers:
            consumer.tested.pop(self.name, None)
