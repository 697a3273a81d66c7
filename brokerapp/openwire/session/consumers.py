"""Know what the consumers of an OpenWire connection hold, and translate their acknowledgements. No I/O.

An OpenWire client acknowledges by message ids: one message, or all from a first to a last one in the order in which its
consumer was given them. The broker wants the ids it gave to the deliveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from brokerapp.errors import RequestRefused
from brokerapp.openwire.commands import ConsumerId, ConsumerInfo, MessageAck, MessageId, OpenWireDestination
from brokerapp.openwire.commands import data_types as t

#: What a RemoveInfo says when the client does not know which message its application saw last.
LAST_DELIVERED_UNKNOWN = -2


class AckType(IntEnum):
    """What a MessageAck says of the messages it names."""

    DELIVERED = 0  #: the client has them, and may have as many more
    POISON = 1  #: they failed too often: dead letters
    STANDARD = 2  #: consumed
    REDELIVERED = 3  #: the client hands them to its application again
    INDIVIDUAL = 4  #: consumed, this one alone
    UNMATCHED = 5  #: the client dropped them, as its selector did not match
    EXPIRED = 6


@dataclass(slots=True)
class Delivery:
    """A message that a consumer holds."""

    message_id: str
    ack_id: str  #: by which the broker knows it
    number: int  #: of the delivery on its connection: what the client calls its broker sequence id
    is_extended: bool = False  #: its acknowledgement gives no room for another one


@dataclass(slots=True)
class OpenWireConsumer:
    """A consumer of the client."""

    info: ConsumerInfo
    destination: OpenWireDestination
    deliveries: dict[int, Delivery] = field(default_factory=dict)  #: by number, in the order of delivery
    has_delivered: bool = False  #: it was given messages on this connection

    @property
    def id(self) -> ConsumerId:
        """Return its id."""
        assert self.info.consumer_id is not None
        return self.info.consumer_id

    @property
    def name(self) -> str:
        """Return the id of its subscription."""
        return str(self.id)

    @property
    def takes_copies(self) -> bool:
        """Return whether it gets messages of topics, which nobody else is to get."""
        return self.destination.kind in (t.TOPIC, t.TEMP_TOPIC)

    def hold(self, message_ids: Sequence[str], ack_ids: Sequence[str], first_number: int, *, pulls: bool) -> None:
        """Note messages that are handed to it; `pulls`: it gets none but those it asks for."""
        self.has_delivered = True
        for number, (message_id, ack_id) in enumerate(zip(message_ids, ack_ids, strict=True), first_number):
            self.deliveries[number] = Delivery(message_id, ack_id, number, pulls)

    def up_to(self, id: MessageId | None) -> list[Delivery]:
        """Return what it holds up to a message; nothing where that is none of them."""
        last = self._number_of(id)
        return [] if last is None else self._between(next(iter(self.deliveries)), last)

    def take(self, ack: MessageAck) -> list[Delivery]:
        """Return what an acknowledgement names, which the consumer holds no longer.

        An individual one names its last message, any other one all from the first to the last. Raises RequestRefused
        where the consumer does not hold these.
        """
        last = self._held_number(ack.last_message_id, "last")
        if ack.ack_type == AckType.INDIVIDUAL or ack.first_message_id == ack.last_message_id:
            return [self.deliveries.pop(last)]
        if ack.first_message_id is None:
            first = next(iter(self.deliveries))
        else:
            first = self._held_number(ack.first_message_id, "first")
        taken = self._between(first, last)
        if not taken:
            raise RequestRefused(f"the first message of an acknowledgement, {ack.first_message_id}, is behind its last")
        for each in taken:
            del self.deliveries[each.number]
        return taken

    def give_back(self, taken: Sequence[Delivery]) -> None:
        """Hold messages again whose acknowledgement was rolled back, in their places."""
        back = {each.number: each for each in taken}
        self.deliveries = dict(sorted({**back, **self.deliveries}.items()))

    def _between(self, first: int, last: int) -> list[Delivery]:
        """Return the deliveries with these numbers and between, in order."""
        held = self.deliveries
        if last - first < len(held):
            return [held[number] for number in range(first, last + 1) if number in held]
        return [each for number, each in held.items() if first <= number <= last]

    def _held_number(self, id: MessageId | None, which: str) -> int:
        number = self._number_of(id)
        if number is None:
            raise RequestRefused(f"the {which} message of an acknowledgement, {id}, is not held by {self.id}")
        return number

    def _number_of(self, id: MessageId | None) -> int | None:
        """Return the number of the delivery of a message; of several the first. None: it holds no such message.

        The client repeats the number that it was given, unless it reconnected meanwhile.
        """
        if id is None:
            return None
        text, by_number = str(id), self.deliveries.get(id.broker_sequence_id)
        if by_number is not None and by_number.message_id == text:
            return by_number.number
        return next((each.number for each in self.deliveries.values() if each.message_id == text), None)

    def unseen(self, last_delivered: int) -> list[str]:
        """Return the ack ids of messages that the application had not seen when the consumer was closed.

        `last_delivered` is the number of the last one it saw, or LAST_DELIVERED_UNKNOWN: it may have seen all. Where
        the consumer does not hold that one it saw none of those that it holds, as in ActiveMQ.
        """
        if last_delivered == LAST_DELIVERED_UNKNOWN:
            return []
        last = last_delivered if last_delivered in self.deliveries else 0
        return [each.ack_id for number, each in self.deliveries.items() if not 0 < number <= last]
