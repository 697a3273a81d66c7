"""Record what the clients of a run saw, in order, and check it against the guarantees. Pure.

The guarantees (docs/conformance.md, "Under faults") and their violations:

* LOST: a confirmed message must reach each of its places.
* DUPLICATE: it arrives once, or has the header redelivered. While a bridge does not know whether its target has a
  message, both brokers may deliver it, in any order; one of them sets the header.
* REDELIVERED_AFTER_ACK: it never arrives again at the broker that confirmed its acknowledgement.
* OUT_OF_ORDER: messages of one producer arrive in order where a place has one consumer, and in each message group
  where it has several. Redelivered and unconfirmed messages are exempt.
* SPLIT_GROUP: a message group has one consumer at a time.
* PARTIAL_TRANSACTION: of a transaction all messages arrive, or none.
* FORWARDED_TWICE: what is consumed and forwarded in one transaction is forwarded once.
* A message whose rejection (NACK) was confirmed becomes one dead letter and does not arrive again in its place: LOST,
  DUPLICATE, REDELIVERED_AFTER_ACK otherwise. A NACK that was not confirmed may be lost: then it is redelivered.
* DEAD_LETTERED_AFTER_ACK: a message whose acknowledgement was confirmed is no dead letter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Order(StrEnum):
    """The scope within which a place keeps messages in order."""

    NONE = "nothing"
    PRODUCER = "what one producer sends"
    GROUP = "what one producer sends in one group"


class ViolationKind(StrEnum):
    """Kinds of violations."""

    LOST = "lost"
    DUPLICATE = "delivered twice without the header redelivered"
    REDELIVERED_AFTER_ACK = "redelivered after a confirmed acknowledgement"
    OUT_OF_ORDER = "out of order"
    SPLIT_GROUP = "a message group with two consumers"
    PARTIAL_TRANSACTION = "part of a transaction"
    FORWARDED_TWICE = "forwarded more than once"
    DEAD_LETTERED_AFTER_ACK = "dead-lettered after a confirmed acknowledgement"
    UNKNOWN = "never sent"


@dataclass(frozen=True, slots=True)
class Violation:
    """A guarantee that was broken."""

    kind: ViolationKind
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message with its number among those of its producer, its group and its transaction."""

    id: str
    producer: str
    number: int
    places: tuple[str, ...]  #: that are to have it
    group: str = ""
    unit: str = ""  #: the transaction it was sent in
    source: str = ""  #: the message that was acknowledged in that transaction, to be passed on as this one


@dataclass(frozen=True, slots=True)
class ConsumerConnection:
    """One connection of a consumer."""

    consumer: str
    place: str
    broker: str
    number: int

    def __str__(self) -> str:
        return f"{self.consumer}#{self.number} at {self.broker}"


@dataclass(slots=True)
class Delivery:
    """A delivery of a message to a consumer. Times are seconds of the run; steps number all events in order."""

    id: str
    connection: ConsumerConnection
    redelivered: bool
    at: float
    step: int
    settled_at_step: int | None = None  #: the step at which it was acknowledged, or rejected
    rejected: bool = False
    confirmed_at: float | None = None  #: when that was confirmed

    def __str__(self) -> str:
        flag = ", flagged" if self.redelivered else ""
        how = "rejected" if self.rejected else "settled"
        settled = f", {how} {self.confirmed_at:.2f} s" if self.confirmed_at is not None else ""
        return f"{self.at:.2f} s to {self.connection}{flag}{settled}"


#: Seconds after a confirmed acknowledgement in which an earlier delivery may still arrive.
IN_TRANSIT_SECONDS = 1.0


@dataclass
class Ledger:
    """The record of one run: the order that each place keeps, and the place of its dead letters."""

    orders: Mapping[str, Order]
    dead_letter_places: Mapping[str, str] = field(default_factory=dict)
    sent: dict[str, Sent] = field(default_factory=dict)
    confirmed: dict[str, float] = field(default_factory=dict)
    deliveries: dict[str, list[Delivery]] = field(default_factory=lambda: defaultdict(list))  #: by place
    _step: int = 0

    # -- events

    def send(self, message: Sent) -> None:
        """Note that a message is about to be sent."""
        self.sent[message.id] = message

    def confirm(self, ids: Iterable[str], at: float) -> None:
        """Note that the broker confirmed these messages."""
        self.confirmed.update(dict.fromkeys(ids, at))

    def deliver(self, id: str, stay: ConsumerConnection, at: float, *, flagged: bool) -> Delivery:
        """Note that a consumer received a message."""
        self._step += 1
        given = Delivery(id, stay, flagged, at, self._step)
        self.deliveries[stay.place].append(given)
        return given

    def settle(self, given: Delivery, *, rejected: bool = False) -> None:
        """Note that a delivery is about to be acknowledged, or rejected."""
        self._step += 1
        given.settled_at_step, given.rejected = self._step, rejected

    # -- what is outstanding

    def missing(self) -> list[tuple[str, str]]:
        """Return place and id of each confirmed message that has not arrived."""
        came = {(place, each.id) for place, given in self.deliveries.items() for each in given}
        wanted = [(place, id) for id in self.confirmed for place in self.sent[id].places]
        wanted += [
            (grave, each.id)
            for place, grave in self.dead_letter_places.items()
            for each in self.deliveries[place]
            if each.rejected and each.confirmed_at is not None
        ]
        return [each for each in wanted if each not in came]

    def unsettled(self) -> int:
        """Count the messages that arrived and whose acknowledgement was never confirmed."""
        given = [((place, each.id), each.confirmed_at) for place, all in self.deliveries.items() for each in all]
        return len({key for key, _ in given} - {key for key, settled in given if settled is not None})

    # -- violations

    def violations(self) -> list[Violation]:
        """Return all violations."""
        found = [Violation(ViolationKind.LOST, place, self._described(place, id)) for place, id in self.missing()]
        found += self._partial_transactions()
        found += self._forwarded_twice()
        for place, grave in self.dead_letter_places.items():
            found += self._dead_lettered(place, grave)
        for place, given in self.deliveries.items():
            found += self._unknown(place, given)
            found += self._redelivered(place, given)
            found += self._out_of_order(place, given)
            found += self._split_groups(place, given)
        return found

    def _described(self, place: str, id: str) -> str:
        confirmed = f"confirmed {self.confirmed[id]:.2f} s" if id in self.confirmed else "not confirmed"
        history = "; ".join(str(each) for each in self.deliveries.get(place, ()) if each.id == id)
        return f"{id} ({confirmed}) {history}".rstrip()

    def _unknown(self, place: str, given: list[Delivery]) -> Iterator[Violation]:
        dying = {
            each.id
            for source, grave in self.dead_letter_places.items()
            if grave == place
            for each in self._rejected(source)
        }
        for each in given:
            if each.id not in self.sent or (place not in self.sent[each.id].places and each.id not in dying):
                yield Violation(ViolationKind.UNKNOWN, place, str(each.id))

    def _rejected(self, place: str) -> Iterator[Delivery]:
        return (each for each in self.deliveries[place] if each.rejected)

    def _dead_lettered(self, place: str, grave: str) -> Iterator[Violation]:
        """Yield dead letters that were acknowledged, and those that arrived again in the place they came from."""
        died: dict[str, float] = {}
        for each in self.deliveries[grave]:
            died.setdefault(each.id, each.at)
        for each in self.deliveries[place]:
            if each.id not in died:
                continue
            if each.at > died[each.id] + IN_TRANSIT_SECONDS:
                history = f"{self._described(place, each.id)}; a dead letter {died[each.id]:.2f} s"
                yield Violation(ViolationKind.REDELIVERED_AFTER_ACK, place, history)
            elif each.confirmed_at is not None and not each.rejected:
                yield Violation(ViolationKind.DEAD_LETTERED_AFTER_ACK, place, self._described(place, each.id))

    def _redelivered(self, place: str, given: list[Delivery]) -> Iterator[Violation]:
        before: dict[str, list[Delivery]] = defaultdict(list)
        for each in given:
            former = before[each.id]
            if not each.redelivered and any(_must_be_flagged(one, each) for one in former):
                yield Violation(ViolationKind.DUPLICATE, place, self._described(place, each.id))
            elif any(_is_redelivered_after_ack(one, each) for one in former):
                yield Violation(ViolationKind.REDELIVERED_AFTER_ACK, place, self._described(place, each.id))
            former.append(each)

    def _out_of_order(self, place: str, given: list[Delivery]) -> Iterator[Violation]:
        order = self.orders[place]
        last: dict[tuple[str, str], Sent] = {}
        for each in given if order is not Order.NONE else ():
            message = self.sent.get(each.id)
            if message is None or each.redelivered or each.id not in self.confirmed:
                continue
            line = message.producer, message.group if order is Order.GROUP else ""
            former = last.setdefault(line, message)
            if former.number > message.number:
                what = f"{self._described(place, each.id)} after {self._described(place, former.id)}"
                yield Violation(ViolationKind.OUT_OF_ORDER, place, what)
            else:
                last[line] = message

    def _split_groups(self, place: str, given: list[Delivery]) -> Iterator[Violation]:
        """Yield deliveries to one consumer while another holds messages of the group that it acknowledges later."""
        if self.orders[place] is not Order.GROUP:
            return
        holding: dict[str, list[Delivery]] = defaultdict(list)
        for each in given:
            group = self.sent[each.id].group if each.id in self.sent else ""
            if not group:
                continue
            held = holding[group] = [
                one for one in holding[group] if one.settled_at_step is None or one.settled_at_step > each.step
            ]
            others = [one for one in held if one.connection != each.connection and one.confirmed_at is not None]
            if others and not each.redelivered:
                what = f"{group}: {each.id} {each}, while {others[0].id} {others[0]}"
                yield Violation(ViolationKind.SPLIT_GROUP, place, what)
            held.append(each)

    def _partial_transactions(self) -> Iterator[Violation]:
        units: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for message in self.sent.values():
            if message.unit:
                units[message.unit] += [(place, message.id) for place in message.places]
        came = {(place, each.id) for place, given in self.deliveries.items() for each in given}
        for unit, parts in units.items():
            there = [part for part in parts if part in came]
            if there and len(there) < len(parts):
                missing = ", ".join(f"{id} at {place}" for place, id in parts if (place, id) not in came)
                yield Violation(ViolationKind.PARTIAL_TRANSACTION, parts[0][0], f"{unit}: without {missing}")

    def _forwarded_twice(self) -> Iterator[Violation]:
        came = {each.id for given in self.deliveries.values() for each in given}
        passed_on: dict[str, list[str]] = defaultdict(list)
        for id in came & self.sent.keys():
            passed_on[self.sent[id].source].append(id)
        for source, ids in passed_on.items():
            if source and len(ids) > 1:
                yield Violation(
                    ViolationKind.FORWARDED_TWICE, self.sent[ids[0]].places[0], f"{source} as {', '.join(sorted(ids))}"
                )

    # -- numbers

    def numbers(self) -> Counter[str]:
        """Count messages and deliveries."""
        given = [each for all in self.deliveries.values() for each in all]
        return Counter(
            sent=len(self.sent), confirmed=len(self.confirmed), deliveries=len(given),
            redelivered=sum(each.redelivered for each in given),
            acknowledged=sum(each.confirmed_at is not None for each in given),
            duplicates=len(given) - len({(each.connection.place, each.id) for each in given}),
            connections=len({each.connection for each in given}),
        )  # fmt: skip


def _must_be_flagged(former: Delivery, later: Delivery) -> bool:
    """Return whether the former delivery requires the header redelivered on the later one."""
    return former.connection.broker == later.connection.broker or not former.redelivered


def _is_redelivered_after_ack(former: Delivery, later: Delivery) -> bool:
    """Return whether the former delivery was acknowledged, which rules the later one out."""
    settled = former.confirmed_at is not None and former.confirmed_at + IN_TRANSIT_SECONDS < later.at
    return settled and former.connection.broker == later.connection.broker
