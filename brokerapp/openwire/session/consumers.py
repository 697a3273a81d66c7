"""Know what the consumers of an OpenWire connection hold, and translate their acknowledgements. No I/O.

An OpenWire client acknowledges by message ids: one message, or all from a first to a last one in the order in which its
consumer was given them. The broker wants the ids it gave to the deliveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import dropwhile

from brokerapp.errors import RequestRefused
from brokerapp.openwire.commands import ConsumerId, ConsumerInfo, MessageAck, OpenWireDestination

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

    ack_id: str  #: by which the broker knows it
    number: int  #: of the delivery on its connection: what the client calls its broker sequence id
    is_extended: bool = False  #: its acknowledgement gives no room for another one


@dataclass(slots=True)
class OpenWireConsumer:
    """A consumer of the client."""

    info: ConsumerInfo
    destination: OpenWireDestination
    deliveries: dict[str, Delivery] = field(default_factory=dict)  #: by message id, in the order of delivery

    @property
    def id(self) -> ConsumerId:
        """Return its id."""
        assert self.info.consumer_id is not None
        return self.info.consumer_id

    @property
    def name(self) -> str:
        """Return the id of its subscription."""
        return str(self.id)

    def hold(self, message_ids: Sequence[str], ack_ids: Sequence[str], first_number: int) -> None:
        """Note messages that are handed to it."""
        for number, (message_id, ack_id) in enumerate(zip(message_ids, ack_ids, strict=True), first_number):
            self.deliveries[message_id] = Delivery(ack_id, number, self.info.prefetch_size == 0)

    def acknowledged(self, ack: MessageAck) -> list[Delivery]:
        """Return what an acknowledgement names. Raises RequestRefused where the consumer holds no such message."""
        return [self.deliveries[each] for each in self._named(ack)]

    def take(self, ack: MessageAck) -> dict[str, Delivery]:
        """Return what an acknowledgement names, which the consumer holds no longer. Raises RequestRefused."""
        return {each: self.deliveries.pop(each) for each in self._named(ack)}

    def give_back(self, taken: dict[str, Delivery]) -> None:
        """Hold messages again whose acknowledgement was rolled back, ahead of later ones."""
        self.deliveries = {**taken, **self.deliveries}

    def _named(self, ack: MessageAck) -> list[str]:
        last = str(ack.last_message_id)
        if last not in self.deliveries:
            raise RequestRefused(f"Could not correlate acknowledgment with dispatched message: {last}")
        first = str(ack.first_message_id) if ack.first_message_id is not None else last
        if first == last:
            return [last]
        named: list[str] = []
        held = self.deliveries
        for each in dropwhile(lambda id: first in held and id != first, held):
            named.append(each)
            if each == last:
                break
        return named

    def unseen(self, last_delivered: int) -> list[str]:
        """Return the ack ids of messages that the application had not seen when the consumer was closed.

        `last_delivered` is the number of the last one it saw, or one of LAST_DELIVERED_UNKNOWN: it may have seen all.
        """
        held = list(self.deliveries.values())
        if last_delivered == LAST_DELIVERED_UNKNOWN:
            return []
        last = next((at for at, each in enumerate(held) if each.number == last_delivered), -1)
        return [each.ack_id for each in held[last + 1 :]]
