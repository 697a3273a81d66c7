"""Speak OpenWire with an ActiveMQ at the other end of a bridge, as its own network connectors do.

It knows a message by its id when it is sent again, as long as the queue has it or its audit remembers it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.errors import BrokerError, InvalidDestination, OpenWireError, RequestRefused
from brokerapp.model.broker_path import Path
from brokerapp.model.transport_connector import MAX_BODY_BYTES
from brokerapp.network.links.broker_link import BridgedMessage, BridgeSubscription, LinkEvents, OutgoingMessage
from brokerapp.network.links.openwire_connection import SESSION, NumberedCommand
from brokerapp.network.links.openwire_messages import (
    bridged_message,
    command_of,
    consumer_event,
    consumer_info,
)
from brokerapp.network.links.remote_consumers import ConsumerEvent, ConsumerStarted, RemoteConsumer
from brokerapp.openwire.commands import (
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessageId,
    OpenWireDestination,
    ProducerId,
    RemoveInfo,
    RemoveSubscriptionInfo,
    WireThrowable,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.message_content import deflate
from brokerapp.openwire.session.consumers import AckType
from brokerapp.openwire.session.destinations import openwire_destination

logger = logging.getLogger(__name__)

#: Advisories that an ActiveMQ sends before one is acknowledged, as its own bridges have it; acknowledged at half of it.
ADVISORY_PREFETCH = 1_000
#: Bytes that a message may have in its frame beside its body and the characters of its headers.
_FRAME_OVERHEAD = 1_024
#: Bytes of shorter bodies are not worth the time to compress them.
_MIN_COMPRESSED_BYTES = 512
#: `operation_type` of a DestinationInfo.
_CREATE, _DELETE = 0, 1
#: What a RemoveInfo says of a bridge's consumer: no application saw what it held.
_NOTHING_SEEN = -1


@dataclass(slots=True)
class _Subscription:
    """A consumer of this link."""

    name: str
    id: ConsumerId
    destination: OpenWireDestination
    told: Callable[[BridgedMessage], None]


@dataclass(slots=True)
class _Advisories:
    """The consumer that hears of consumers."""

    id: ConsumerId
    destination: OpenWireDestination
    told: Callable[[ConsumerEvent], None]
    unacked: list[MessageId] = field(default_factory=list)


class LinkConnection(Protocol):
    """The connection of a link, however it came to be."""

    name: str
    remote: str
    remote_id: str
    client_id: str
    max_frame_size: int
    connection_id: ConnectionId
    producer_id: ProducerId
    lost: asyncio.Future[str]
    on_dispatch: Callable[[MessageDispatch], None]
    events: LinkEvents

    def send(self, command: NumberedCommand, receipt: str | None = None) -> None:
        """Write a command; the broker answers it where there is a receipt."""

    def pause_reading(self, held: bool) -> None:
        """Read nothing more from it for now, or do."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""

    def close(self, why: str = "closed") -> None:
        """Flush and close the connection, with a reason."""


class OpenWireBrokerLink:
    """Translates what a bridge asks into commands of a connection that has logged in."""

    protocol = "OpenWire"
    is_sluice = False
    recognizes_repeated = True

    def __init__(self, connection: LinkConnection, ids: BrokerIds) -> None:
        self.connection, self._ids = connection, ids
        ids.learn(connection.remote_id, connection.remote)
        self._subscriptions: dict[str, _Subscription] = {}
        self._by_consumer: dict[ConsumerId, _Subscription] = {}
        self._advisories: dict[ConsumerId, _Advisories] = {}
        self._unacked: dict[str, tuple[_Subscription, MessageId]] = {}  # by ack
        self._consumer_count = self._delivery_count = 0
        connection.on_dispatch = self._on_dispatch

    @property
    def remote(self) -> str:
        """Return the name of the broker."""
        return self.connection.remote

    @property
    def lost(self) -> asyncio.Future[str]:
        """Return what is done when the connection is over."""
        return self.connection.lost

    def listen(self, events: LinkEvents) -> None:
        """Have these told from now on."""
        self.connection.events = events

    def _new_consumer(self) -> ConsumerId:
        self._consumer_count += 1
        return ConsumerId(self.connection.connection_id.value, SESSION, self._consumer_count)

    # -- as a source

    def subscribe(self, wanted: BridgeSubscription, told: Callable[[BridgedMessage], None], receipt: str) -> None:
        """Consume. A temporary destination of the bridge's broker is made known first."""
        made = _Subscription(wanted.id, self._new_consumer(), openwire_destination(wanted.destination.stomp), told)
        self._subscriptions[wanted.id] = self._by_consumer[made.id] = made
        if made.destination.is_temporary:
            self._change_destination(made.destination, _CREATE)
        self.connection.send(consumer_info(wanted, made.id, made.destination, self._ids), receipt)

    def _change_destination(self, destination: OpenWireDestination, operation: int) -> None:
        id = self.connection.connection_id
        self.connection.send(DestinationInfo(connection_id=id, destination=destination, operation_type=operation))

    def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        found = self._subscriptions.pop(id, None)
        if found is None:
            return
        del self._by_consumer[found.id]
        self._unacked = {ack: held for ack, held in self._unacked.items() if held[0] is not found}
        self.connection.send(RemoveInfo(object_id=found.id, last_delivered_sequence_id=_NOTHING_SEEN))
        if found.destination.is_temporary:
            self._change_destination(found.destination, _DELETE)

    def delete_durable(self, name: str) -> None:
        """Delete a durable subscription that nobody consumes."""
        connection = self.connection
        connection.send(
            RemoveSubscriptionInfo(
                connection_id=connection.connection_id, subscription_name=name, client_id=connection.client_id
            )
        )

    def keep_durables(self, names: Collection[str]) -> None:
        """An ActiveMQ cannot say which durable subscriptions there are."""

    def _on_dispatch(self, dispatch: MessageDispatch) -> None:
        id, message = dispatch.consumer_id, dispatch.message
        if id is None or message is None or message.message_id is None:
            return
        if (advisories := self._advisories.get(id)) is not None:
            self._on_advisory(advisories, message, message.message_id)
        elif (subscription := self._by_consumer.get(id)) is not None:
            self._on_message(subscription, message, message.message_id)

    def _on_message(self, subscription: _Subscription, message: MessageCommand, id: MessageId) -> None:
        self._delivery_count += 1
        ack = str(self._delivery_count)
        self._unacked[ack] = subscription, id
        try:
            bridged = bridged_message(message, subscription.name, ack, self._ids, MAX_BODY_BYTES)
        except (OpenWireError, RequestRefused, InvalidDestination) as error:
            logger.warning(
                "%s: %s gave message %s that cannot be read: %s", self.connection.name, self.remote, id, error
            )
            self.reject(ack, f"it cannot be read: {error}")
            return
        subscription.told(bridged)

    def ack(self, ids: Sequence[str], receipt: str | None = None) -> None:
        """Acknowledge messages."""
        for number, each in enumerate(ids, start=1):
            is_last = number == len(ids)
            self._settle(each, AckType.INDIVIDUAL, receipt if is_last else None)

    def reject(self, id: str, why: str) -> None:
        """Give up a message."""
        self._settle(id, AckType.POISON, cause=WireThrowable("java.lang.Exception", why))

    def _settle(self, ack: str, type: AckType, receipt: str | None = None, cause: WireThrowable | None = None) -> None:
        held = self._unacked.pop(ack, None)
        if held is None:
            if receipt is not None:  # it went back with its subscription
                self.connection.events.on_receipt(receipt)
            return
        subscription, id = held
        command = MessageAck(
            destination=subscription.destination, consumer_id=subscription.id, ack_type=type,
            first_message_id=id, last_message_id=id, message_count=1, poison_cause=cause,
        )  # fmt: skip
        self.connection.send(command, receipt)

    def durable_consumers(self, infos: Iterable[ConsumerInfo]) -> Iterator[RemoteConsumer]:
        """Yield the durable subscriptions that a broker lists."""
        for each in infos:
            event = consumer_event(each, self._ids)
            if isinstance(event, ConsumerStarted):
                yield event.consumer

    # -- as a target

    def follow_consumers(self, id: str, topics: Sequence[str], told: Callable[[ConsumerEvent], None]) -> None:
        """Hear of consumers by the commands in advisories."""
        made = _Advisories(self._new_consumer(), OpenWireDestination(t.TOPIC, ",".join(topics)), told)
        self._advisories[made.id] = made
        info = ConsumerInfo(
            consumer_id=made.id, destination=made.destination, prefetch_size=ADVISORY_PREFETCH, dispatch_async=True
        )
        self.connection.send(info, receipt="")  # only a refusal matters

    def _on_advisory(self, advisories: _Advisories, message: MessageCommand, id: MessageId) -> None:
        advisories.unacked.append(id)
        if len(advisories.unacked) >= ADVISORY_PREFETCH // 2:
            first, last, count = advisories.unacked[0], advisories.unacked[-1], len(advisories.unacked)
            advisories.unacked.clear()
            self.connection.send(
                MessageAck(
                    destination=advisories.destination, consumer_id=advisories.id, ack_type=AckType.STANDARD,
                    first_message_id=first, last_message_id=last, message_count=count,
                )
            )  # fmt: skip
        event = consumer_event(message.data_structure, self._ids)
        if event is not None:
            advisories.told(event)

    def prepare(
        self, message: BridgedMessage, destination: str, path: Path, bound_queues: Sequence[str], *, compressed: bool
    ) -> OutgoingMessage:
        """Return the message with its destination and path; it becomes a command when it is sent."""
        is_compressed = compressed and len(message.body) >= _MIN_COMPRESSED_BYTES
        return OutgoingMessage({**message.headers, "destination": destination}, message.body, path, is_compressed)

    def excess_of(self, outgoing: OutgoingMessage, message: BridgedMessage, receipt: str | None) -> str:
        """Return why a message is too long for the broker, which would end the connection."""
        characters = sum(map(len, outgoing.headers)) + sum(map(len, outgoing.headers.values()))
        size, limit = len(outgoing.body) + 3 * characters + _FRAME_OVERHEAD, self.connection.max_frame_size
        return f"its frame has up to {size:,} bytes, more than {limit:,} (maxFrameSize)" if size > limit else ""

    def send(self, outgoing: OutgoingMessage, receipt: str | None) -> None:
        """Write a message; one that OpenWire cannot hold is refused."""
        try:
            command = command_of(outgoing, self._ids)
            if outgoing.is_compressed and command.content is not None:
                command.content, command.compressed = deflate(command.data_type, command.content), True
            command.producer_id = self.connection.producer_id
            self.connection.send(command, receipt)
        except BrokerError as error:
            if receipt is not None:
                self.connection.events.on_refused(receipt, str(error))

    # -- the connection

    def pause_reading(self, held: bool) -> None:
        """Read nothing more for now, or do."""
        self.connection.pause_reading(held)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""
        self.connection.call_later(seconds, call)

    def close(self, why: str = "closed") -> None:
        """Flush and close the connection, with a reason."""
        self.connection.close(why)
