"""Define the attributes of beans of consumers, producers and connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brokerapp.model.destination import Destination, DestinationKind
from console.destinations.clients.clients import ConnectionView
from console.destinations.clients.connection_list import ConnectionRow
from console.exporters.jolokia.attribute_rows import BOOLEAN, INT, LONG, NAME, NAMES, TEXT, Row, fixed
from console.exporters.jolokia.beans import Beans
from console.exporters.jolokia.client_beans import NOT_SET, ConsumerBean
from console.exporters.jolokia.object_names import ObjectName

#: Of sessions, which STOMP has not.
NO_SESSION = -1


def _of(name: str, type: str, field: str) -> Row:
    """Return a row with a field of the bean's subject."""
    return name, type, lambda each, beans: getattr(each, field)


def _told(name: str, type: str, field: str, default: Any) -> Row:
    """Return a row with a field of the consumer that its connection reports."""
    return name, type, lambda each, beans: each.has(field, default)


def _is_of(*kinds: DestinationKind) -> Callable[[ConsumerBean, Beans], bool]:
    return lambda each, beans: each.kind in kinds


def _connection(each: ConsumerBean, beans: Beans) -> ObjectName | None:
    return beans.name_of_connection(each.peer.stats) if each.peer else None


#: Of every consumer.
CONSUMER: tuple[Row, ...] = (
    _of("ClientId", TEXT, "client_id"),
    _of("DestinationName", TEXT, "name"),
    _of("Active", BOOLEAN, "is_active"),
    ("SubscriptionName", TEXT, lambda each, beans: each.kept.subscription.name if each.kept else None),
    _of("PendingQueueSize", INT, "pending"),
    _of("DispatchedQueueSize", INT, "in_flight"),
    _of("DispatchedCounter", LONG, "dispatched"),
    _of("EnqueueCounter", LONG, "enqueued"),
    _of("DequeueCounter", LONG, "dequeued"),
    _of("ConsumedCount", LONG, "dequeued"),
    _of("MessageCountAwaitingAcknowledge", INT, "in_flight"),
    ("ConnectionId", TEXT, lambda each, beans: each.peer.stats.id if each.peer else NOT_SET),
    fixed("SessionId", LONG, NO_SESSION),
    ("SubscriptionId", LONG, lambda each, beans: 1 if each.peer else -1),
    _of("Selector", TEXT, "selector"),
    ("DestinationQueue", BOOLEAN, _is_of(DestinationKind.QUEUE, DestinationKind.TEMP_QUEUE)),
    ("DestinationTopic", BOOLEAN, _is_of(DestinationKind.TOPIC, DestinationKind.TEMP_TOPIC)),
    ("DestinationTemporary", BOOLEAN, _is_of(DestinationKind.TEMP_QUEUE, DestinationKind.TEMP_TOPIC)),
    fixed("Network", BOOLEAN, False),
    _told("PrefetchSize", INT, "prefetch", 0),
    fixed("Retroactive", BOOLEAN, False),
    _told("Exclusive", BOOLEAN, "exclusive", False),
    ("Durable", BOOLEAN, lambda each, beans: each.kept is not None),
    ("NoLocal", BOOLEAN, lambda each, beans: bool(each.kept and each.kept.subscription.no_local)),
    fixed("DispatchAsync", BOOLEAN, True),
    fixed("MaximumPendingMessageLimit", INT, 0),
    _told("Priority", "byte", "priority", 0),
    _told("SlowConsumer", BOOLEAN, "slow", False),
    ("UserName", TEXT, lambda each, beans: each.peer.stats.user if each.peer else None),
    ("Connection", NAME, _connection),
)
#: Of those of a topic that nothing is kept for.
TOPIC_CONSUMER: tuple[Row, ...] = (
    *CONSUMER,
    _told("DiscardedCount", INT, "discarded", 0),
    fixed("MaximumPendingQueueSize", INT, -1),
)
#: Of durable subscriptions.
DURABLE: tuple[Row, ...] = (
    *CONSUMER,
    fixed("CursorFull", BOOLEAN, False),
    fixed("CursorMemoryUsage", LONG, 0),
    fixed("CursorPercentUsage", INT, 0),
)


def _targets(peer: ConnectionView) -> list[Destination]:
    return list(map(Destination.parse, peer.details.producing_to))


def _sends_to(*kinds: DestinationKind) -> Callable[[ConnectionView, Beans], bool]:
    return lambda peer, beans: any(each.kind in kinds for each in _targets(peer))


PRODUCER: tuple[Row, ...] = (
    ("ClientId", TEXT, lambda peer, beans: peer.name),
    ("ConnectionId", TEXT, lambda peer, beans: peer.stats.id),
    ("ProducerId", TEXT, lambda peer, beans: peer.stats.id),
    fixed("SessionId", LONG, NO_SESSION),
    ("DestinationName", TEXT, lambda peer, beans: ",".join(each.name for each in _targets(peer)) or NOT_SET),
    ("DestinationQueue", BOOLEAN, _sends_to(DestinationKind.QUEUE, DestinationKind.TEMP_QUEUE)),
    ("DestinationTopic", BOOLEAN, _sends_to(DestinationKind.TOPIC, DestinationKind.TEMP_TOPIC)),
    ("DestinationTemporary", BOOLEAN, _sends_to(DestinationKind.TEMP_QUEUE, DestinationKind.TEMP_TOPIC)),
    ("SentCount", LONG, lambda peer, beans: peer.stats.sent),
    ("ProducerBlocked", BOOLEAN, lambda peer, beans: peer.stats.blocked),
    fixed("TotalTimeBlocked", LONG, 0),
    fixed("PercentageBlocked", INT, 0),
    fixed("ProducerWindowSize", INT, 0),
    fixed("DispatchAsync", BOOLEAN, False),
    ("UserName", TEXT, lambda peer, beans: peer.stats.user),
)


def _of_stats(name: str, type: str, field: str) -> Row:
    return name, type, lambda each, beans: getattr(each.stats, field)


def _its_consumers(each: ConnectionRow, beans: Beans) -> list[ObjectName]:
    return [beans.name_of_consumer(one) for one in beans.consumers if one.peer and one.peer.stats.id == each.stats.id]


CONNECTION: tuple[Row, ...] = (
    _of_stats("ClientId", TEXT, "client_id"),
    ("RemoteAddress", TEXT, lambda each, beans: beans.remote_address(each.stats)),
    _of_stats("UserName", TEXT, "user"),
    _of_stats("Slow", BOOLEAN, "slow"),
    _of_stats("Blocked", BOOLEAN, "blocked"),
    fixed("Connected", BOOLEAN, True),
    fixed("Active", BOOLEAN, True),
    fixed("ActiveTransactionCount", INT, 0),
    fixed("OldestActiveTransactionDuration", "java.lang.Long", None),
    fixed("DispatchQueueSize", INT, 0),
    ("Consumers", NAMES, _its_consumers),
    fixed("Producers", NAMES, []),
)
