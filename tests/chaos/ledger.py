"""Record what the clients of a run saw, in order, and check it against the promises. Pure.

What is promised, and judged here (docs/conformance.md, "Under faults"):

* what was confirmed reaches every place that is to have it: *lost* otherwise;
* it comes once, or says that it may have come before: *repeated* otherwise. While a bridge does not know whether its
  target has a message, both brokers may give it out, in any order: one of them flags it;
* it never comes again at the broker that confirmed its acknowledgement: *returned* otherwise;
* what one producer sent comes in order where a place has one consumer, and in each group where it has several:
  *disordered* otherwise. What is flagged has lost its place; what was not confirmed had none;
* a group is one consumer's at a time: *divided* otherwise;
* of a transaction all comes or nothing: *torn* otherwise;
* what a program consumes and passes on in one transaction, it passes on once: *doubled* otherwise;
* what a consumer rejected for sure (NACK) is a dead letter once, and comes no more where it died: *lost*, *repeated*,
  *returned* otherwise. A NACK that was not confirmed may have come to nothing: then the message comes again, flagged;
* what was acknowledged for sure is no dead letter: *undead* otherwise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Order(StrEnum):
    """In what what is sent to a place stays in order."""

    NONE = "nothing"
    PRODUCER = "what one producer sends"
    GROUP = "what one producer sends in one group"


class Wrong(StrEnum):
    """What can be wrong."""

    LOST = "lost"
    REPEATED = "repeated without a flag"
    RETURNED = "returned though its acknowledgement was confirmed"
    DISORDERED = "disordered"
    DIVIDED = "one group with two consumers"
    TORN = "a transaction in part"
    DOUBLED = "passed on more than once"
    UNDEAD = "acknowledged, and a dead letter"
    INVENTED = "never sent"


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise."""

    wrong: Wrong
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.wrong}: {self.place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message: which of its producer's it is, by number, and what it belongs to."""

    id: str
    producer: str
    number: int
    places: tuple[str, ...]  #: that are to have it
    group: str = ""
    unit: str = ""  #: the transaction it was sent in
    source: str = ""  #: the message that was acknowledged in that transaction, to be passed on as this one


@dataclass(frozen=True, slots=True)
class Stay:
    """A consumer, from its connecting to the end of that connection."""

    consumer: str
    place: str
    broker: str
    number: int

    def __str__(self) -> str:
        return f"{self.consumer}#{self.number} at {self.broker}"


@dataclass(slots=True)
class Given:
    """A message given to a consumer. Moments are seconds of the run, and places in the order of all that happened."""

    id: str
    stay: Stay
    flagged: bool
    at: float
    step: int
    settling: int | None = None  #: the step at which it was acknowledged, or rejected
    rejected: bool = False
    settled: float | None = None  #: when that was confirmed

    def __str__(self) -> str:
        flag = ", flagged" if self.flagged else ""
        how = "rejected" if self.rejected else "settled"
        settled = f", {how} {self.settled:.2f} s" if self.settled is not None else ""
        return f"{self.at:.2f} s to {self.stay}{flag}{settled}"


#: Seconds after a confirmed acknowledgement in which what had been given before may still be on its way.
ON_ITS_WAY = 1.0


@dataclass
class Ledger:
    """Of one run. `orders` says in what each place keeps order, `graves` where its dead letters come, if any."""

    orders: Mapping[str, Order]
    graves: Mapping[str, str] = field(default_factory=dict)
    sent: dict[str, Sent] = field(default_factory=dict)
    confirmed: dict[str, float] = field(default_factory=dict)
    given: dict[str, list[Given]] = field(default_factory=lambda: defaultdict(list))  #: by place
    _step: int = 0

    # -- what happens

    def send(self, message: Sent) -> None:
        """It is about to be sent."""
        self.sent[message.id] = message

    def confirm(self, ids: Iterable[str], at: float) -> None:
        """The broker has confirmed these."""
        self.confirmed.update(dict.fromkeys(ids, at))

    def give(self, id: str, stay: Stay, at: float, *, flagged: bool) -> Given:
        """A consumer got it."""
        self._step += 1
        given = Given(id, stay, flagged, at, self._step)
        self.given[stay.place].append(given)
        return given

    def settle(self, given: Given, *, rejected: bool = False) -> None:
        """It is about to be acknowledged, or rejected."""
        self._step += 1
        given.settling, given.rejected = self._step, rejected

    # -- what is to come

    def missing(self) -> list[tuple[str, str]]:
        """Place and id of what was confirmed and has not come."""
        came = {(place, each.id) for place, given in self.given.items() for each in given}
        wanted = [(place, id) for id in self.confirmed for place in self.sent[id].places]
        wanted += [
            (grave, each.id)
            for place, grave in self.graves.items()
            for each in self.given[place]
            if each.rejected and each.settled is not None
        ]
        return [each for each in wanted if each not in came]

    def unsettled(self) -> int:
        """How many have come whose acknowledgement was never confirmed."""
        given = [((place, each.id), each.settled) for place, all in self.given.items() for each in all]
        return len({key for key, _ in given} - {key for key, settled in given if settled is not None})

    # -- judgement

    def violations(self) -> list[Violation]:
        """All broken promises."""
        found = [Violation(Wrong.LOST, place, self._described(place, id)) for place, id in self.missing()]
        found += self._torn()
        found += self._doubled()
        for place, grave in self.graves.items():
            found += self._undead(place, grave)
        for place, given in self.given.items():
            found += self._strange(place, given)
            found += self._again(place, given)
            found += self._disordered(place, given)
            found += self._divided(place, given)
        return found

    def _described(self, place: str, id: str) -> str:
        confirmed = f"confirmed {self.confirmed[id]:.2f} s" if id in self.confirmed else "not confirmed"
        history = "; ".join(str(each) for each in self.given.get(place, ()) if each.id == id)
        return f"{id} ({confirmed}) {history}".rstrip()

    def _strange(self, place: str, given: list[Given]) -> Iterator[Violation]:
        dying = {each.id for source, grave in self.graves.items() if grave == place for each in self._rejected(source)}
        for each in given:
            if each.id not in self.sent or (place not in self.sent[each.id].places and each.id not in dying):
                yield Violation(Wrong.INVENTED, place, str(each.id))

    def _rejected(self, place: str) -> Iterator[Given]:
        return (each for each in self.given[place] if each.rejected)

    def _undead(self, place: str, grave: str) -> Iterator[Violation]:
        """What is a dead letter was neither acknowledged for sure, nor comes again where it died."""
        died: dict[str, float] = {}
        for each in self.given[grave]:
            died.setdefault(each.id, each.at)
        for each in self.given[place]:
            if each.id not in died:
                continue
            if each.at > died[each.id] + ON_ITS_WAY:
                history = f"{self._described(place, each.id)}; a dead letter {died[each.id]:.2f} s"
                yield Violation(Wrong.RETURNED, place, history)
            elif each.settled is not None and not each.rejected:
                yield Violation(Wrong.UNDEAD, place, self._described(place, each.id))

    def _again(self, place: str, given: list[Given]) -> Iterator[Violation]:
        before: dict[str, list[Given]] = defaultdict(list)
        for each in given:
            former = before[each.id]
            if not each.flagged and any(_is_news(one, each) for one in former):
                yield Violation(Wrong.REPEATED, place, self._described(place, each.id))
            elif any(_is_settled_for(one, each) for one in former):
                yield Violation(Wrong.RETURNED, place, self._described(place, each.id))
            former.append(each)

    def _disordered(self, place: str, given: list[Given]) -> Iterator[Violation]:
        order = self.orders[place]
        last: dict[tuple[str, str], Sent] = {}
        for each in given if order is not Order.NONE else ():
            message = self.sent.get(each.id)
            if message is None or each.flagged or each.id not in self.confirmed:
                continue
            line = message.producer, message.group if order is Order.GROUP else ""
            former = last.setdefault(line, message)
            if former.number > message.number:
                what = f"{self._described(place, each.id)} after {self._described(place, former.id)}"
                yield Violation(Wrong.DISORDERED, place, what)
            else:
                last[line] = message

    def _divided(self, place: str, given: list[Given]) -> Iterator[Violation]:
        """A group's message goes to one, unflagged, while another holds some of it that it acknowledges later."""
        if self.orders[place] is not Order.GROUP:
            return
        holding: dict[str, list[Given]] = defaultdict(list)
        for each in given:
            group = self.sent[each.id].group if each.id in self.sent else ""
            if not group:
                continue
            held = holding[group] = [one for one in holding[group] if one.settling is None or one.settling > each.step]
            others = [one for one in held if one.stay != each.stay and one.settled is not None]
            if others and not each.flagged:
                what = f"{group}: {each.id} {each}, while {others[0].id} {others[0]}"
                yield Violation(Wrong.DIVIDED, place, what)
            held.append(each)

    def _torn(self) -> Iterator[Violation]:
        units: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for message in self.sent.values():
            if message.unit:
                units[message.unit] += [(place, message.id) for place in message.places]
        came = {(place, each.id) for place, given in self.given.items() for each in given}
        for unit, parts in units.items():
            there = [part for part in parts if part in came]
            if there and len(there) < len(parts):
                missing = ", ".join(f"{id} at {place}" for place, id in parts if (place, id) not in came)
                yield Violation(Wrong.TORN, parts[0][0], f"{unit}: without {missing}")

    def _doubled(self) -> Iterator[Violation]:
        came = {each.id for given in self.given.values() for each in given}
        passed_on: dict[str, list[str]] = defaultdict(list)
        for id in came & self.sent.keys():
            passed_on[self.sent[id].source].append(id)
        for source, ids in passed_on.items():
            if source and len(ids) > 1:
                yield Violation(Wrong.DOUBLED, self.sent[ids[0]].places[0], f"{source} as {', '.join(sorted(ids))}")

    # -- numbers

    def numbers(self) -> Counter[str]:
        """What the run was made of."""
        given = [each for all in self.given.values() for each in all]
        return Counter(
            sent=len(self.sent), confirmed=len(self.confirmed), given=len(given),
            flagged=sum(each.flagged for each in given), settled=sum(each.settled is not None for each in given),
            again=len(given) - len({(each.stay.place, each.id) for each in given}),
            stays=len({each.stay for each in given}),
        )  # fmt: skip


def _is_news(former: Given, later: Given) -> bool:
    """Whether the later delivery should have been flagged for the former's sake."""
    return former.stay.broker == later.stay.broker or not former.flagged


def _is_settled_for(former: Given, later: Given) -> bool:
    """Whether the later delivery should not have been, as the former was acknowledged."""
    settled = former.settled is not None and former.settled + ON_ITS_WAY < later.at
    return settled and former.stay.broker == later.stay.broker
