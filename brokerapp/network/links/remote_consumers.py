"""What a broker tells a bridge of its consumers, and how advisories in JSON say it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.errors import InvalidDestination
from brokerapp.model.broker_path import Path
from brokerapp.model.destination import LIST_SEPARATOR, Destination, DestinationKind

Document = Mapping[str, Any]
#: How advisories name the kinds of destinations.
_KINDS = {
    "ActiveMQQueue": DestinationKind.QUEUE,
    "ActiveMQTopic": DestinationKind.TOPIC,
    "ActiveMQTempQueue": DestinationKind.TEMP_QUEUE,
    "ActiveMQTempTopic": DestinationKind.TEMP_TOPIC,
}


@dataclass(frozen=True, slots=True)
class RemoteConsumer:
    """A consumer at the target of a bridge, or a durable subscription without one."""

    id: str
    destinations: tuple[Destination, ...]
    selector: str | None = None
    priority: int = 0
    path: Path = ()  #: the brokers from there to it, the nearest first, where it is the consumer of a bridge
    origins: frozenset[str] = frozenset()  #: ids of the consumers that a bridge's is for; else itself
    is_browser: bool = False
    is_active: bool = True  #: False: a durable subscription that nobody consumes
    client_id: str = ""
    subscription_name: str | None = None  #: of a durable subscription


@dataclass(frozen=True, slots=True)
class ConsumerStarted:
    """There is a consumer, or a durable subscription."""

    consumer: RemoteConsumer


@dataclass(frozen=True, slots=True)
class OriginsChanged:
    """The consumer of another bridge is there for others than before."""

    consumer: RemoteConsumer


@dataclass(frozen=True, slots=True)
class ConsumerStopped:
    """A consumer is gone; its durable subscription is not."""

    id: str


@dataclass(frozen=True, slots=True)
class SubscriptionRemoved:
    """A durable subscription was deleted."""

    client_id: str
    name: str


@dataclass(frozen=True, slots=True)
class AllConsumersTold:
    """All consumers and durable subscriptions there are were told of, in so many events."""

    count: int


ConsumerEvent = ConsumerStarted | OriginsChanged | ConsumerStopped | SubscriptionRemoved | AllConsumersTold


def consumer_key(connection: object, session: object, value: object) -> str:
    """Return the text of a consumer's id."""
    return f"{connection}:{session}:{value}"


def listed_destinations(kind: DestinationKind, names: str) -> Iterator[Destination]:
    """Yield the destinations of a list, whose later ones may say what kind they are of."""
    first, *others = names.split(LIST_SEPARATOR)
    if first:
        yield Destination(kind, first)
    for each in others:
        try:
            yield from Destination.parse_list(each)
        except InvalidDestination:
            continue


def read_consumer_event(body: bytes) -> ConsumerEvent | None:
    """Return what an advisory in JSON tells; None: nothing of consumers. Raises ValueError where it is none."""
    try:
        return _event(json.loads(body))
    except (AttributeError, KeyError, TypeError, RecursionError) as error:  # a client can send to such a topic, too
        raise ValueError(f"not the document of an advisory: {error!r}") from error


def _event(document: Document) -> ConsumerEvent | None:
    if "AllConsumers" in document:
        return AllConsumersTold(int(document["AllConsumers"].get("told", 0)))
    if "ConsumerInfo" in document:
        return ConsumerStarted(read_consumer(document["ConsumerInfo"]))
    if "BridgeConsumerInfo" in document:
        return OriginsChanged(read_consumer(document["BridgeConsumerInfo"]))
    if "RemoveInfo" in document:
        id = document["RemoveInfo"].get("objectId", {})
        return ConsumerStopped(_id(id)) if id.get("@class") == "ConsumerId" else None
    if "RemoveSubscriptionInfo" in document:
        removed = document["RemoveSubscriptionInfo"]
        return SubscriptionRemoved(str(removed.get("clientId", "")), str(removed.get("subscriptionName", "")))
    return None


def read_consumer(info: Document) -> RemoteConsumer:
    """Return the consumer that a document describes."""
    about, name, id = info.get("destination", {}), info.get("subscriptionName"), _id(info.get("consumerId", {}))
    kind = _KINDS.get(about.get("@class", ""))
    return RemoteConsumer(
        id=id,
        destinations=tuple(listed_destinations(kind, str(about.get("string", "")))) if kind is not None else (),
        selector=info.get("selector") or None,
        priority=int(info.get("priority", 0)),
        path=tuple(str(each.get("value", "")) for each in _members(info.get("brokerPath"), "BrokerId")),
        origins=frozenset(map(_id, _members(info.get("networkConsumerPath"), "ConsumerId"))) or frozenset({id}),
        is_browser=bool(info.get("browser")),
        is_active=info.get("active") is not False,
        client_id=str(info.get("clientId", "")),
        subscription_name=None if name is None else str(name),
    )


def _id(id: Document) -> str:
    return consumer_key(id.get("connectionId", ""), id.get("sessionId", ""), id.get("value", ""))


def _members(document: Document | None, name: str) -> list[Document]:
    """Return the elements of an array; JSON of one has it without a list around."""
    found = (document or {}).get(name, [])
    return [found] if isinstance(found, Mapping) else list(found)
