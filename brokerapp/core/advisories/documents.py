"""Build the bodies of advisories as plain values, as ActiveMQ's JSON has them. Pure.

Fields that mean something here have their values; those that only ActiveMQ's wire format needs (`commandId`,
`responseRequired`) are left out, but for `null`, which stands in every destination and tells clients nothing.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.authorization import ANONYMOUS
from brokerapp.engine.routing.advisory_subjects import removed
from brokerapp.errors import InvalidDestination
from brokerapp.model.broker_path import Path
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind, jms_form_of
from brokerapp.model.jms.properties import PropertyType, property_name, property_value
from brokerapp.model.message import Message
from brokerapp.model.subscription_identity import SubscriptionIdentity

Document = dict[str, Any]

#: Says that something is about nothing in particular.
NOTHING: Document = {"null": ""}
#: `sessionId` of what a connection owns that has no sessions.
_NO_SESSION = -1

_CLASSES = {
    DestinationKind.QUEUE: "ActiveMQQueue",
    DestinationKind.TOPIC: "ActiveMQTopic",
    DestinationKind.TEMP_QUEUE: "ActiveMQTempQueue",
    DestinationKind.TEMP_TOPIC: "ActiveMQTempTopic",
}
#: What a destination in a document is.
KINDS = {name: kind for kind, name in _CLASSES.items()}
_MESSAGES = {
    JmsKind.PLAIN: "ActiveMQMessage",
    JmsKind.TEXT: "ActiveMQTextMessage",
    JmsKind.BYTES: "ActiveMQBytesMessage",
    JmsKind.MAP: "ActiveMQMapMessage",
    JmsKind.STREAM: "ActiveMQStreamMessage",
    JmsKind.OBJECT: "ActiveMQObjectMessage",
    JmsKind.BLOB: "ActiveMQBlobMessage",
}
#: What a property that is no text is called; those that JSON cannot hold are texts.
_TYPE_NAMES = {
    PropertyType.BOOLEAN: "boolean", PropertyType.BYTE: "byte", PropertyType.SHORT: "short", PropertyType.INT: "int",
    PropertyType.LONG: "long", PropertyType.FLOAT: "float", PropertyType.DOUBLE: "double",
}  # fmt: skip
#: Headers of a message that have fields of their own; all others are its properties.
_FIELDS = frozenset((
    "message-id", "expires", "priority", "timestamp", "persistent", "correlation-id", "reply-to", "type",
    "content-length", "JMSXGroupID", "JMSXGroupSeq", "destination", "original-destination", JMS_HEADER,
))  # fmt: skip


def connection_id(client: Client, broker: str) -> str:
    """What ActiveMQ's clients take for the id of a connection; unique among all brokers."""
    return client.connection_id or f"ID:{broker}-{client.id}"


def consumer_id(subscription: Subscription, broker: str) -> Document:
    """The id of a consumer: its connection's and a number, unless its client names it."""
    client: Client = subscription.client
    if client.connection_id:
        return _parsed_id(subscription.name)
    return {
        "connectionId": connection_id(client, broker), "sessionId": _NO_SESSION, "value": int(subscription.key),
    }  # fmt: skip


def producer_id(client: Client, broker: str, producer: str = "") -> Document:
    """The id of a producer; a connection that opens none is one, wherever it sends."""
    if producer:
        return _parsed_id(producer)
    return {"connectionId": connection_id(client, broker), "sessionId": _NO_SESSION, "value": 1}


def id_text(id: Document) -> str:
    """An id of a consumer or producer as one text: `connection:session:number`."""
    return ":".join(map(str, id.values()))


def destination_document(*destinations: Destination) -> Document:
    """A destination, or the list of them that one consumer named."""
    first, *others = destinations
    return {"@class": _CLASSES[first.kind], "string": ",".join([first.name, *map(str, others)]), **NOTHING}


def connection_info(client: Client, broker: str) -> Document:
    """A connection that was made. It does not say the password, as in ActiveMQ."""
    return {"ConnectionInfo": {
        "connectionId": {"value": connection_id(client, broker)},
        "clientId": client.client_id,
        "clientIp": f"tcp://{client.remote_address}",
        **({"userName": client.principal.name} if client.principal is not ANONYMOUS else {}),
        "password": "",
        "brokerMasterConnector": False,
        "manageable": bool(client.connection_id),
        "clientMaster": True,
        "faultTolerant": False,
        "failoverReconnect": False,
    }}  # fmt: skip


def destination_info(destination: Destination, operation: int, path: Path = ()) -> Document:
    """A destination that came to exist, or ceased to; `path`: the brokers that it comes from, if it is of another."""
    owner = {"connectionId": {"value": destination.name.rpartition(":")[0]}} if destination.is_temporary else {}
    return {"DestinationInfo": {
        **owner,
        "destination": destination_document(destination), "operationType": operation, "timeout": 0,
        **({"brokerPath": {"BrokerId": [{"value": name} for name in path]}} if path else {}),
    }}  # fmt: skip


def consumer_info(subscription: Subscription, broker: str) -> Document:
    """A consumer that started."""
    named = subscription.durable.identity if subscription.durable is not None else None
    text = named.selector if named is not None else subscription.selector and subscription.selector.text
    return {"ConsumerInfo": {
        "consumerId": consumer_id(subscription, broker),
        "clientId": subscription.client.client_id,
        "destination": destination_document(*subscription.destinations),
        "prefetchSize": subscription.prefetch,
        "maximumPendingMessageLimit": 0,
        "browser": subscription.browse_cursor is not None,
        "dispatchAsync": True,
        **({"selector": text} if text else {}),
        **({"subscriptionName": named.name} if named is not None else {}),
        **_network(subscription),
        "noLocal": subscription.no_local,
        "exclusive": subscription.exclusive,
        "retroactive": subscription.retroactive,
        "priority": subscription.priority,
        "optimizedAcknowledge": False,
        "noRangeAcks": False,
    }}  # fmt: skip


def all_told(count: int) -> Document:
    """What a bridge is told when it was told of all consumers there are, by so many advisories."""
    return {"AllConsumers": {"told": count}}


def consumer_moved(subscription: Subscription, broker: str) -> Document:
    """The consumer of a bridge as it is now, having been told of before."""
    return {"BridgeConsumerInfo": consumer_info(subscription, broker)["ConsumerInfo"]}


def _network(subscription: Subscription) -> Document:
    """What is told of the consumer of a bridge: the brokers from here to where it leads."""
    if subscription.bridge_eligibility is None:
        return {}
    path = [{"value": name} for name in subscription.bridge_eligibility.path]
    consumers = list(map(_parsed_id, sorted(subscription.bridge_eligibility.consumers)))
    return {
        "brokerPath": {"BrokerId": path}, "networkSubscription": True, "networkConsumerPath": {"ConsumerId": consumers},
    }  # fmt: skip


def _parsed_id(text: str) -> Document:
    """The inverse of id_text; of what is no such id, too: another broker says it."""
    connection, session, value = ([*text.rsplit(":", 2), "", ""])[:3]
    return {"connectionId": connection, "sessionId": _whole(session), "value": _whole(value)}


def offline(named: SubscriptionIdentity, topic: Destination, broker_id: str) -> Document:
    """A durable subscription that nobody consumes, for bridges: it is to get what is sent to its topic elsewhere."""
    return {"ConsumerInfo": {
        "consumerId": {"connectionId": f"{broker_id} durable {named.client_id}", "sessionId": -1, "value": 1},
        "clientId": named.client_id,
        "subscriptionName": named.name,
        "destination": destination_document(topic),
        "prefetchSize": 0,
        "browser": False,
        "priority": 0,
        "active": False,
        **({"selector": named.selector} if named.selector else {}),
    }}  # fmt: skip


def producer_info(client: Client, destination: Destination, broker: str, producer: str = "") -> Document:
    """A producer that was opened, or a connection that began to send to a destination."""
    return {"ProducerInfo": {
        "producerId": producer_id(client, broker, producer),
        "destination": destination_document(destination),
        "dispatchAsync": False,
        "windowSize": 0,
        "sentCount": client.sent_count,
    }}  # fmt: skip


def connection_gone(client: Client, broker: str) -> Document:
    """A connection that ended."""
    return removed("ConnectionId", {"value": connection_id(client, broker)})


def consumer_gone(subscription: Subscription, broker: str) -> Document:
    """A consumer that ended; a durable subscription it served may stay."""
    return gone_by_id(consumer_id(subscription, broker))


def gone_by_id(id: Document) -> Document:
    """The consumer of this id ended."""
    return removed("ConsumerId", id)


def producer_gone(client: Client, broker: str, producer: str = "") -> Document:
    """A producer that was closed, or a connection that sends there no more."""
    return removed("ProducerId", producer_id(client, broker, producer))


def subscription_gone(client_id: str, name: str) -> Document:
    """A durable subscription that was deleted."""
    return {"RemoveSubscriptionInfo": {"clientId": client_id, "subscriptionName": name}}


def bridge_info(name: str, url: str) -> Document:
    """The broker at the other end of a bridge."""
    return {"BrokerInfo": {"brokerId": {"value": name}, "brokerURL": url, "brokerName": name}}


def message_document(message: Message, destination: Destination, *, with_body: bool) -> Document:
    """A message as it was at a destination."""
    headers = message.headers
    form = jms_form_of(message) or JmsForm(JmsKind.BYTES if "content-length" in headers else JmsKind.TEXT)
    document: Document = {
        "messageId": {"textView": message.id},
        "destination": destination_document(destination),
        "expiration": message.expires,
        "timestamp": int(headers.get("timestamp", 0)),
        "brokerInTime": message.born_us // 1000,
        "persistent": message.persistent,
        "priority": message.priority,
        "groupSequence": _whole(headers.get("JMSXGroupSeq", "0")),
        "compressed": False,
        "size": len(message.body),
    }
    for header, field in (("correlation-id", "correlationId"), ("type", "type"), ("JMSXGroupID", "groupID")):
        if header in headers:
            document[field] = headers[header]
    if "reply-to" in headers:
        document["replyTo"] = _reply_to(headers["reply-to"])
    if properties := _properties(headers.items(), form.types):
        document["properties"] = {"entry": properties}
    if with_body and form.has_body:
        document["content"] = _content(message.body, is_text=form.kind is JmsKind.TEXT)
    return {_MESSAGES[form.kind]: document}


def _reply_to(text: str) -> Document:
    try:
        return destination_document(Destination.parse(text))
    except InvalidDestination:  # what a client wrote there may be any text
        return {"string": text}


def _properties(headers: Iterable[tuple[str, str]], types: Mapping[str, PropertyType]) -> list[Document]:
    named = ((property_name(header) or header, value) for header, value in headers if header not in _FIELDS)
    return [_property(name, value, types.get(name)) for name, value in named]


def _property(name: str, text: str, type: PropertyType | None) -> Document:
    if type not in _TYPE_NAMES:
        return {"string": [name, text]}
    return {"string": name, _TYPE_NAMES[type]: property_value(type, text)}


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # no number, or one of thousands of digits: a client may have written anything
        return 0


def _content(body: bytes, *, is_text: bool) -> Document:
    """A body as ActiveMQ marshals it: text with its length before it, in base64."""
    marshalled = struct.pack(">i", len(body)) + body if is_text else body
    return {"data": [base64.b64encode(marshalled).decode()], "offset": 0, "length": len(marshalled)}
