"""MessageLog: a queue as its home node sees it, and who gets which of its messages. Pure: it decides, the broker
performs.

A log holds a window of its messages in memory, in order of arrival; the rest waits in the store and is paged in when
the window runs low. Without consumers it holds none.

    store:   | loaded, settled or in flight | ready (window) | unloaded ... |
                                            ^ in memory      ^ `loaded` is the number of the last one read
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from brokerapp.engine.choosing import Choosing
from brokerapp.engine.dispatch_rules import DEFAULT_RULES, DispatchRules
from brokerapp.engine.entry import Entry
from brokerapp.engine.lookahead import Lookahead
from brokerapp.engine.message_groups import MessageGroups
from brokerapp.engine.subscription import Subscription
from brokerapp.snapshot import DestinationStats

#: Messages read from the store at once: a few hundred kilobytes at common sizes, one round trip.
PAGE = 500
#: Messages held ready in memory per log. More than ActiveMQ's default prefetch, so that one consumer can be filled.
WINDOW = 2_000
#: Bytes of messages at which a window grows no more however few they are.
WINDOW_BYTES = 8 * 1024 * 1024
#: Messages, and bytes of them, among which a prioritized queue finds the most urgent. Twice as many are held when
#: urgent ones come while it is full.
PRIORITY_WINDOW = 20_000
PRIORITY_WINDOW_BYTES = 32 * 1024 * 1024


class MessageLog:
    """One queue. Numbers are those of DestinationStats."""

    __slots__ = (
        "ahead", "coming", "consumers", "counts", "depth", "destination", "dispatched", "groups", "in_flight", "loaded",
        "may_have_been_delivered", "name", "paging", "paused", "ready", "ready_bytes", "returned", "rules", "stopped",
        "stranded", "turn", "unloaded", "window",
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
        self.groups: MessageGroups | None = None  #: None: no message had a group
        self.ahead = Lookahead()
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
        if self.rules.prioritized and self.consumers and (self.unloaded or full) and self._has_early_room:
            self._take_early(entry)
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

    @property
    def _has_early_room(self) -> bool:
        return len(self.ready) < 2 * PRIORITY_WINDOW and self.ready_bytes < 2 * PRIORITY_WINDOW_BYTES

    def _take_early(self, entry: Entry) -> None:
        """Let a message join the window before those stored earlier, which it may overtake."""
        self.ready.append(entry)
        self.ready_bytes += entry.size
        self.ahead.taken.add(entry.seq)  # the window passes it over when it gets there
        self._note_group(entry)

    def _note_group(self, entry: Entry) -> None:
        if entry.message.grouped and self.groups is None:
            self.groups = MessageGroups(self.rules.groups)

    def offer_run(self, entries: Sequence[Entry]) -> None:
        """Messages were stored, one after the other."""
        size = sum([entry.size for entry in entries])
        fits = len(self.ready) + len(entries) <= WINDOW and self.ready_bytes + size <= WINDOW_BYTES
        if self.unloaded or not self.consumers or not fits or self.ahead.taken or entries[0].message.grouped:
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

    @property
    def wants_page(self) -> bool:
        """Whether the window should be filled from the store."""
        if not self.unloaded or self.paging or self.silent or not any(each.ready for each in self.consumers):
            return False
        if self.rules.prioritized:
            return len(self.ready) < PRIORITY_WINDOW and self.ready_bytes < PRIORITY_WINDOW_BYTES
        return len(self.ready) < PAGE and self.ready_bytes < WINDOW_BYTES

    @property
    def wants_ahead(self) -> int | None:
        """The number after which consumers that find nothing in the window want to read on; None: there are none."""
        if not (self.unloaded and self.consumers and self._choosy) or self.paging or self.silent:
            return None
        if self.rules.prioritized:  # what lies past the window may not come first
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
            self.loaded = found[-1].seq
            self.ahead.loaded(self.loaded)
        else:
            self.unloaded = 0
        self.ahead.read()
        self.forget_window()

    def load_ahead(self, entries: Iterable[Entry], window: int, after: int) -> None:
        """What the store answered to reading on after that number, for `wants_ahead`."""
        self.paging = False
        if window != self.window:
            return
        found = list(entries)
        kept = [entry for entry in self._known_again(found) if entry.seq > self.loaded]
        self.ahead.put(kept, after, found[-1].seq if found else None)
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
        back = sorted(entries, key=lambda entry: entry.seq)
        if not back:
            return
        for entry in back:
            entry.deliveries += 1
            entry.first_of_group = False
            self.returned[entry.seq] = entry.deliveries
        self.in_flight -= len(back)
        if self.ahead.taken and not self.rules.prioritized:
            back = self._left_in_store(back)
        self.ready_bytes += sum(entry.size for entry in back)
        if self.ready and back and back[-1].seq > self.ready[0].seq:
            self.ready = deque(sorted([*back, *self.ready], key=lambda entry: entry.seq))
        else:
            self.ready.extendleft(reversed(back))
        self._offer_again()
        self.forget_window()

    def _left_in_store(self, back: list[Entry]) -> list[Entry]:
        """Those of the window; those past it are not loaded, as before they were given out."""
        past = [entry.seq for entry in back if entry.seq in self.ahead.taken]
        self.ahead.taken.difference_update(past)
        self.ahead.forget()
        self.unloaded += len(past)
        return [entry for entry in back if entry.seq <= self.loaded]

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
        if self.rules.prioritized and not self._most_urgent_first():
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
            self.dispatched = max(self.dispatched, max([entry.seq for entry in entries]))
        return given

    def _most_urgent_first(self) -> bool:
        """Put the window in order of priority; False while too little of the queue is read to know what comes first."""
        half = len(self.ready) < PRIORITY_WINDOW // 2 and self.ready_bytes < PRIORITY_WINDOW_BYTES // 2
        if self.unloaded and half:
            return False
        self.ready = deque(sorted(self.ready, key=_urgency))
        self._offer_again()
        return True

    def tune(self, rules: DispatchRules) -> None:
        """Give out messages by these rules from now on."""
        if self.rules.prioritized and not rules.prioritized:
            self.ready = deque(sorted(self.ready, key=_number))
            self._offer_again()
        self.rules = rules

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
        if not self.is_awaited:
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
        if self.unloaded:  # the window has yet to come there, and is to pass them over
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
        choosing = Choosing(self._able(), self.name, self.destination, self.groups, self.rules)
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

    def take_out(self, numbers: Iterable[int]) -> set[int]:
        """Remove those of these stored messages that no consumer holds; which they are."""
        waiting = {entry.seq for entry in self.ready}
        unloaded = {seq for seq in numbers if seq > self.loaded and seq not in self.ahead.taken}
        gone = unloaded | waiting.intersection(numbers)
        self.ready = deque(entry for entry in self.ready if entry.seq not in gone)
        self.ready_bytes = sum(entry.size for entry in self.ready)
        self.unloaded = max(0, self.unloaded - len(unloaded))
        self.depth -= len(gone)
        for seq in gone:
            self.returned.pop(seq, None)
        self.ahead.take_out(gone)
        return gone

    def seize(self, numbers: Iterable[int]) -> set[int]:
        """Take those of these stored messages that no consumer holds, as if one held them now; which they are."""
        seized = self.take_out(numbers)
        self.depth += len(seized)
        self.in_flight += len(seized)
        if self.paging:  # what is being read for the window may hold them
            self.window += 1
        return seized


def _urgency(entry: Entry) -> tuple[int, int]:
    return -entry.message.priority, entry.seq


_number = attrgetter("seq")
