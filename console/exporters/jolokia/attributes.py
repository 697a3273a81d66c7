"""Define the attributes of each kind of bean: name, Java type and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brokerapp.engine.policy.send_timeout import WARNING_INTERVAL_MS, store_limit_of
from brokerapp.model.destination import DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.exporters.jolokia import client_attributes, health
from console.exporters.jolokia.attribute_rows import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAP,
    NAME,
    NAMES,
    TEXT,
    Row,
    fixed,
    table,
)
from console.exporters.jolokia.beans import BeanKind, Beans
from console.exporters.jolokia.object_names import ObjectName

#: The ActiveMQ whose attributes these are; checks compare it. Sluice's own version stands in `BrokerId`'s place: none.
VERSION = "5.17.2"

#: Messages of a page, and of a browse, when no policy says otherwise.
PAGE_SIZE, BROWSE_PAGE_SIZE = 200, 400
AUDIT_DEPTH, AUDITED_PRODUCERS = 2048, 64


def share(part: int, whole: int) -> int:
    """Return a percentage as an integer; 0 of nothing."""
    return part * 100 // whole if whole > 0 else 0


def mean(total: int, count: int) -> float:
    """Return the mean; 0 of nothing."""
    return total / count if count else 0.0


def _same(name: str, type: str = LONG) -> Row:
    """Return a row for a number that has the same name in JMX and here."""
    return name, type, lambda stats, beans: getattr(stats, name)


# -- destinations


def _limit(stats: DestinationStats, beans: Beans) -> int:
    policy = beans.policy(stats)
    return store_limit_of(policy).bytes or policy.memory_limit or _store(beans, "message_limit")


def _store(beans: Beans, name: str) -> int:
    node = beans.reading.node
    return int((node.store.get(name) if node else 0) or 0)


def store_memory_share(beans: Beans) -> int:
    """Return the percentage of memory that the store uses, of its limit or of the host's memory."""
    return share(_store(beans, "used"), _store(beans, "limit") or _store(beans, "machine"))


def _memory(beans: Beans, name: str) -> int:
    """Return the node's memory usage, `used` or `limit` (memoryUsage)."""
    node = beans.reading.node
    return int((node.memory.get(name) if node else 0) or 0)


def _subscriptions(stats: DestinationStats, beans: Beans) -> list[ObjectName]:
    return list(map(beans.name_of_consumer, beans.consumers_of(stats.destination)))


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
    fixed("MemoryUsagePortion", FLOAT, 1.0),
    ("StoreMessageSize", LONG, lambda stats, beans: beans.used(stats)),
    fixed("TempUsagePercentUsage", INT, 0),
    fixed("TempUsageLimit", LONG, 0),
    fixed("ForwardCount", LONG, 0),
    fixed("MessagesCachedCount", LONG, 0),
    fixed("DuplicateFromStoreCount", LONG, 0),
    fixed("SendDuplicateFromStoreToDLQ", BOOLEAN, False),
    (
        "BlockedProducerWarningInterval", LONG,
        lambda stats, beans: _said(beans.policy(stats).blocked_producer_warning_interval, WARNING_INTERVAL_MS),
    ),
    fixed("MaxUncommittedExceededCount", LONG, 0),
    ("ProducerFlowControl", BOOLEAN, lambda stats, beans: _said(beans.policy(stats).producer_flow_control, True)),
    ("AlwaysRetroactive", BOOLEAN, lambda stats, beans: beans.policy(stats).always_retroactive),
    ("PrioritizedMessages", BOOLEAN, lambda stats, beans: bool(beans.policy(stats).prioritized_messages)),
    fixed("UseCache", BOOLEAN, True),
    fixed("EnableAudit", BOOLEAN, False),
    fixed("MaxAuditDepth", INT, AUDIT_DEPTH),
    fixed("MaxProducersToAudit", INT, AUDITED_PRODUCERS),
    fixed("MaxPageSize", INT, PAGE_SIZE),
    fixed("MaxBrowsePageSize", INT, BROWSE_PAGE_SIZE),
    _same("Options", TEXT),
    _same("DLQ", BOOLEAN),
    fixed("SlowConsumerStrategy", NAME, None),
    fixed("NetworkEnqueues", LONG, 0),
    fixed("NetworkDequeues", LONG, 0),
    fixed("AdvancedNetworkStatisticsEnabled", BOOLEAN, False),
    fixed("AdvancedMessageStatisticsEnabled", BOOLEAN, False),
    *(
        fixed(f"{which}Message{what}", type, empty)
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
    fixed("CursorFull", BOOLEAN, False),
    fixed("CursorMemoryUsage", LONG, 0),
    fixed("CursorPercentUsage", INT, 0),
    fixed("CacheEnabled", BOOLEAN, True),
    fixed("MessageGroups", MAP, {}),
    (
        "MessageGroupType", TEXT,
        lambda stats, beans: _said(beans.policy(stats).message_group_map_factory_type, "cached"),
    ),
)  # fmt: skip


def _said(value: Any, default: Any) -> Any:
    return default if value is None else value


# -- the broker


def _names(kind: DestinationKind) -> Callable[[Any, Beans], list[ObjectName]]:
    return lambda reading, beans: [beans.name_of(each.destination) for each in reading.of_kind(kind)]


def _durables(active: bool) -> Callable[[Any, Beans], list[ObjectName]]:
    return lambda reading, beans: [
        beans.name_of_consumer(each) for each in beans.consumers if each.kept and each.is_active is active
    ]


def _subscribers(kind: DestinationKind) -> Callable[[Any, Beans], list[ObjectName]]:
    return lambda reading, beans: [
        beans.name_of_consumer(each) for each in beans.consumers if not each.kept and each.kind is kind
    ]


def _producers(reading: Any, beans: Beans) -> list[ObjectName]:
    return list(map(beans.name_of_producer, reading.peers))


def _total(name: str, field: str) -> Row:
    return name, LONG, lambda reading, beans: beans.total(field)


def _how_many(name: str, kind: DestinationKind) -> Row:
    return name, INT, lambda reading, beans: len(reading.of_kind(kind))


def _uptime_ms(reading: Any, beans: Beans) -> int:
    return max(0, int(reading.at * 1000) - reading.node.started_ms) if reading.node else 0


def uptime_words(ms: int) -> str:
    """Return an uptime as ActiveMQ formats it: `12.345 seconds`, `4 minutes`, `2 hours 5 minutes`."""
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
    fixed("BrokerVersion", TEXT, VERSION),
    ("BrokerId", TEXT, lambda reading, beans: f"ID:{reading.node.node}" if reading.node else None),
    ("Uptime", TEXT, lambda reading, beans: uptime_words(_uptime_ms(reading, beans))),
    ("UptimeMillis", LONG, _uptime_ms),
    ("CurrentConnectionsCount", INT, lambda reading, beans: reading.open_connection_count),
    ("TotalConnectionsCount", LONG, lambda reading, beans: reading.accepted_connection_count),
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
    ("MemoryPercentUsage", INT, lambda reading, beans: share(_memory(beans, "used"), _memory(beans, "limit"))),
    ("MemoryLimit", LONG, lambda reading, beans: _memory(beans, "limit")),
    ("StorePercentUsage", INT, lambda reading, beans: share(reading.used[0], _store(beans, "message_limit"))),
    ("StoreLimit", LONG, lambda reading, beans: _store(beans, "message_limit")),
    ("TempPercentUsage", INT, lambda reading, beans: share(_store(beans, "temp_used"), _store(beans, "temp_limit"))),
    ("TempLimit", LONG, lambda reading, beans: _store(beans, "temp_limit")),
    ("Queues", NAMES, _names(DestinationKind.QUEUE)),
    ("Topics", NAMES, _names(DestinationKind.TOPIC)),
    ("TemporaryQueues", NAMES, _names(DestinationKind.TEMP_QUEUE)),
    ("TemporaryTopics", NAMES, _names(DestinationKind.TEMP_TOPIC)),
    ("QueueSubscribers", NAMES, _subscribers(DestinationKind.QUEUE)),
    ("TopicSubscribers", NAMES, _subscribers(DestinationKind.TOPIC)),
    ("TemporaryQueueSubscribers", NAMES, _subscribers(DestinationKind.TEMP_QUEUE)),
    ("TemporaryTopicSubscribers", NAMES, _subscribers(DestinationKind.TEMP_TOPIC)),
    ("DurableTopicSubscribers", NAMES, _durables(active=True)),
    ("InactiveDurableTopicSubscribers", NAMES, _durables(active=False)),
    *(
        fixed(name, NAMES, [])
        for name in ("QueueProducers", "TopicProducers", "TemporaryQueueProducers", "TemporaryTopicProducers")
    ),
    ("DynamicDestinationProducers", NAMES, _producers),
    _how_many("TotalQueuesCount", DestinationKind.QUEUE),
    _how_many("TotalTopicsCount", DestinationKind.TOPIC),
    _how_many("TotalManagedQueuesCount", DestinationKind.QUEUE),
    _how_many("TotalManagedTopicsCount", DestinationKind.TOPIC),
    _how_many("TotalTemporaryQueuesCount", DestinationKind.TEMP_QUEUE),
    _how_many("TotalTemporaryTopicsCount", DestinationKind.TEMP_TOPIC),
    fixed("JobSchedulerStorePercentUsage", INT, 0),
    fixed("JobSchedulerStoreLimit", LONG, 0),
    fixed("JMSJobScheduler", NAME, None),
    ("TransportConnectors", MAP, _connector_urls),
    ("VMURL", TEXT, lambda reading, beans: f"vm://{beans.options.broker}"),
    fixed("DataDirectory", TEXT, None),
    fixed("Persistent", BOOLEAN, True),
    fixed("Slave", BOOLEAN, False),
    fixed("StatisticsEnabled", BOOLEAN, True),
    fixed("MaxUncommittedCount", INT, 0),
    fixed("TotalMaxUncommittedExceededCount", LONG, 0),
    fixed("DedicatedTaskRunner", BOOLEAN, False),
    fixed("VirtualThreadTaskRunner", BOOLEAN, False),
)  # fmt: skip


# -- connectors

_CONNECTOR = (
    ("Name", TEXT, lambda each, beans: each["connector"]),
    ("URI", TEXT, lambda each, beans: each["address"]),
    ("ConnectionCount", INT, lambda each, beans: each["connections"]),
    ("MaxConnectionExceededCount", LONG, lambda each, beans: each["refused"]),
    fixed("AutoStart", BOOLEAN, True),
    fixed("Started", BOOLEAN, True),
    fixed("StatisticsEnabled", BOOLEAN, True),
    fixed("AllowLinkStealingEnabled", BOOLEAN, False),
    fixed("UpdateClusterClients", BOOLEAN, False),
    fixed("RebalanceClusterClients", BOOLEAN, False),
    fixed("UpdateClusterClientsOnRemove", BOOLEAN, False),
    fixed("UpdateClusterFilter", TEXT, None),
)

_HEALTH = (("CurrentStatus", TEXT, lambda reading, beans: health.status(health.conditions(reading))),)

_STORE = (
    fixed("Name", TEXT, "store"),
    ("Size", LONG, lambda reading, beans: reading.used[0]),
)

_BROKER_PACKAGE = "org.apache.activemq.broker.jmx"

#: Every kind of bean.
KINDS: dict[str, BeanKind] = {
    "broker": BeanKind(f"{_BROKER_PACKAGE}.BrokerView", "the broker", table(_BROKER)),
    "queue": BeanKind(f"{_BROKER_PACKAGE}.QueueView", "a queue", table(_QUEUE)),
    "topic": BeanKind(f"{_BROKER_PACKAGE}.TopicView", "a topic", table(_DESTINATION)),
    "consumer": BeanKind(f"{_BROKER_PACKAGE}.SubscriptionView", "a consumer", table(client_attributes.CONSUMER)),
    "topic-consumer": BeanKind(
        f"{_BROKER_PACKAGE}.TopicSubscriptionView", "a consumer of a topic", table(client_attributes.TOPIC_CONSUMER)
    ),
    "durable": BeanKind(
        f"{_BROKER_PACKAGE}.DurableSubscriptionView", "a durable subscription", table(client_attributes.DURABLE)
    ),
    "producer": BeanKind(f"{_BROKER_PACKAGE}.ProducerView", "a producer", table(client_attributes.PRODUCER)),
    "connector": BeanKind(f"{_BROKER_PACKAGE}.ConnectorView", "transport connector", table(_CONNECTOR)),
    "connection": BeanKind(
        f"{_BROKER_PACKAGE}.ConnectionView", "a client's connection", table(client_attributes.CONNECTION)
    ),
    "health": BeanKind(f"{_BROKER_PACKAGE}.HealthView", "health", table(_HEALTH)),
    "store": BeanKind(f"{_BROKER_PACKAGE}.PersistenceAdapterView", "message store", table(_STORE)),
}
