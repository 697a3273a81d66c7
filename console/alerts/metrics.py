"""Metrics: what an alert rule may look at, and what each is called. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analytics.model.failure_patterns import COUNTED_AGAIN
from brokerapp.model.destination import DestinationKind
from console.ui.formatting import number_format

#: Seconds over which things that seldom happen are counted.
LATELY_SECONDS = 600


class AlertMetric(StrEnum):
    """What a rule looks at."""

    DEPTH = "depth"
    OLDEST = "oldest"
    NO_CONSUMER = "no-consumer"
    DEAD = "dead-letters"
    RATE_IN = "rate-in"
    RATE_OUT = "rate-out"
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


#: What a metric is of, as the form groups them.
QUEUES, SUBSCRIPTIONS, WHOLE = "Queues and topics", "Durable subscriptions", "The whole broker"


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """A metric as a form and a sentence have it."""

    label: str
    unit: str
    explanation: str
    group: str = QUEUES
    kinds: tuple[DestinationKind, ...] = (DestinationKind.QUEUE,)
    noun: str = ""  #: within a sentence, where the label makes none
    fact: str = ""  #: what is said of its subject instead of a number, where that is the news
    has_history: bool = True  #: whether the history holds it, so that a rule can be tried on the past

    @property
    def said(self) -> str:
        """What it is called within a sentence."""
        return self.noun or self.label.lower()

    @property
    def of_broker(self) -> bool:
        """Whether it is of the whole broker, so that a pattern means nothing."""
        return self.group == WHOLE

    @property
    def is_per_part(self) -> bool:
        """Whether it fires for each part of the broker by itself, as a fact."""
        return bool(self.fact)

    @property
    def of_subscriptions(self) -> bool:
        """Whether it is of named subscriptions; its pattern is that of their topics."""
        return self.group == SUBSCRIPTIONS


_BOTH = (DestinationKind.QUEUE, DestinationKind.TOPIC)
_TOPICS = (DestinationKind.TOPIC,)

DESCRIPTIONS: dict[AlertMetric, MetricDescription] = {
    AlertMetric.DEPTH: MetricDescription("Depth", "messages", "Messages pending in a queue"),
    AlertMetric.OLDEST: MetricDescription("Oldest message", "s", "How long the first message of a queue waits"),
    AlertMetric.NO_CONSUMER: MetricDescription(
        "Nobody consumes",
        "messages",
        "Messages pending in a queue without any consumer",
        noun="depth without a consumer",
    ),
    AlertMetric.DEAD: MetricDescription(
        "Dead letters",
        "messages",
        f"Messages that came to a dead-letter queue within ten minutes; {COUNTED_AGAIN}",
        noun="number of dead letters that came within ten minutes",
    ),
    AlertMetric.RATE_IN: MetricDescription("Rate in", "msg/s", "Messages a second that arrive", kinds=_BOTH),
    AlertMetric.RATE_OUT: MetricDescription(
        "Rate out", "msg/s", "Messages a second that leave: dequeued from a queue, handed out by a topic", kinds=_BOTH
    ),
    AlertMetric.EXPIRED: MetricDescription(
        "Expired",
        "messages",
        "Messages whose time to live ended within ten minutes",
        noun="number expired within ten minutes",
        kinds=_BOTH,
    ),
    AlertMetric.REDELIVERED: MetricDescription(
        "Redelivered",
        "messages",
        "Messages that came back from a consumer within ten minutes, to be delivered again",
        noun="number redelivered within ten minutes",
    ),
    AlertMetric.DROPPED: MetricDescription(
        "Dropped",
        "messages",
        "Messages not kept, within ten minutes: copies for a full queue, or for a slow subscriber",
        noun="number dropped within ten minutes",
        kinds=_BOTH,
    ),
    AlertMetric.BLOCKED: MetricDescription(
        "Blocked sends",
        "sends",
        "Sends that found no room and had to wait, within ten minutes",
        noun="number of blocked sends within ten minutes",
        kinds=_BOTH,
    ),
    AlertMetric.CONSUMERS: MetricDescription(
        "Consumers", "consumers", "Who consumes, durable subscriptions online included", kinds=_BOTH
    ),
    AlertMetric.PRODUCERS: MetricDescription(
        "Producers", "producers", "Connections that sent here and are still open", kinds=_BOTH, has_history=False
    ),
    AlertMetric.IN_FLIGHT: MetricDescription(
        "In flight",
        "messages",
        "Handed to consumers and not acknowledged yet",
        noun="number in flight",
        has_history=False,
    ),
    AlertMetric.BACKLOG: MetricDescription(
        "Backlog", "messages", "Messages that wait for a durable subscription", SUBSCRIPTIONS, _TOPICS
    ),
    AlertMetric.OFFLINE: MetricDescription(
        "Offline",
        "s",
        "How long nobody has consumed a durable subscription",
        SUBSCRIPTIONS,
        _TOPICS,
        noun="time offline",
    ),
    AlertMetric.STORE: MetricDescription("Store", "%", "How full the store is, of its limit", WHOLE),
    AlertMetric.TEMPORARY: MetricDescription(
        "Temporary store", "%", "How full of non-persistent messages the store is, of their limit", WHOLE
    ),
    AlertMetric.MEMORY: MetricDescription(
        "Store, of the machine's memory", "%", "What the store takes of its machine's memory", WHOLE,
        noun="store's share of the machine's memory",
    ),
    AlertMetric.ROOM: MetricDescription(
        "Memory", "%", "Messages that a node has taken and not stored yet, and open transactions, of their limit", WHOLE
    ),
    AlertMetric.DISK: MetricDescription(
        "Disk", "%", "How full the file system of the embedded store is", WHOLE, noun="used share of the store's disk"
    ),
    AlertMetric.CONNECTIONS: MetricDescription("Connections", "connections", "STOMP connections that are open", WHOLE),
    AlertMetric.HELD_BACK: MetricDescription(
        "Connections held back", "connections", "Connections of which a send waits for room (flow control)", WHOLE,
        noun="number of connections held back",
    ),
    AlertMetric.SLOW: MetricDescription(
        "Slow connections", "connections", "Connections that do not take what is written to them", WHOLE,
        noun="number of slow connections",
    ),
    AlertMetric.LINKS_DOWN: MetricDescription(
        "Network links down", "links", "Links of a network connector that should be there and are not", WHOLE,
        noun="number of network links down", fact="has no link to its broker",
    ),
    AlertMetric.AWAY: MetricDescription(
        "Cluster brokers away", "brokers", "Other brokers of the cluster that cannot be reached", WHOLE,
        noun="number of cluster brokers away", fact="of the cluster cannot be reached",
    ),
    AlertMetric.NODES: MetricDescription(
        "Nodes", "nodes", "Nodes of this broker that run", WHOLE, noun="number of nodes"
    ),
}  # fmt: skip

#: Units that are nouns, so that one of them has no s.
COUNTED = ("messages", "sends", "connections", "consumers", "producers", "links", "brokers", "nodes")


def grouped() -> list[tuple[str, list[tuple[AlertMetric, MetricDescription]]]]:
    """All metrics by what they are of."""
    groups: dict[str, list[tuple[AlertMetric, MetricDescription]]] = {}
    for metric, meaning in DESCRIPTIONS.items():
        groups.setdefault(meaning.group, []).append((metric, meaning))
    return list(groups.items())


def amount(metric: AlertMetric, value: float) -> str:
    """A number of a metric with its unit: `1,204 messages`, `4 min`, `80 %`."""
    unit = DESCRIPTIONS[metric].unit
    if unit == "s":
        return number_format.format_duration(value)
    if unit in COUNTED:
        return number_format.pluralize_count(round(value), unit.removesuffix("s"))
    text = number_format.format_integer(value) if unit != "msg/s" else number_format.format_rate(value)
    return f"{text} {unit}"
