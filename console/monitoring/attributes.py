"""The attributes of each kind of bean: name, Java's type, and where the value comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from brokerapp.destination import Destination, Kind
from brokerapp.engine.patience import WARNING_INTERVAL_MS, bound_of
from brokerapp.snapshot import DestinationStats
from console.monitoring import health
from console.monitoring.beans import Attribute, BeanKind, Beans
from console.monitoring.object_names import ObjectName

#: The ActiveMQ whose attributes these are; checks compare it. Sluice's own version stands in `BrokerId`'s place: none.
VERSION = "5.17.2"
LONG, INT, DOUBLE, FLOAT, BOOLEAN, TEXT = "long", "int", "double", "float", "boolean", "java.lang.String"
NAME, NAMES, MAP = "javax.management.ObjectName", "[Ljavax.management.ObjectName;", "java.util.Map"

#: Messages of a page, and of a browse, when no policy says otherwise.
PAGE_SIZE, BROWSE_PAGE_SIZE = 200, 400
AUDIT_DEPTH, AUDITED_PRODUCERS = 2048, 64


def share(part: int, whole: int) -> int:
    """Percent, as a whole number; 0 of nothing."""
    return part * 100 // whole if whole > 0 else 0


def mean(total: int, count: int) -> float:
    """The mean; 0 of nothing."""
    return total / count if count else 0.0


def _table(rows: Iterable[tuple[str, str, Callable[[Any, Beans], Any]]]) -> dict[str, Attribute]:
    return {name: Attribute(name, type, value) for name, type, value in rows}


def _same(name: str, type: str = LONG) -> tuple[str, str, Callable[[Any, Beans], Any]]:
    """A number that has JMX's own name here too."""
    return name, type, lambda stats, beans: getattr(stats, name)


def _fixed(name: str, type: str, value: Any) -> tuple[str, str, Callable[[Any, Beans], Any]]:
    """What does not exist here, and is told as ActiveMQ would tell that."""
    return name, type, lambda subject, beans: value


# -- destinations


def _limit(stats: DestinationStats, beans: Beans) -> int:
    policy = beans.policy(stats)
    return bound_of(policy).bytes or policy.memory_limit or _store(beans, "message_limit")


def _store(beans: Beans, name: str) -> int:
    node = beans.reading.node
    return int((node.store.get(name) if node else 0) or 0)


def _subscriptions(stats: DestinationStats, beans: Beans) -> list[ObjectName]:
    if stats.destination.kind is not Kind.TOPIC:
        return []
    return [
        beans.name_of_subscription(each) for each in beans.durables if stats.destination in each.subscription.topics
    ]


def _slow_consumer_strategy(stats: DestinationStats, beans: Beans) -> str | None:
    strategy = beans.policy(stats).slow_consumer
    return type(strategy).__name__ if strategy else None


_DESTINATION = (
    ("Name", TEXT, lambda stats, beans: stats.destination.name),
    *map(
        _same,
        ("QueueSize", "EnqueueCount", "DequeueCount", "DispatchCount", "InFlightCount", "ExpiredCount",
         "ConsumerCount", "ProducerCount", "BlockedSends", "TotalBlockedTime"),
    ),
    _same("AverageEnqueueTime", DOUBLE),
    _same("MinEnqueueTime"),
    _same("MaxEnqueueTime"),
    _same("AverageMessageSize"),
    _same("MinMessageSize"),
    _same("MaxMessageSize"),
    ("AverageBlockedTime", DOUBLE, lambda stats, beans: mean(stats.TotalBlockedTime, stats.BlockedSends)),
    ("Subscriptions", NAMES, _subscriptions),
    ("MemoryLimit", LONG, _limit),
    ("MemoryUsageByteCount", LONG, lambda stats, beans: beans.used(stats)),
    ("MemoryPercentUsage", INT, lambda stats, beans: share(beans.used(stats), _limit(stats, beans))),
    _fixed("MemoryUsagePortion", FLOAT, 1.0),
    ("StoreMessageSize", LONG, lambda stats, beans: beans.used(stats)),
    _fixed("TempUsagePercentUsage", INT, 0),
    _fixed("TempUsageLimit", LONG, 0),
    _fixed("ForwardCount", LONG, 0),
    _fixed("MessagesCachedCount", LONG, 0),
    _fixed("DuplicateFromStoreCount", LONG, 0),
    _fixed("SendDuplicateFromStoreToDLQ", BOOLEAN, False),
    (
        "BlockedProducerWarningInterval", LONG,
        lambda stats, beans: _said(beans.policy(stats).blocked_producer_warning_interval, WARNING_INTERVAL_MS),
    ),
    _fixed("MaxUncommittedExceededCount", LONG, 0),
    ("ProducerFlowControl", BOOLEAN, lambda stats, beans: _said(beans.policy(stats).producer_flow_control, True)),
    ("AlwaysRetroactive", BOOLEAN, lambda stats, beans: beans.policy(stats).always_retroactive),
    ("PrioritizedMessages", BOOLEAN, lambda stats, beans: bool(beans.policy(stats).prioritized_messages)),
    _fixed("UseCache", BOOLEAN, True),
    _fixed("EnableAudit", BOOLEAN, False),
    _fixed("MaxAuditDepth", INT, AUDIT_DEPTH),
    _fixed("MaxProducersToAudit", INT, AUDITED_PRODUCERS),
    _fixed("MaxPageSize", INT, PAGE_SIZE),
    _fixed("MaxBrowsePageSize", INT, BROWSE_PAGE_SIZE),
    _same("Options", TEXT),
    _same("DLQ", BOOLEAN),
    ("SlowConsumerStrategy", TEXT, _slow_consumer_strategy),
    _fixed("NetworkEnqueues", LONG, 0),
    _fixed("NetworkDequeues", LONG, 0),
    _fixed("AdvancedNetworkStatisticsEnabled", BOOLEAN, False),
    _fixed("AdvancedMessageStatisticsEnabled", BOOLEAN, False),
    *(
        _fixed(f"{which}Message{what}", type, empty)
        for which in ("Enqueued", "Dequeued")
        for what, type, empty in (
            ("BrokerInTime", LONG, 0), ("BrokerOutTime", LONG, 0), ("ClientID", TEXT, None), ("ID", TEXT, None),
            ("Timestamp", LONG, 0),
        )
    ),
)  # fmt: skip

_QUEUE = (
    *_DESTINATION,
    _same("Paused", BOOLEAN),
    _fixed("CursorFull", BOOLEAN, False),
    _fixed("CursorMemoryUsage", LONG, 0),
    _fixed("CursorPercentUsage", INT, 0),
    _fixed("CacheEnabled", BOOLEAN, True),
    _fixed("MessageGroups", MAP, {}),
    (
        "MessageGroupType", TEXT,
        lambda stats, beans: _said(beans.policy(stats).message_group_map_factory_type, "cached"),
    ),
)  # fmt: skip


def _said(value: Any, default: Any) -> Any:
    return default if value is None else value


# -- the broker


def _names(kind: Kind) -> Callable[[Any, Beans], list[ObjectName]]:
    return lambda reading, beans: [beans.name_of(each.destination) for each in reading.of_kind(kind)]


def _durables(active: bool) -> Callable[[Any, Beans], list[ObjectName]]:
    return lambda reading, beans: [
        beans.name_of_subscription(each) for each in beans.durables if bool(each.numbers.ConsumerCount) is active
    ]


def _total(name: str, field: str) -> tuple[str, str, Callable[[Any, Beans], int]]:
    return name, LONG, lambda reading, beans: beans.total(field)


def _how_many(name: str, kind: Kind) -> tuple[str, str, Callable[[Any, Beans], int]]:
    return name, INT, lambda reading, beans: len(reading.of_kind(kind))


def _uptime_ms(reading: Any, beans: Beans) -> int:
    return max(0, int(reading.at * 1000) - reading.node.started_ms) if reading.node else 0


def uptime_words(ms: int) -> str:
    """`12.345 seconds`, `4 minutes`, `2 hours 5 minutes`, `3 days 1 hour`, as ActiveMQ says it."""
    minutes = ms // 60_000
    if minutes == 0:
        return f"{ms / 1000:.3f} seconds"
    if minutes < 60:
        return _words(minutes, "minute")
    large, unit, small, part = (minutes // 60, "hour", minutes % 60, "minute")
    if large >= 24:
        large, unit, small, part = large // 24, "day", large % 24, "hour"
    return _words(large, unit) + (f" {_words(small, part)}" if small else "")


def _words(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'s' if count != 1 else ''}"


def _connector_urls(reading: Any, beans: Beans) -> dict[str, str]:
    return {each["connector"]: each["address"] for each in reversed(reading.node.listeners)} if reading.node else {}


def _mean_size(reading: Any, beans: Beans) -> int:
    return beans.total("EnqueueBytes") // (beans.total("EnqueueCount") or 1)


def _smallest(reading: Any, beans: Beans) -> int:
    return min((each.MinMessageSize for each in beans.all_destinations if each.EnqueueCount), default=0)


_BROKER = (
    ("BrokerName", TEXT, lambda reading, beans: beans.options.broker),
    _fixed("BrokerVersion", TEXT, VERSION),
    ("BrokerId", TEXT, lambda reading, beans: f"ID:{reading.node.node}" if reading.node else None),
    ("Uptime", TEXT, lambda reading, beans: uptime_words(_uptime_ms(reading, beans))),
    ("UptimeMillis", LONG, _uptime_ms),
    ("CurrentConnectionsCount", INT, lambda reading, beans: reading.open_connections),
    ("TotalConnectionsCount", LONG, lambda reading, beans: reading.accepted_connections),
    _total("TotalEnqueueCount", "EnqueueCount"),
    _total("TotalDequeueCount", "DequeueCount"),
    _total("TotalConsumerCount", "ConsumerCount"),
    _total("TotalProducerCount", "ProducerCount"),
    _total("TotalMessageCount", "QueueSize"),
    ("AverageMessageSize", LONG, _mean_size),
    (
        "MaxMessageSize", LONG,
        lambda reading, beans: max((each.MaxMessageSize for each in beans.all_destinations), default=0),
    ),
    ("MinMessageSize", LONG, _smallest),
    (
        "MemoryPercentUsage", INT,
        lambda reading, beans: share(_store(beans, "used"), _store(beans, "limit") or _store(beans, "machine")),
    ),
    ("MemoryLimit", LONG, lambda reading, beans: _store(beans, "limit") or _store(beans, "machine")),
    ("StorePercentUsage", INT, lambda reading, beans: share(reading.used[0], _store(beans, "message_limit"))),
    ("StoreLimit", LONG, lambda reading, beans: _store(beans, "message_limit")),
    ("TempPercentUsage", INT, lambda reading, beans: share(_store(beans, "temp_used"), _store(beans, "temp_limit"))),
    ("TempLimit", LONG, lambda reading, beans: _store(beans, "temp_limit")),
    ("Queues", NAMES, _names(Kind.QUEUE)),
    ("Topics", NAMES, _names(Kind.TOPIC)),
    ("TemporaryQueues", NAMES, _names(Kind.TEMP_QUEUE)),
    ("TemporaryTopics", NAMES, _names(Kind.TEMP_TOPIC)),
    _fixed("QueueSubscribers", NAMES, []),
    _fixed("TopicSubscribers", NAMES, []),
    ("DurableTopicSubscribers", NAMES, _durables(active=True)),
    ("InactiveDurableTopicSubscribers", NAMES, _durables(active=False)),
    *(
        _fixed(name, NAMES, [])
        for name in (
            "TemporaryQueueSubscribers", "TemporaryTopicSubscribers", "QueueProducers", "TopicProducers",
            "TemporaryQueueProducers", "TemporaryTopicProducers", "DynamicDestinationProducers",
        )
    ),
    _how_many("TotalQueuesCount", Kind.QUEUE),
    _how_many("TotalTopicsCount", Kind.TOPIC),
    _how_many("TotalManagedQueuesCount", Kind.QUEUE),
    _how_many("TotalManagedTopicsCount", Kind.TOPIC),
    _how_many("TotalTemporaryQueuesCount", Kind.TEMP_QUEUE),
    _how_many("TotalTemporaryTopicsCount", Kind.TEMP_TOPIC),
    _fixed("JobSchedulerStorePercentUsage", INT, 0),
    _fixed("JobSchedulerStoreLimit", LONG, 0),
    _fixed("JMSJobScheduler", NAME, None),
    ("TransportConnectors", MAP, _connector_urls),
    ("VMURL", TEXT, lambda reading, beans: f"vm://{beans.options.broker}"),
    _fixed("DataDirectory", TEXT, None),
    _fixed("Persistent", BOOLEAN, True),
    _fixed("Slave", BOOLEAN, False),
    _fixed("StatisticsEnabled", BOOLEAN, True),
    _fixed("MaxUncommittedCount", INT, 0),
    _fixed("TotalMaxUncommittedExceededCount", LONG, 0),
    _fixed("DedicatedTaskRunner", BOOLEAN, False),
    _fixed("VirtualThreadTaskRunner", BOOLEAN, False),
)  # fmt: skip


# -- consumers: the durable subscriptions of topics


def _of_subscription(name: str, type: str, field: str) -> tuple[str, str, Callable[[Any, Beans], Any]]:
    return name, type, lambda each, beans: getattr(each.subscription, field)


def _of_numbers(name: str, field: str, type: str = LONG) -> tuple[str, str, Callable[[Any, Beans], Any]]:
    return name, type, lambda each, beans: getattr(each.numbers, field)


def _shown_id(text: str, user: str) -> str:
    return f"{text} ({user})" if user else text


def _topics(topics: Iterable[Destination]) -> str:
    return ",".join(each.name for each in topics)


_CONSUMER = (
    _of_subscription("ClientId", TEXT, "client_id"),
    ("DestinationName", TEXT, lambda each, beans: _topics(each.subscription.topics)),
    ("Active", BOOLEAN, lambda each, beans: each.numbers.ConsumerCount > 0),
    _of_subscription("SubscriptionName", TEXT, "name"),
    _of_numbers("PendingQueueSize", "QueueSize", INT),
    _of_numbers("DispatchedQueueSize", "InFlightCount", INT),
    _of_numbers("DispatchedCounter", "DispatchCount"),
    _of_numbers("EnqueueCounter", "EnqueueCount"),
    _of_numbers("DequeueCounter", "DequeueCount"),
    _of_numbers("ConsumedCount", "DequeueCount"),
    _of_numbers("MessageCountAwaitingAcknowledge", "InFlightCount", INT),
    _fixed("ConnectionId", TEXT, None),
    _fixed("SessionId", LONG, 0),
    _fixed("SubscriptionId", LONG, 0),
    _of_subscription("Selector", TEXT, "selector"),
    _fixed("DestinationQueue", BOOLEAN, False),
    _fixed("DestinationTopic", BOOLEAN, True),
    _fixed("DestinationTemporary", BOOLEAN, False),
    _fixed("Network", BOOLEAN, False),
    _fixed("PrefetchSize", INT, 0),
    _fixed("Retroactive", BOOLEAN, False),
    _fixed("Exclusive", BOOLEAN, False),
    _of_subscription("Durable", BOOLEAN, "durable"),
    _of_subscription("NoLocal", BOOLEAN, "no_local"),
    _fixed("DispatchAsync", BOOLEAN, True),
    _fixed("MaximumPendingMessageLimit", INT, 0),
    _fixed("Priority", INT, 0),
    _fixed("SlowConsumer", BOOLEAN, False),
    _fixed("UserName", TEXT, None),
    _fixed("Connection", NAME, None),
)


# -- connectors and connections


def _of_connection(name: str, type: str, field: str) -> tuple[str, str, Callable[[Any, Beans], Any]]:
    return name, type, lambda each, beans: getattr(each.stats, field)


_CONNECTOR = (
    ("Name", TEXT, lambda each, beans: each["connector"]),
    ("URI", TEXT, lambda each, beans: each["address"]),
    ("ConnectionCount", INT, lambda each, beans: each["connections"]),
    ("MaxConnectionExceededCount", LONG, lambda each, beans: each["refused"]),
    _fixed("AutoStart", BOOLEAN, True),
    _fixed("Started", BOOLEAN, True),
    _fixed("StatisticsEnabled", BOOLEAN, True),
    _fixed("AllowLinkStealingEnabled", BOOLEAN, False),
)

_CONNECTION = (
    _of_connection("ClientId", TEXT, "client_id"),
    _of_connection("RemoteAddress", TEXT, "remote_address"),
    _of_connection("UserName", TEXT, "user"),
    _of_connection("Slow", BOOLEAN, "slow"),
    _of_connection("Blocked", BOOLEAN, "blocked"),
    _fixed("Connected", BOOLEAN, True),
    _fixed("Active", BOOLEAN, True),
    _fixed("ActiveTransactionCount", INT, 0),
    _fixed("Consumers", NAMES, []),
    _fixed("Producers", NAMES, []),
)

_HEALTH = (("CurrentStatus", TEXT, lambda reading, beans: health.status(health.conditions(reading))),)

_STORE = (
    _fixed("Name", TEXT, "store"),
    ("Size", LONG, lambda reading, beans: reading.used[0]),
)

_BROKER_PACKAGE = "org.apache.activemq.broker.jmx"

#: Every kind of bean.
KINDS: dict[str, BeanKind] = {
    "broker": BeanKind(f"{_BROKER_PACKAGE}.BrokerView", "the broker", _table(_BROKER)),
    "queue": BeanKind(f"{_BROKER_PACKAGE}.QueueView", "a queue", _table(_QUEUE)),
    "topic": BeanKind(f"{_BROKER_PACKAGE}.TopicView", "a topic", _table(_DESTINATION)),
    "consumer": BeanKind(f"{_BROKER_PACKAGE}.DurableSubscriptionView", "a durable subscription", _table(_CONSUMER)),
    "connector": BeanKind(f"{_BROKER_PACKAGE}.ConnectorView", "an address to connect to", _table(_CONNECTOR)),
    "connection": BeanKind(f"{_BROKER_PACKAGE}.ConnectionView", "a client's connection", _table(_CONNECTION)),
    "health": BeanKind(f"{_BROKER_PACKAGE}.HealthView", "what deserves a look", _table(_HEALTH)),
    "store": BeanKind(f"{_BROKER_PACKAGE}.PersistenceAdapterView", "where messages are kept", _table(_STORE)),
}
