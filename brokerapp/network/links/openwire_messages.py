"""Translate what crosses a link over OpenWire: messages, and what an ActiveMQ tells of its consumers. Pure.

An ActiveMQ knows brokers by ids that are others each time it starts; in a path here it is known by its name.
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.engine.scheduling.delivery_schedule import HEADERS as SCHEDULING
from brokerapp.errors import InvalidDestination, OpenWireError
from brokerapp.model.broker_path import PATH_PROPERTY, UNLIMITED, parse_path
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, escape, unescape
from brokerapp.network.links.broker_link import BridgedMessage, BridgeSubscription, OutgoingMessage
from brokerapp.network.links.dialect import ACTIVEMQ
from brokerapp.network.links.remote_consumers import (
    ConsumerEvent,
    ConsumerStarted,
    ConsumerStopped,
    RemoteConsumer,
    SubscriptionRemoved,
)
from brokerapp.openwire.bridged_ids import bridged_id, text_of_bridged_id
from brokerapp.openwire.commands import (
    BrokerId,
    ConsumerId,
    ConsumerInfo,
    DataStructure,
    MessageCommand,
    NetworkBridgeFilter,
    OpenWireDestination,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from brokerapp.openwire.session.broker_paths import broker_ids_of, path_of
from brokerapp.openwire.session.destinations import broker_text, openwire_destination
from brokerapp.openwire.session.incoming_messages import send_command
from brokerapp.openwire.session.outgoing_messages import message_command

#: Header lines of a message that a target is not told as properties: they are fields, or about its delivery.
_FIELDS = frozenset({"message-id", "destination", "redelivered"})


def bridged_message(
    message: MessageCommand, subscription: str, ack: str, ids: BrokerIds, max_body: int
) -> BridgedMessage:
    """Return a message as Sluice stores it, without what delayed it at its broker.

    Raises OpenWireError or RequestRefused where it cannot be read.
    """
    message.transaction_id = None  # it was committed there
    said = send_command(message, "", None, max_body)
    id = "" if message.message_id is None else text_of_bridged_id(message.message_id)
    headers = {
        "message-id": id,
        "expires": str(said.expires),
        "priority": str(said.priority),
        "timestamp": str(said.timestamp),
    }
    if said.persistent:
        headers["persistent"] = "true"
    if message.user_id:
        headers["JMSXUserID"] = message.user_id
    if message.redelivery_counter > 0:
        headers["redelivered"] = "true"
    for line in said.properties.split("\n"):
        name, _, value = line.partition(":")
        if name and name not in SCHEDULING:
            headers[unescape(name)] = unescape(value)
    headers["content-length"] = str(len(said.body))
    # it may have come to its broker over STOMP
    path = parse_path(headers.pop(PATH_PROPERTY, "")) + path_of(message.broker_path, ids)
    return BridgedMessage(subscription, ack, said.destination, id, headers, said.body, path)


def command_of(outgoing: OutgoingMessage, ids: BrokerIds) -> MessageCommand:
    """Return the command that sends a message. Raises OpenWireError or InvalidDestination."""
    headers = outgoing.headers
    lines = [f"message-id:{escape(headers['message-id'])}\n"]
    lines += [f"{escape(name)}:{escape(value)}\n" for name, value in headers.items() if name not in _FIELDS]
    command = message_command(
        Message(
            headers["message-id"],
            "".join(lines).encode(),
            outgoing.body,
            headers.get("persistent") == "true",
            _whole(headers.get("priority"), 4),
            _whole(headers.get("expires"), 0),
            _headers=headers,
        )
    )
    command.message_id = bridged_id(headers["message-id"])
    command.destination = openwire_destination(headers["destination"])
    command.broker_path = broker_ids_of(outgoing.path, ids)
    command.arrival = command.broker_in_time = command.timestamp
    command.redelivery_counter = int(headers.get("redelivered") == "true")
    return command


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default


def consumer_info(
    wanted: BridgeSubscription, id: ConsumerId, destination: OpenWireDestination, ids: BrokerIds
) -> ConsumerInfo:
    """Return the command that subscribes a bridge, with what keeps messages there that may not cross."""
    return ConsumerInfo(
        consumer_id=id,
        destination=destination,
        prefetch_size=wanted.prefetch,
        dispatch_async=True,
        selector=wanted.selector,
        subscription_name=wanted.durable_name,
        priority=max(-128, min(127, wanted.priority)),
        broker_path=broker_ids_of(reversed(wanted.path), ids),
        additional_predicate=NetworkBridgeFilter(
            network_ttl=wanted.message_ttl,
            network_broker_id=BrokerId(wanted.to),
            message_ttl=wanted.message_ttl,
            consumer_ttl=UNLIMITED,
        ),
        network_subscription=True,
        network_consumer_path=tuple(_consumer_ids(wanted.consumers)) or None,
    )


def _consumer_ids(texts: Iterable[str]) -> Iterable[ConsumerId]:
    for each in sorted(texts):
        try:
            yield ConsumerId.parse(each)
        except OpenWireError:  # of a broker whose consumers have no such ids
            continue


def consumer_event(data: DataStructure | None, ids: BrokerIds) -> ConsumerEvent | None:
    """Return what an advisory tells of consumers; None: nothing."""
    if isinstance(data, ConsumerInfo):
        return ConsumerStarted(ACTIVEMQ.consumer_of(_remote_consumer(data, ids)))  # a bridge over STOMP, perhaps
    if isinstance(data, RemoveInfo) and isinstance(data.object_id, ConsumerId):
        return ConsumerStopped(str(data.object_id))
    if isinstance(data, RemoveSubscriptionInfo):
        return SubscriptionRemoved(data.client_id or "", data.subscription_name or "")
    return None


def _remote_consumer(info: ConsumerInfo, ids: BrokerIds) -> RemoteConsumer:
    id = str(info.consumer_id)
    behind = frozenset(str(each) for each in info.network_consumer_path or () if each is not None)
    return RemoteConsumer(
        id=id,
        destinations=_destinations(info),
        selector=info.selector or None,
        priority=info.priority,
        path=tuple(reversed(path_of(info.broker_path, ids))),
        origins=behind or frozenset({id}),
        is_browser=info.browser,
        client_id=info.client_id or "",
        subscription_name=info.subscription_name,
    )


def _destinations(info: ConsumerInfo) -> tuple[Destination, ...]:
    try:
        return tuple(Destination.parse_list(broker_text(info.destination)))
    except InvalidDestination:
        return ()
