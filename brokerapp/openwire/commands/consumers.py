"""Commands about consumers, producers and the messages on their way to and from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.ids import BrokerId, ConnectionId, ConsumerId, MessageId, ProducerId, TransactionId
from brokerapp.openwire.commands.messages import MessageCommand
from brokerapp.openwire.commands.values import BaseCommand, NetworkBridgeFilter, OpenWireDestination, WireThrowable
from brokerapp.openwire.commands.wire_fields import (
    array,
    boolean,
    byte,
    cached,
    int32,
    int64,
    nested,
    string,
    throwable,
)


@dataclass(slots=True)
class ConsumerInfo(BaseCommand):
    """A client subscribes."""

    data_type: ClassVar[int] = t.CONSUMER_INFO
    consumer_id: ConsumerId | None = cached(t.CONSUMER_ID)
    browser: bool = boolean()
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    prefetch_size: int = int32()
    maximum_pending_message_limit: int = int32()
    dispatch_async: bool = boolean()
    selector: str | None = string()
    client_id: str | None = string(since=10)
    subscription_name: str | None = string()
    no_local: bool = boolean()
    exclusive: bool = boolean()
    retroactive: bool = boolean()
    priority: int = byte()
    broker_path: tuple[BrokerId | None, ...] | None = array(t.BROKER_ID)
    additional_predicate: NetworkBridgeFilter | None = nested(t.NETWORK_BRIDGE_FILTER)
    network_subscription: bool = boolean()
    optimized_acknowledge: bool = boolean()
    no_range_acks: bool = boolean()
    network_consumer_path: tuple[ConsumerId | None, ...] | None = array(t.CONSUMER_ID, since=4)


@dataclass(slots=True)
class ConsumerControl(BaseCommand):
    """Changes a consumer: its prefetch, or whether it gets messages."""

    data_type: ClassVar[int] = t.CONSUMER_CONTROL
    destination: OpenWireDestination | None = nested(*t.DESTINATIONS, since=6)
    close: bool = boolean()
    consumer_id: ConsumerId | None = nested(t.CONSUMER_ID)
    prefetch: int = int32()
    flush: bool = boolean(since=2)
    start: bool = boolean(since=2)
    stop: bool = boolean(since=2)


@dataclass(slots=True)
class ProducerInfo(BaseCommand):
    """A client creates a producer; without a destination, each message names its own."""

    data_type: ClassVar[int] = t.PRODUCER_INFO
    producer_id: ProducerId | None = cached(t.PRODUCER_ID)
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    broker_path: tuple[BrokerId | None, ...] | None = array(t.BROKER_ID)
    dispatch_async: bool = boolean(since=2)
    window_size: int = int32(since=3)


@dataclass(slots=True)
class ProducerAck(BaseCommand):
    """The broker took so many bytes of a producer that has a window."""

    data_type: ClassVar[int] = t.PRODUCER_ACK
    producer_id: ProducerId | None = nested(t.PRODUCER_ID)
    size: int = int32()


@dataclass(slots=True)
class RemoveSubscriptionInfo(BaseCommand):
    """A client deletes a durable subscription."""

    data_type: ClassVar[int] = t.REMOVE_SUBSCRIPTION_INFO
    connection_id: ConnectionId | None = cached(t.CONNECTION_ID)
    subscription_name: str | None = string()
    client_id: str | None = string()


@dataclass(slots=True)
class MessagePull(BaseCommand):
    """A consumer with prefetch 0 asks for one message."""

    data_type: ClassVar[int] = t.MESSAGE_PULL
    consumer_id: ConsumerId | None = cached(t.CONSUMER_ID)
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    #: Milliseconds; 0 waits without end, -1 not at all.
    timeout: int = int64()
    correlation_id: str | None = string(since=3)
    message_id: MessageId | None = nested(t.MESSAGE_ID, since=3)


@dataclass(slots=True)
class MessageDispatch(BaseCommand):
    """The broker gives a consumer a message; none stands for the end of a browse, or of the wait of a pull."""

    data_type: ClassVar[int] = t.MESSAGE_DISPATCH
    consumer_id: ConsumerId | None = cached(t.CONSUMER_ID)
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    message: MessageCommand | None = nested(*t.MESSAGES)
    redelivery_counter: int = int32()


@dataclass(slots=True)
class MessageDispatchNotification(BaseCommand):
    """A broker tells its copy that it dispatched a message."""

    data_type: ClassVar[int] = t.MESSAGE_DISPATCH_NOTIFICATION
    consumer_id: ConsumerId | None = cached(t.CONSUMER_ID)
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    delivery_sequence_id: int = int64()
    message_id: MessageId | None = nested(t.MESSAGE_ID)


@dataclass(slots=True)
class MessageAck(BaseCommand):
    """A consumer acknowledges, or rejects, the messages from the first to the last named."""

    data_type: ClassVar[int] = t.MESSAGE_ACK
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    transaction_id: TransactionId | None = cached(*t.TRANSACTION_IDS)
    consumer_id: ConsumerId | None = cached(t.CONSUMER_ID)
    #: 0 delivered, 1 poison, 2 standard, 3 redelivered, 4 individual, 5 unmatched, 6 expired.
    ack_type: int = byte()
    first_message_id: MessageId | None = nested(t.MESSAGE_ID)
    last_message_id: MessageId | None = nested(t.MESSAGE_ID)
    message_count: int = int32()
    poison_cause: WireThrowable | None = throwable(since=7)
