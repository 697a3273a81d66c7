"""Record what clients and operators did with messages and saw of them. Pure.

Written by the clients of a load (clients.py) while they work, and by nobody else: it knows no trace, no store and no
counter of the broker. numbers.py computes from it what the broker's numbers have to be.

Destinations are in native form: `queue://N`, `topic://N`, `subscription://CLIENT:NAME`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain


@dataclass(frozen=True, slots=True)
class Span:
    """Something happened at the broker after the first and before the second moment, microseconds since the epoch."""

    after: int
    before: int

    def __sub__(self, earlier: Span) -> Span:
        """The shortest and the longest time that may have passed since then."""
        return Span(max(0, self.after - earlier.before), max(0, self.before - earlier.after))


#: How a copy came to be where it is.
SENT, DEAD, MOVED, COPIED, RETURNED = "sent", "dead letter", "moved", "copied", "returned"
#: How a delivery ended, and how a copy left its place. What is put off is rejected and returns after a delay.
ACKED, REJECTED, LEFT = "acked", "rejected", "left"
EXPIRED, DROPPED, REMOVED, PUT_OFF = "expired", "dropped", "removed", "put off"


@dataclass(slots=True)
class Message:
    """One message that a client sent; `is_kept` is False when its transaction was rolled back.

    The broker got it in `born`, and kept or forgot it in `when`: later, in a transaction.
    """

    number: int
    by: str  #: client id
    to: str
    size: int  #: bytes of the body
    born: Span
    when: Span
    headers: Mapping[str, str] = field(default_factory=dict)
    is_kept: bool = True
    id: str = ""  #: message-id, once a client has seen it


@dataclass(slots=True, eq=False)
class Delivery:
    """A copy that was given to a consumer. Without an end the consumer still holds it."""

    copy: Copy
    consumer: str
    given: Span
    ack: str = ""  #: what the client names it by
    ended: Span | None = None
    how: str = ""
    is_undone: bool = False  #: whether the acknowledgement was prepared, and then rolled back


@dataclass(slots=True, eq=False)
class Copy:
    """A message at one place. Subscribers of a topic have a copy each, which is kept nowhere."""

    message: Message
    place: str
    original: str  #: where it was sent to
    came: Span
    by: str = SENT
    deliveries: list[Delivery] = field(default_factory=list)
    gone: Span | None = None
    how: str = ""
    reason: str = ""
    missed_by: str = ""  #: the consumer that never got it
    successor: Copy | None = None  #: the copy it became: a dead letter, or what was moved or came back

    @property
    def is_stored(self) -> bool:
        """Whether the broker keeps it until it is acknowledged."""
        return not self.place.startswith("topic://")

    @property
    def holder(self) -> Delivery | None:
        """The delivery that has not ended."""
        return self.deliveries[-1] if self.deliveries and self.deliveries[-1].ended is None else None


class Ledger:
    """All of it. Methods are named by what happened."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.copies: list[Copy] = []
        #: When consumers subscribed, and when they went away, by place and client id.
        self.subscribed: dict[tuple[str, str], Span] = {}
        self.left: dict[tuple[str, str], Span] = {}
        self._here: dict[tuple[str, int], list[Copy]] = {}

    # -- what clients write

    def send(self, by: str, to: str, size: int, headers: Mapping[str, str] | None = None) -> Message:
        """A client is about to send a message; `arrive` or `roll_back` follows."""
        message = Message(len(self.messages), by, to, size, Span(0, 0), Span(0, 0), headers or {})
        self.messages.append(message)
        return message

    def arrive(self, messages: Iterable[Message], places: Mapping[str, Iterable[str]] | None, when: Span) -> None:
        """The broker has them. `places`: where copies come, by where a message was sent; by default there."""
        for each in messages:
            each.when = when
            for place in (places or {}).get(each.to, [] if each.to.startswith("topic://") else [each.to]):
                self.come(each, place, each.to, when)

    def roll_back(self, messages: Iterable[Message], when: Span) -> None:
        """Nothing came of their transaction."""
        for each in messages:
            each.is_kept, each.when = False, when

    def come(self, message: Message, place: str, original: str, when: Span, by: str = SENT) -> Copy:
        """A copy of a message is at a place from now on."""
        copy = Copy(message, place, original, when, by)
        self.copies.append(copy)
        self._here.setdefault((place, message.number), []).append(copy)
        return copy

    def give(self, number: int, place: str, consumer: str, before: int, ack: str = "") -> Delivery:
        """A consumer got a message at a place; it read it just before that moment."""
        message = self.messages[number]
        if place.startswith("topic://"):
            copy = self.come(message, place, message.to, message.when)
        else:
            copy = self.at(number, place)
        released = [each.ended.after for each in copy.deliveries if each.ended is not None]
        delivery = Delivery(copy, consumer, Span(max(copy.came.after, *released, 0), before), ack)
        copy.deliveries.append(delivery)
        return delivery

    def end(self, delivery: Delivery, how: str, when: Span) -> None:
        """A delivery ended: with ACKED the copy is gone, else it is free again until `leave` says otherwise."""
        delivery.ended, delivery.how = when, how
        if how == ACKED:
            self.leave(delivery.copy, ACKED, when)

    def leave(self, copy: Copy, how: str, when: Span, reason: str = "") -> None:
        """A copy is no more where it was."""
        assert copy.gone is None, f"message {copy.message.number} left {copy.place} twice"
        copy.gone, copy.how, copy.reason = when, how, reason
        self._here[copy.place, copy.message.number].remove(copy)

    def become(self, copy: Copy, place: str, how: str, when: Span, by: str, reason: str = "") -> Copy:
        """A copy left its place for another one, or for the same one again."""
        self.leave(copy, how, when, reason)
        original = copy.original if by == RETURNED else place
        copy.successor = self.come(copy.message, place, original, when, by)
        return copy.successor

    # -- what is asked of it

    def at(self, number: int, place: str) -> Copy:
        """The copy of a message that waits at a place."""
        return next(each for each in self._here[place, number] if each.holder is None)

    def waiting(self, place: str) -> list[Copy]:
        """What is at a place and with no consumer, in the order in which it came."""
        return [each for each in self.present(place) if each.holder is None]

    def present(self, place: str) -> list[Copy]:
        """What is at a place."""
        return [each for each in self.copies if each.place == place and each.gone is None and each.is_stored]

    @property
    def kept(self) -> list[Message]:
        """Messages that were sent and not rolled back."""
        return [each for each in self.messages if each.is_kept]

    @property
    def deliveries(self) -> Iterator[Delivery]:
        """All that were given to consumers."""
        return chain.from_iterable(each.deliveries for each in self.copies)

    @property
    def places(self) -> list[str]:
        """All destinations at which anything happened, in order of their names."""
        return sorted({each.place for each in self.copies} | {each.to for each in self.messages})
