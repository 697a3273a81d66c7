"""Metrics of alert rules: label, unit and description of each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analytics.model.failure_patterns import COUNTED_AGAIN
from brokerapp.model.destination import DestinationKind
from console.ui.formatting import number_format

#: Seconds over which rare events are counted.
LATELY_SECONDS = 600


class AlertMetric(StrEnum):
    """The metric of an alert rule; values are stored."""

    DEPTH = "depth"
    OLDEST = "oldest"
    NO_CONSUMER = "no-consumer"
    CONSUMER_GONE = "consumer-gone"
    DEAD = "dead-letters"
    RATE_IN = "rate-in"
    RATE_OUT = "rate-out"
    TRAFFIC_ANOMALY = "traffic-anomaly"
    TRAFFIC_SHORTFALL = "traffic-shortfall"
    TRAFFIC_EXCESS = "traffic-excess"
    EXPIRED = "expired"
    REDELIVERED = "redelivered"
    DROPPED = "dropped"
    BLOCKED = "blocked-sends"
    CONSUMERS = "consumers"
    PRODUCERS = "producers"
    IN_FLIGHT = "in-flight"
    BACKLOG = "backlog"
    OFFLINE = "offline"
    STORE = "store"
    TEMPORARY = "temporary-store"
    MEMORY = "memory"  #: the name is older than ROOM
    ROOM = "room"
    DISK = "disk"
    CONNECTIONS = "connections"
    HELD_BACK = "held-back"
    SLOW = "slow"
    LINKS_DOWN = "links-down"
    AWAY = "brokers-away"
    NODES = "nodes"
    PREPARED = "prepared"
    BACKUPS = "failed-backups"
    CERTIFICATE = "certificate-days"
    BURN_FAST = "burn-fast"
    BURN_SLOW = "burn-slow"
    BUDGET = "error-budget"


#: Groups of metrics in the form.
QUEUES, SUBSCRIPTIONS, WHOLE = "Queues and topics", "Durable subscriptions", "Broker"
OBJECTIVES = "Objectives"


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """Describes a metric for the form and for sentences."""

    label: str
    unit: str
    explanation: str
    group: str = QUEUES
    kinds: tuple[DestinationKind, ...] = (DestinationKind.QUEUE,)
    noun: str = ""  #: within a sentence, where the label makes none
    fact: str = ""  #: what is said of its subject instead of a number, where that is the news
    #: Whether the history of destinations of the last day holds it; rules of other histories can be tested, too.
    has_history: bool = True
    is_of_pattern: bool = False  #: whether hours are compared with the expected range of the weekly pattern

    @property
    def phrase(self) -> str:
        """Return the metric's name for use within a sentence."""
        return self.noun or self.label.lower()

    @property
    def of_broker(self) -> bool:
        """Return whether it is of the whole broker, so that a pattern means nothing."""
        return self.group == WHOLE

    @property
    def of_objectives(self) -> bool:
        """Return whether it is of objectives; each whose queues all match the pattern fires separately."""
        return self.group == OBJECTIVES

    @property
    def is_per_part(self) -> bool:
        """Return whether it fires for each part of the broker by itself, as a fact."""
        return bool(self.fact)

    @property
    def is_above_only(self) -> bool:
        """Return whether rules can only be broken by values above the threshold."""
        return self.is_per_part or self.is_of_pattern

    @property
    def of_subscriptions(self) -> bool:
        """Return whether it is of named subscriptions; its pattern is that of their topics."""
        return self.group == SUBSCRIPTIONS


_BOTH = (DestinationKind.QUEUE, DestinationKind.TOPIC)
_TOPICS = (DestinationKind.TOPIC,)

DESCRIPTIONS: dict[AlertMetric, MetricDescription] = {
    AlertMetric.DEPTH: MetricDescription("Depth", "messages", "Messages in a queue that are not acknowledged"),
    AlertMetric.OLDEST: MetricDescription("Oldest message", "s", "Age of the first message in a queue"),
    AlertMetric.NO_CONSUMER: MetricDescription(
        "No consumers",
        "messages",
        "Depth of a queue without consumers",
        noun="depth without consumers",
    ),
    AlertMetric.CONSUMER_GONE: MetricDescription(
        "Time without consumers",
        "s",
        "Time since the last consumer of a queue left; none for queues that never had one",
    ),
    AlertMetric.DEAD: MetricDescription(
        "Dead letters",
        "messages",
        f"Messages added to a dead-letter queue within 10 minutes; {COUNTED_AGAIN}",
        noun="number of new dead letters within 10 minutes",
    ),
    AlertMetric.RATE_IN: MetricDescription("Enqueue rate", "msg/s", "Messages enqueued per second", kinds=_BOTH),
    AlertMetric.RATE_OUT: MetricDescription(
        "Dequeue rate", "msg/s", "Messages per second dequeued from a queue, or dispatched by a topic", kinds=_BOTH
    ),
    AlertMetric.TRAFFIC_ANOMALY: MetricDescription(
        "Traffic outside expected range",
        "messages",
        "Messages that an hour has more or fewer than the weekly pattern allows; 0: any",
        noun="number of messages outside the expected range in an hour",
        kinds=_BOTH,
        has_history=False,
        is_of_pattern=True,
    ),
    AlertMetric.TRAFFIC_SHORTFALL: MetricDescription(
        "Traffic below expected range",
        "messages",
        "Messages that an hour has fewer than the weekly pattern allows; 0: any",
        noun="number of messages missing to the expected range in an hour",
        kinds=_BOTH,
        has_history=False,
        is_of_pattern=True,
    ),
    AlertMetric.TRAFFIC_EXCESS: MetricDescription(
        "Traffic above expected range",
        "messages",
        "Messages that an hour has more than the weekly pattern allows; 0: any",
        noun="number of messages above the expected range in an hour",
        kinds=_BOTH,
        has_history=False,
        is_of_pattern=True,
    ),
    AlertMetric.EXPIRED: MetricDescription(
        "Expired",
        "messages",
        "Messages that expired within 10 minutes",
        noun="number expired within 10 minutes",
        kinds=_BOTH,
    ),
    AlertMetric.REDELIVERED: MetricDescription(
        "Redelivered",
        "messages",
        "Messages redelivered within 10 minutes",
        noun="number redelivered within 10 minutes",
    ),
    AlertMetric.DROPPED: MetricDescription(
        "Dropped",
        "messages",
        "Messages dropped within 10 minutes by full queues or for slow consumers",
        noun="number dropped within 10 minutes",
        kinds=_BOTH,
    ),
    AlertMetric.BLOCKED: MetricDescription(
        "Blocked sends",
        "sends",
        "Sends blocked by flow control within 10 minutes",
        noun="number of blocked sends within 10 minutes",
        kinds=_BOTH,
    ),
    AlertMetric.CONSUMERS: MetricDescription(
        "Consumers", "consumers", "Consumers, including online durable subscriptions", kinds=_BOTH,
        noun="number of consumers",
    ),
    AlertMetric.PRODUCERS: MetricDescription(
        "Producers", "producers", "Open connections that sent messages here", kinds=_BOTH,
        noun="number of producers", has_history=False,
    ),
    AlertMetric.IN_FLIGHT: MetricDescription(
        "In flight",
        "messages",
        "Messages dispatched and not acknowledged",
        noun="number in flight",
        has_history=False,
    ),
    AlertMetric.BACKLOG: MetricDescription(
        "Backlog", "messages", "Messages stored for a durable subscription", SUBSCRIPTIONS, _TOPICS
    ),
    AlertMetric.OFFLINE: MetricDescription(
        "Offline",
        "s",
        "Time since a durable subscription was last online",
        SUBSCRIPTIONS,
        _TOPICS,
        noun="time offline",
    ),
    AlertMetric.STORE: MetricDescription("Store", "%", "Used share of the store limit", WHOLE),
    AlertMetric.TEMPORARY: MetricDescription(
        "Temporary store", "%", "Non-persistent messages in the store, as a share of their limit", WHOLE
    ),
    AlertMetric.MEMORY: MetricDescription(
        "Store (share of host memory)", "%", "Memory of the store as a share of host memory", WHOLE,
        noun="store's share of host memory",
    ),
    AlertMetric.ROOM: MetricDescription(
        "Memory", "%", "Messages not stored yet and open transactions of a node, as a share of their limit", WHOLE
    ),
    AlertMetric.DISK: MetricDescription(
        "Disk", "%", "Used share of the file system of the embedded store", WHOLE, noun="used share of the store's disk"
    ),
    AlertMetric.CONNECTIONS: MetricDescription(
        "Connections", "connections", "Open STOMP connections", WHOLE, noun="number of connections"
    ),
    AlertMetric.HELD_BACK: MetricDescription(
        "Blocked connections", "connections", "Connections blocked by flow control", WHOLE,
        noun="number of blocked connections",
    ),
    AlertMetric.SLOW: MetricDescription(
        "Slow connections", "connections", "Connections that do not read data in time", WHOLE,
        noun="number of slow connections",
    ),
    AlertMetric.LINKS_DOWN: MetricDescription(
        "Bridges down", "bridges", "Bridges of network connectors that are not connected", WHOLE,
        noun="number of bridges down", fact="has a bridge that is not connected",
    ),
    AlertMetric.AWAY: MetricDescription(
        "Unreachable cluster brokers", "brokers", "Brokers of the cluster that do not respond", WHOLE,
        noun="number of unreachable cluster brokers", fact="of the cluster is unreachable",
    ),
    AlertMetric.NODES: MetricDescription(
        "Nodes", "nodes", "Running nodes of this broker", WHOLE, noun="number of nodes"
    ),
    AlertMetric.PREPARED: MetricDescription(
        "Oldest prepared transaction", "s", "Age of the oldest distributed transaction that was prepared and not ended",
        WHOLE, noun="age of the oldest prepared transaction", has_history=False,
    ),
    AlertMetric.BACKUPS: MetricDescription(
        "Failed backups", "backups", "Backups that failed since the last successful one", WHOLE,
        noun="number of failed backups", has_history=False,
    ),
    AlertMetric.CERTIFICATE: MetricDescription(
        "Certificate valid for", "days",
        "Time until a certificate of the console or of a node's connectors expires; usual threshold: below 21",
        WHOLE, noun="time until the certificate expires", has_history=False,
    ),
    AlertMetric.BURN_FAST: MetricDescription(
        "Burn rate, 1 h and 5 min", "x",
        "How fast the error budget is spent, over the last hour and the last 5 minutes; usual threshold: 14.4",
        OBJECTIVES, _BOTH, noun="burn rate over 1 h and 5 min", has_history=False,
    ),
    AlertMetric.BURN_SLOW: MetricDescription(
        "Burn rate, 6 h and 30 min", "x",
        "How fast the error budget is spent, over the last 6 hours and the last 30 minutes; usual threshold: 6",
        OBJECTIVES, _BOTH, noun="burn rate over 6 h and 30 min", has_history=False,
    ),
    AlertMetric.BUDGET: MetricDescription(
        "Error budget left", "%", "Share of the error budget of the period that is left, 0 if it is spent", OBJECTIVES,
        _BOTH, has_history=False,
    ),
}  # fmt: skip

#: Units that are nouns, so that one of them has no s.
COUNTED = (
    "messages", "sends", "connections", "consumers", "producers", "bridges", "brokers", "nodes", "backups", "days",
)  # fmt: skip


def grouped() -> list[tuple[str, list[tuple[AlertMetric, MetricDescription]]]]:
    """Return all metrics by group."""
    groups: dict[str, list[tuple[AlertMetric, MetricDescription]]] = {}
    for metric, meaning in DESCRIPTIONS.items():
        groups.setdefault(meaning.group, []).append((metric, meaning))
    return list(groups.items())


def figure(metric: AlertMetric, value: float) -> str:
    """Format a value after the metric's phrase, which may name what is counted: `number of nodes above 2`."""
    description = DESCRIPTIONS[metric]
    if description.unit in COUNTED and description.phrase.startswith("number of "):
        return number_format.format_integer(round(value))
    return amount(metric, value)


def amount(metric: AlertMetric, value: float) -> str:
    """Format a value of a metric with its unit: `1,204 messages`, `4 min`, `80%`."""
    unit = DESCRIPTIONS[metric].unit
    if unit == "x":
        return f"{value:,.3g}x"
    if unit == "s":
        return number_format.format_duration(value)
    if unit in COUNTED:
        return number_format.pluralize_count(round(value), unit.removesuffix("s"))
    text = number_format.format_integer(value) if unit != "msg/s" else number_format.format_rate(value)
    return f"{text}%" if unit == "%" else f"{text} {unit}"
