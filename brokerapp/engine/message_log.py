"""MessageLog: a queue as its home node sees it, and who gets which of its messages. Pure: it decides, the broker
performs.

A log holds a window of its messages in memory, in order of arrival; the rest waits in the store and is paged in when
the window runs low. Without consumers it holds none.

    store:   | loaded, settled or in flight | ready (window) | unloaded ... |
                                            ^ in memory      ^ `loaded` is the place of the last one read

The window holds whatever is up to that place and not in flight. Where messages have priorities (see places.py) new ones
may belong into it; then it gives back to the store what has become too much at its end.
"""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from brokerapp.engine.choosing import Choosing
from brokerapp.engine.dispatch_rules import DEFAULT_RULES, DispatchRules
from brokerapp.engine.entry import Entry
from brokerapp.engine.lookahead import Lookahead
from brokerapp.engine.message_groups import MessageGroups
from brokerapp.engine.places import Stored, place_in
from brokerapp.engine.subscription import Subscription
from brokerapp.snapshot import DestinationStats

#: Messages read from the store at once: a few hundred kilobytes at common sizes, one round trip.
PAGE = 500
#: Messages held ready in memory per log. More than ActiveMQ's default prefetch, so that one consumer can be filled.
WINDOW = 2_000
#: Bytes of messages at which a window grows no more however few they are.
WINDOW_BYTES = 8 * 1024 * 1024


class MessageLog:
    """One queue. Numbers are those of DestinationStats."""

    __slots__ = (
        "ahead", "coming", "consumers", "counts", "depth", "destination", "dispatched", "groups", "in_flight", "loaded",
        "may_have_been_delivered", "name", "paging", "paused", "place", "ready", "ready_bytes", "returned", "rules",
        "stopped", "stranded", "turn", "unloaded", "window",
    )  # fmt: skip

    def __init__(
        self, counts: DestinationStats, depth: int = 0, suspect: int = 0, rules: DispatchRules = DEFAULT_RULES
    ) -> None:
        self.counts = counts
        self.destination = destination = counts.destination
        self.name = str(destination)
        self.depth = depth
        self.unloaded = depth
        self.loaded = 0
        self.ready: deque[Entry] = deque()
        self.ready_bytes = 0
        self.window = 0  #: grows whenever the window is forgotten: what was read for an earlier one is of no use
        self.consumers: list[Subscription] = []
        self.turn = 0
        self.in_flight = 0
        self.coming = 0  #: bytes of messages that were given early and are not stored yet
        self.paging = False
        self.paused = False  #: an operator wants nothing to be given out
        self.stopped: set[str] = set()  #: reasons for which nothing is given out for a moment
        self.rules = rules
        self.place = place_in(rules.prioritized)  #: what orders its messages
        self.groups: MessageGroups | None = None  #: None: no message had a group
        self.ahead = Lookahead(rules.prioritized)
        #: Entries that came back, with their deliveries: kept while the window is not.
        self.returned: dict[int, int] = {}
        #: Entries that consumers left behind before they were stored: they come back when they are.
        self.stranded: list[Entry] = []
        #: Entries up to this number may have been delivered by a node that died.
        self.may_have_been_delivered = suspect
        self.dispatched = 0

    # -- what comes in

    def offer(self, entry: Entry) -> None:
        """A message was stored. It joins the window if nothing older waits outside and there is room."""
        self.depth += 1
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

    def _take_place(self, entry: Entry) -> None:
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

    def _read_anew(self) -> None:
        """Leave the whole window to the store."""
        self.ready.clear()
        self.ready_bytes = 0
        self.unloaded, self.loaded = self.depth - self.in_flight, 0
        self.window += 1
        self.ahead.forget()
        self._offer_again()

    def _note_group(self, entry: Entry) -> None:
        if entry.message.grouped and self.groups is None:
            self.groups = MessageGroups(self.rules.groups)

    def offer_run(self, entries: Sequence[Entry]) -> None:
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
        self.ready.extend(entries)
        self.ready_bytes += size

    def offer_unseen(self, count: int = 1) -> None:
        """Messages were stored while nobody consumes."""
        self.depth += count
        self.unloaded += count
        self.ahead.at_end = False
        if self.rules.prioritized:  # who knows where they belong
            self._read_anew()

    @property
    def wants_page(self) -> bool:
        """Whether the window should be filled from the store."""
        if not self.unloaded or self.paging or self.silent or not any(each.ready for each in self.consumers):
            return False
        return len(self.ready) < PAGE and self.ready_bytes < WINDOW_BYTES

    @property
    def wants_ahead(self) -> int | None:
        """The place after which consumers that find nothing in the window want to read on; None: there are none."""
        if not (self.unloaded and self.consumers and self._choosy) or self.paging or self.silent:
            return None
        return self.ahead.wanted_after((consumer for consumer, _ in self._able()), self.name, self.loaded)

    def load(self, entries: Iterable[Entry], window: int) -> None:
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
        else:
            self.unloaded = 0
        self.ahead.read()
        self.forget_window()

    def load_ahead(self, entries: Iterable[Entry], window: int, after: int) -> None:
        """What the store answered to reading on after that place, for `wants_ahead`."""
        self.paging = False
        if window != self.window:
            return
        found = list(entries)
        kept = [entry for entry in self._known_again(found) if self.place(entry) > self.loaded]
        self.ahead.put(kept, after, self.place(found[-1]) if found else None)
        self.ahead.read()
        self.forget_window()

    def _known_again(self, entries: list[Entry]) -> list[Entry]:
        """Those not in flight, as they are known here."""
        found = self.ahead.pass_over(entries)
        for entry in found:
            entry.deliveries = self.deliveries_of(entry)
            self._note_group(entry)
        return found

    def take_back(self, entries: Iterable[Entry]) -> None:
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
        self._offer_again()
        self.forget_window()

    def _left_in_store(self, back: list[Entry]) -> list[Entry]:
        """Those of the window; those past it are not loaded, as before they were given out."""
        inside = [entry for entry in back if self.place(entry) <= self.loaded]
        self.ahead.forget()
        self.unloaded += len(back) - len(inside)
        return inside

    def _offer_again(self) -> None:
        """What consumers were offered before may be for them now."""
        for consumer in self.consumers:
            consumer.tested.pop(self.name, None)

    def leave(self, consumer: Subscription) -> None:
        """It consumes no longer."""
        self.consumers.remove(consumer)
        if self.groups is not None:
            self.groups.leave(consumer)
        self.forget_window()

    def forget_window(self) -> None:
        """Without consumers and messages in flight nothing needs to be in memory."""
        if not (self.consumers or self.in_flight):
            self.ready.clear()
            self.ready_bytes = 0
            self.unloaded, self.loaded = self.depth, 0
            self.window += 1
            self.ahead.reset()
            self.groups = None

    def deliveries_of(self, entry: Entry) -> int:
        """How often a waiting message was delivered before."""
        return self.returned.get(entry.seq, entry.deliveries + int(entry.seq <= self.may_have_been_delivered))

    # -- who gets what

    @property
    def silent(self) -> bool:
        """Whether nothing is given out, whatever waits."""
        return self.paused or bool(self.stopped)

    @property
    def _choosy(self) -> bool:
        """Whether it matters who gets which message."""
        return self.groups is not None or any(each.selector is not None for each in self.consumers)

    def dispatch(self) -> list[tuple[Subscription, list[Entry]]]:
        """Who gets which messages now, each consumer's in order. They are in flight from here on."""
        if self.paused or self.stopped or not self.consumers or not (self.ready or self.ahead):
            return []
        if self._choosy:
            given = self._by_choice()
        else:
            given = self._in_turn()
            self.ready_bytes -= sum([entry.size for _, entries in given for entry in entries])
        for consumer, entries in given:
            count = len(entries)
            consumer.credit -= count
            consumer.delivered += count
            self.in_flight += count
            self.ahead.given(entries)
            self.dispatched = max(self.dispatched, max([entry.seq for entry in entries]))
        return given

    def tune(self, rules: DispatchRules) -> None:
        """Give out messages by these rules from now on."""
        reordered, self.rules = rules.prioritized != self.rules.prioritized, rules
        if reordered:
            self.place = place_in(rules.prioritized)
            self.ahead.reorder(rules.prioritized, self.loaded, [entry.seq for entry in self.ready])
            self._read_anew()

    def pass_through(self, entries: Sequence[Entry]) -> list[tuple[Subscription, list[Entry]]]:
        """Who gets these new messages at once, without their being stored.

        Nobody, unless consumers in auto mode take all and nothing is overtaken. They are in flight from here on.
        """
        if not self.is_awaited or self._choosy or entries[0].message.grouped:
            return []
        able = self._able()
        if sum([room for _, room in able]) < len(entries) or not all(each.ack_mode == "auto" for each, _ in able):
            return []
        return self._give_at_once(entries)

    @property
    def is_awaited(self) -> bool:
        """Whether the next message may be for a consumer at once, because nothing waits before it."""
        return bool(self.consumers) and self.depth == self.in_flight and not (self.silent or self.paging)

    def give_early(self, entries: Sequence[Entry]) -> list[tuple[Subscription, list[Entry]]]:
        """Who gets these new messages while the store is told of them: all are taken, or none; see `stored`.

        Where it matters who gets which, only one can be given. They are in flight from here on.
        """
        if self.rules.prioritized or not self.is_awaited:  # by priority what is in flight is known by its number
            return []
        self._note_group(entries[0])
        if self._choosy:
            return self._choose_early(entries) if len(entries) == 1 else []
        if sum([room for _, room in self._able()]) < len(entries):
            return []
        self.coming += sum([entry.size for entry in entries])
        return self._give_at_once(entries)

    def _choose_early(self, entries: Sequence[Entry]) -> list[tuple[Subscription, list[Entry]]]:
        given = self._give_at_once(entries)
        self._offer_again()  # as nothing waits, nobody has seen anything
        if given:
            self.coming += entries[0].size
        else:
            self.ready.clear()
            self.ready_bytes = 0
            self.depth -= 1
        return given

    def _give_at_once(self, entries: Sequence[Entry]) -> list[tuple[Subscription, list[Entry]]]:
        self.depth += len(entries)
        self.ready.extend(entries)
        self.ready_bytes += sum([entry.size for entry in entries])
        dispatched = self.dispatched
        given = self.dispatch()
        self.dispatched = dispatched  # without numbers they leave no mark
        return given

    def stored(self, entries: Sequence[Entry], numbers: Iterable[int], payloads: Iterable[int]) -> None:
        """The store has what was given early, under these numbers."""
        for entry, number, payload in zip(entries, numbers, payloads, strict=True):
            entry.seq, entry.payload = number, payload
        last = entries[-1].seq
        self.coming -= sum([entry.size for entry in entries])
        self.dispatched = max(self.dispatched, last)
        if (
            self.unloaded or self.paging or self.rules.prioritized
        ):  # the window may come there, and is to pass them over
            self.ahead.taken.update([entry.seq for entry in entries])
        else:
            self.loaded = max(self.loaded, last)
            if self.ahead.taken:
                self.ahead.loaded(last)

    def never_stored(self, entries: Sequence[Entry]) -> None:
        """A limit refused what was given early, in the end. Who has it may keep it: it is as what is not stored."""
        for entry in entries:
            entry.seq = 0
        self.coming -= sum([entry.size for entry in entries])

    def _in_turn(self) -> list[tuple[Subscription, list[Entry]]]:
        """Round robin among those with credit; it does not matter who gets what."""
        ready = self.ready
        able = self._able()
        if len(able) == 1:
            consumer, room = able[0]
            if room >= len(ready):
                entries, self.ready = list(ready), deque()
            else:
                entries = [ready.popleft() for _ in range(room)]
            return [(consumer, entries)]
        given: list[tuple[Subscription, list[Entry]]] = [(consumer, []) for consumer, _ in able]
        if self.rules.strict_order:
            for (_, entries), (_, room) in zip(given, able, strict=True):
                entries.extend(ready.popleft() for _ in range(min(room, len(ready))))
            return [(consumer, entries) for consumer, entries in given if entries]
        rooms = [
            (self._rank(consumer), entries, room) for (consumer, entries), (_, room) in zip(given, able, strict=True)
        ]
        for _, rank in groupby(rooms, key=itemgetter(0)):
            takers = [(entries, room) for _, entries, room in rank]
            while ready and takers:
                for entries, _ in takers[: len(ready)]:
                    entries.append(ready.popleft())
                    self.turn += 1
                takers = [(entries, room) for entries, room in takers if len(entries) < room]
        return [(consumer, entries) for consumer, entries in given if entries]

    def _able(self) -> list[tuple[Subscription, int]]:
        """Those who may be given messages, with how many: the highest priority first, in turn among equals.

        An exclusive consumer is alone, the first that came among those of the highest priority.
        """
        exclusive = [consumer for consumer in self.consumers if consumer.exclusive]
        if exclusive:
            only = max(exclusive, key=self._rank)
            return [(only, only.credit)] if only.ready else []
        first = 0 if self.rules.strict_order else self.turn % len(self.consumers)
        in_turn = sorted(self.consumers[first:] + self.consumers[:first], key=self._rank, reverse=True)
        return [(consumer, consumer.credit) for consumer in in_turn if consumer.ready]

    def _rank(self, consumer: Subscription) -> int:
        return consumer.priority if self.rules.consumer_priority else 0

    def _by_choice(self) -> list[tuple[Subscription, list[Entry]]]:
        """Each message goes to the next consumer that has credit and wants it; others stay where they are."""
        choosing = Choosing(self._able(), self.name, self.destination, self.groups, self.rules, self.place)
        while True:
            self.turn += 1
            self.ready_bytes -= sum([entry.size for entry in choosing.offer(self.ready, self.loaded)])
            self.unloaded -= self.ahead.give(choosing)
            if self.groups is None or not self.groups.released:
                return choosing.given
            self.groups.released = False
            self._offer_again()

    # -- what leaves

    def settled(self, entries: Sequence[Entry]) -> None:
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

    def take_out(self, stored: Collection[Stored]) -> set[int]:
        """Remove those of these stored messages that no consumer holds; their numbers."""
        waiting = {entry.seq for entry in self.ready}
        past = [each.seq for each in stored if self.place(each) > self.loaded]
        unloaded = {seq for seq in past if seq not in waiting and not self.ahead.is_out(seq)}
        gone = unloaded | waiting.intersection([each.seq for each in stored])
        self.ready = deque(entry for entry in self.ready if entry.seq not in gone)
        self.ready_bytes = sum(entry.size for entry in self.ready)
        self.unloaded = max(0, self.unloaded - len(unloaded))
        self.depth -= len(gone)
        for seq in gone:
            self.returned.pop(seq, None)
        self.ahead.take_out(gone)
        return gone

    def seize(self, stored: Collection[Stored]) -> set[int]:
        """Take those of these stored messages that no consumer holds, as if one held them now; their numbers."""
        seized = self.take_out(stored)
        self.depth += len(seized)
        self.in_flight += len(seized)
        self.ahead.given([each for each in stored if each.seq in seized])
        if self.paging:  # what is being read for the window may hold them
            self.window += 1
        return seized
