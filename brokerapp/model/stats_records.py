"""Define the figures that the broker reports, under the attribute names of JMX, as values that JSON can hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message
from brokerapp.model.subscription_identity import SubscriptionIdentity


def _fields(record: Any) -> JsonObject:
    """Return a dataclass's fields by name. Their values are not copied, unlike by `asdict`: they are JSON already."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


@dataclass(slots=True, eq=False)
class DestinationStats:
    """Numbers of one destination. Counts are since the destination's node started; sizes in bytes."""

    destination: Destination
    QueueSize: int = 0  #: messages not yet acknowledged, in flight included
    EnqueueCount: int = 0  #: arrived (copies count where they land)
    DequeueCount: int = 0  #: acknowledged, expired, removed, moved
    DispatchCount: int = 0  #: handed to consumers; redeliveries count again
    InFlightCount: int = 0  #: dispatched, not acknowledged
    ExpiredCount: int = 0
    DeadLetterCount: int = 0  #: left for a dead-letter queue
    DroppedCount: int = 0  #: not kept: a virtual topic's copies for a full queue, a topic's for a slow subscriber
    DiscardedCount: int = 0  #: of the dropped: they failed, and no dead-letter queue takes them
    RedeliveredCount: int = 0  #: came back from a consumer, to be delivered again
    BlockedSends: int = 0  #: that found no room and had to wait
    TotalBlockedTime: int = 0  #: milliseconds they waited, all together
    ConsumerCount: int = 0
    ProducerCount: int = 0  #: connections that sent here and are still open
    EnqueueBytes: int = 0
    DequeueBytes: int = 0  #: of what DequeueCount counts
    MinMessageSize: int = 0  #: bytes of the smallest body that arrived
    MaxMessageSize: int = 0
    EnqueueTimeUs: int = 0  #: microseconds from reaching the broker until handed out, of all dispatched together
    MinEnqueueTime: int = 0  #: milliseconds of the one that was handed out soonest
    MaxEnqueueTime: int = 0
    Options: str = ""  #: written behind its name by the first who named it, `consumer.priority=1&...`
    Paused: bool = False
    DLQ: bool = False  #: whether dead letters arrived here, or its name says that they do
    version: int = 0  #: of the snapshot in which these numbers last changed

    def count_arrivals(self, sizes: BodySizes) -> None:
        """Messages with bodies of these sizes came."""
        if not self.EnqueueCount:
            self.MinMessageSize, self.MaxMessageSize = sizes.least, sizes.greatest
        else:
            if sizes.least < self.MinMessageSize:
                self.MinMessageSize = sizes.least
            if sizes.greatest > self.MaxMessageSize:
                self.MaxMessageSize = sizes.greatest
        self.EnqueueCount += sizes.count
        self.EnqueueBytes += sizes.bytes

    def count_departures(self, messages: Collection[Message], times: int = 1) -> None:
        """These messages are here no more, whatever became of them; of a topic so many subscribers had them."""
        self.DequeueCount += times * len(messages)
        self.DequeueBytes += times * sum([len(each.body) for each in messages])

    def count_dispatched(self, born_us: Sequence[int], now_us: int, times: int = 1) -> None:
        """Messages that reached the broker at these times went to so many consumers, each to all of them.

        All times are microseconds since the epoch.
        """
        if not (born_us and times):
            return
        soonest, latest = max(0, now_us - max(born_us)) // 1000, max(0, now_us - min(born_us)) // 1000
        if self.DispatchCount:
            soonest, latest = min(self.MinEnqueueTime, soonest), max(self.MaxEnqueueTime, latest)
        self.MinEnqueueTime, self.MaxEnqueueTime = soonest, latest
        self.DispatchCount += times * len(born_us)
        self.EnqueueTimeUs += times * max(0, now_us * len(born_us) - sum(born_us))

    @property
    def AverageEnqueueTime(self) -> float:
        """Milliseconds from reaching the broker until handed to a consumer, as a mean; 0 where none was."""
        return self.EnqueueTimeUs / 1000 / (self.DispatchCount or 1)

    @property
    def AverageMessageSize(self) -> int:
        """Bytes of the bodies that arrived, as a mean."""
        return self.EnqueueBytes // (self.EnqueueCount or 1)

    def to_json(self) -> JsonObject:
        """Plain values; the destination in its native form."""
        return {**_fields(self), "destination": str(self.destination)}

    @staticmethod
    def from_json(data: JsonObject) -> DestinationStats:
        """Build the object from the result of to_json."""
        return DestinationStats(**{**data, "destination": Destination.parse(data["destination"])})


@dataclass(slots=True)
class SubscriptionStats:
    """A named subscription of topics, with the numbers of the log that keeps its messages."""

    subscription: SubscriptionIdentity
    numbers: DestinationStats  #: `destination` is what operators name it by; without consumers it is offline

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return {**self.subscription.attributes(), **self.numbers.to_json()}


@dataclass(slots=True)
class ConnectionStats:
    """Figures of the connection of a client, for lists."""

    id: str
    client_id: str
    remote_address: str
    user: str
    version: str  #: of STOMP; of others after the name of the protocol, such as `OpenWire 12`
    connected_ms: int  #: since the epoch
    subscriptions: list[str] = field(default_factory=list)  #: destinations of the first ones, in STOMP form
    sent: int = 0  #: messages the client sent
    delivered: int = 0  #: messages the client was sent
    slow: bool = False  #: its socket does not take what is written, or a consumer of it does not keep up
    discarded: int = 0  #: messages of topics it did not get because of that
    blocked: bool = False  #: a send of it waits for room

    @property
    def protocol(self) -> str:
        """Return the protocol that it speaks, with the version."""
        return self.version if " " in self.version else f"STOMP {self.version}"

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return _fields(self)


@dataclass(slots=True)
class ConsumerStats:
    """One subscription of a connection."""

    connection: str  #: its id
    id: str  #: what the client calls it; "" when it gave no id
    destinations: list[str]  #: in native form
    log: str = ""  #: of a named subscription: where its messages are
    selector: str = ""
    ack_mode: str = ""
    prefetch: int = 0
    priority: int = 0
    exclusive: bool = False
    browser: bool = False  #: looks and does not consume
    pending: int = 0  #: of topics: messages that wait for it on the node
    in_flight: int = 0  #: given to it, not acknowledged
    delivered: int = 0
    acked: int = 0
    discarded: int = 0  #: of topics: it did not keep up
    slow: bool = False
    oldest_ms: int = 0  #: when the oldest that waits on the node came, ms since the epoch; 0: none waits


@dataclass(slots=True)
class ProducerStats:
    """One producer of a JMS client with a destination of its own."""

    id: str
    destinations: list[str]  #: in native form


@dataclass(slots=True)
class ConnectionDetails:
    """All details of one connection, with its consumers and producers."""

    connection: JsonObject  #: ConnectionStats
    consumers: list[JsonObject] = field(default_factory=list)  #: ConsumerStats
    producing_to: list[str] = field(default_factory=list)  #: destinations it sent to, in native form
    producers: list[JsonObject] = field(default_factory=list)  #: ProducerStats of a JMS client
    transactions: int = 0  #: open ones
    beats_every_ms: int = 0  #: what the node promised it; 0: no heart-beats
    expects_every_ms: int = 0  #: what it promised the node
    heard_ms_ago: int = 0  #: when something came from it

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return _fields(self)


@dataclass(slots=True)
class ListenerStats:
    """One address a node listens on; a connector with a name that means several addresses has several of these."""

    connector: str
    address: str  #: as a URI
    connections: int = 0  #: of the connector, open now
    refused: int = 0  #: connections of the connector that were one too many
    accepted: int = 0  #: connections of the connector since the node started
    certificate_until: int = 0  #: end of the certificate that it shows, seconds since the epoch; 0: it has no TLS

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return _fields(self)


@dataclass(slots=True)
class NodeStatus:
    """One node and its connections, as of `seen_ms` (since the epoch)."""

    node: str
    broker: str
    started_ms: int
    seen_ms: int
    address: list[str] = field(default_factory=list)  #: listeners, as URIs
    listeners: list[JsonObject] = field(default_factory=list)  #: ListenerStats
    connections: list[JsonObject] = field(default_factory=list)  #: ConnectionStats of some
    connected: dict[str, int] = field(default_factory=dict)  #: how many: `all`, those `held_back`, and `slow`
    trace: JsonObject = field(default_factory=dict)  #: recorded, dropped and pending trace events
    store: JsonObject = field(default_factory=dict)  #: fsync policy, bytes used, limit
    network: JsonObject = field(default_factory=dict)  #: NetworkStats
    homes: JsonObject = field(default_factory=dict)  #: its place among several nodes (nodes/ownership/status)
    memory: JsonObject = field(default_factory=dict)  #: bytes `used` of messages not stored yet, and their `limit`
    name: str = ""  #: that it was started under; `node` is another one with each start
    cluster: JsonObject = field(default_factory=dict)  #: ClusterStatus, in brief; {}: its broker is in none
    definitions: int | None = None  #: version of the definitions that it routes by; None: it does not say
    transactions: JsonObject = field(
        default_factory=dict
    )  #: how many are `prepared`, and since when the `oldest_ms` is
    shards: list[JsonObject] = field(default_factory=list)  #: those it serves, where the broker has several

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return _fields(self)


@dataclass(frozen=True, slots=True)
class BrowsedMessage:
    """A message as seen without consuming it."""

    seq: int  #: position in its log; grows with time of arrival, unique in its shard of the store
    id: str  #: message-id; all copies of one message share it
    destination: str  #: STOMP form
    original_destination: str | None  #: as a consumer would be told, STOMP form
    headers: dict[str, str]  #: as a consumer would get them, standard ones and properties
    body: bytes
    size: int  #: bytes of the body
    path: tuple[str, ...] = ()  #: brokers of a network that it crossed
    #: Where it failed, or was moved from, as the message itself says, STOMP form: it goes back there (see homeward),
    #: while `original_destination` may name the virtual destination by which this copy came.
    came_from: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduledMessage:
    """A message that waits until it is due."""

    job: str  #: what names it: `scheduledJobId`
    due_ms: int  #: since the epoch
    purpose: str  #: `send`: its producer wants it later; `return`: it failed, and its queue gets it again
    to: str  #: where it goes then
    headers: dict[str, str]  #: as a consumer would get them, and what asks for the delay
    size: int  #: bytes of the body


#: A number after those of all messages.
END_OF_LOG = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BrowsePage:
    """Part of a log, in order. Ask on with `after=next`, backwards with `before=next`; `next` is None at the end."""

    messages: list[BrowsedMessage]
    scanned: int  #: messages looked at for this page
    next: int | None


@dataclass(frozen=True, slots=True)
class MatchCount:
    """Number of matching messages, or a lower bound if not all messages were examined."""

    count: int
    is_whole: bool = True
    looked_at: int = 0  #: messages that were, where not all were
    of: int = 0  #: messages there are, where not all were looked at

    def __str__(self) -> str:
        return f"{'' if self.is_whole else 'at least '}{self.count:,}"

    def after(self, count: int, looked_at: int) -> MatchCount:
        """The tally of these and of so many before them."""
        return MatchCount(self.count + count, self.is_whole, self.looked_at + looked_at, self.of)


@dataclass(frozen=True, slots=True)
class MessageOperationOutcome:
    """Outcome of an operation for one message."""

    seq: int
    outcome: str  #: done, held (by a consumer), gone, or refused
    detail: str  #: where it came to, or why it was refused
    id: str = ""  #: message-id; "" for one that is gone
    new_id: str = ""  #: of the message that was sent in its place, when it was edited
