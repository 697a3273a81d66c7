"""Connections and topic subscriptions for pages, as tables that are paged, sorted and searched.

Details of connections are requested from the node when a page needs them, at most once per second and process.
Everything else has no I/O.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import BrokerError, InvalidDestination
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import ConnectionDetails, ConnectionStats, ConsumerStats, DestinationStats
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.destinations.clients.jms_sessions import JmsSessions
from console.ui.formatting.tables import Table, TableColumn
from console.ui.preferences import favourites

#: Seconds for which an answer of the node is reused.
CACHE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A connection and its subscriptions, as pages show them."""

    stats: ConnectionStats
    details: ConnectionDetails
    consumers: tuple[ConsumerStats, ...]

    @staticmethod
    def from_stats(full: ConnectionDetails) -> ConnectionView:
        """Build the view from what the node reported."""
        consumers = tuple(ConsumerStats(**each) for each in full.consumers)
        return ConnectionView(ConnectionStats(**full.connection), full, consumers)

    @property
    def since(self) -> datetime:
        """Return when the client connected."""
        return _to_datetime(self.stats.connected_ms)

    @property
    def name(self) -> str:
        """Return the client id, or the connection id for a client without one."""
        return self.stats.client_id or self.stats.id

    @property
    def protocol(self) -> str:
        """Return the protocol that it speaks, with the version."""
        return self.stats.protocol

    @property
    def jms(self) -> JmsSessions | None:
        """Return the sessions of a JMS client with their producers and consumers; None for a STOMP client."""
        if not self.protocol.startswith("OpenWire"):
            return None
        return JmsSessions.of(self.details.producers, self.details.producing_to, self.consumers)

    @property
    def consumers_by_session(self) -> list[tuple[str, ConsumerStats]]:
        """Return the consumers with the numbers of their JMS sessions, if they have some."""
        return self.jms.consumers if self.jms else [("", each) for each in self.consumers]

    @property
    def subject(self) -> str:
        """Return the key under which a user marks this client as a favorite."""
        return favourites.client_subject(self.name)

    @property
    def prefetch(self) -> int:
        """Return the total prefetch of its subscriptions."""
        return sum(each.prefetch for each in self.consumers)

    @property
    def in_flight(self) -> int:
        """Return how many messages are in flight to it."""
        return sum(each.in_flight for each in self.consumers)

    @property
    def destinations(self) -> list[Destination]:
        """Return the destinations of its subscriptions."""
        return [each for consumer in self.consumers for each in destinations_of(consumer)]

    @property
    def idle_seconds(self) -> float | None:
        """Return the seconds since it last sent anything; None if it negotiated no heart-beats."""
        return self.details.heard_ms_ago / 1000 if self.details.expects_every_ms else None

    @property
    def is_heartbeat_late(self) -> bool:
        """Return whether its heart-beat is overdue."""
        return self.idle_seconds is not None and self.details.heard_ms_ago > 1.5 * self.details.expects_every_ms


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """A topic subscription: of an open connection, or a named one that exists while its client is offline."""

    client_id: str
    name: str  #: subscription name, or the client's own id of a non-durable one
    state: str  #: active, offline or plain
    topics: tuple[Destination, ...]
    selector: str = ""
    connection: str = ""
    log: str = ""  #: of a named one: the destination that stores its messages, in native form
    shared: bool = False
    pending: int = 0
    in_flight: int = 0
    dispatched: int = 0
    enqueued: int = 0
    dequeued: int = 0
    since_ms: int = 0  #: connected or offline since; 0: unknown
    oldest_ms: int = 0  #: arrival of the oldest message; 0: none
    slow: bool = False

    @property
    def state_label(self) -> str:
        """Return the label of its state."""
        return {"active": "Active", "offline": "Offline"}.get(self.state, "Non-durable")

    @property
    def badge(self) -> str:
        """Return the class of the badge that shows its state."""
        return {"active": "badge-good", "offline": "badge-look"}.get(self.state, "")

    @property
    def log_name(self) -> str:
        """Return the name of its log, as URLs contain it; "" for a non-durable one."""
        return self.log.partition("://")[2]

    @property
    def since(self) -> datetime | None:
        """Return since when it is connected or offline."""
        return _to_datetime(self.since_ms) if self.since_ms else None

    @property
    def age(self) -> float:
        """Return the seconds since it connected or went offline."""
        return max(0.0, time.time() - self.since_ms / 1000) if self.since_ms else 0.0

    @property
    def lag(self) -> float:
        """Return the age of its oldest message in seconds."""
        return max(0.0, time.time() - self.oldest_ms / 1000) if self.oldest_ms else 0.0


#: Labels of the states of subscriptions.
SUBSCRIPTION_STATES = {"active": "Durable, active", "offline": "Durable, offline", "plain": "Non-durable"}

CONNECTION_TABLE = Table[ConnectionView](
    columns=(
        TableColumn("client", "Client", lambda peer: peer.name.lower()),
        TableColumn("user", "User", lambda peer: peer.stats.user),
        TableColumn("from", "Address", lambda peer: peer.stats.remote_address),
        TableColumn("version", "Protocol", lambda peer: peer.protocol),
        TableColumn("since", "Connected", lambda peer: -peer.stats.connected_ms),
        TableColumn(
            "heard", "Heard", lambda peer: peer.idle_seconds or 0.0, "Since something came, where it sends heart-beats"
        ),
        TableColumn("prefetch", "Prefetch", lambda peer: peer.prefetch, "Total prefetch of its subscriptions", True),
        TableColumn("flight", "In flight", lambda peer: peer.in_flight, "Dispatched and not yet acknowledged", True),
        TableColumn("sent", "Sent", lambda peer: peer.stats.sent, "Messages sent to the broker", True),
        TableColumn("delivered", "Delivered", lambda peer: peer.stats.delivered, "Messages dispatched to it", True),
    ),
    chips={
        "slow": ("Slow", lambda peer: peer.stats.slow),
        "blocked": ("Blocked", lambda peer: peer.stats.blocked),
        "consumers": ("Consumers", lambda peer: bool(peer.consumers)),
        "producers": ("Producers", lambda peer: bool(peer.details.producing_to)),
    },
    text=lambda peer: " ".join(
        (peer.name, peer.stats.id, peer.stats.user, peer.stats.remote_address, *map(str, peer.destinations))
    ),
    subject=lambda peer: peer.subject,
)

SUBSCRIPTION_TABLE = Table[TopicSubscription](
    columns=(
        TableColumn("client", "Client", lambda each: each.client_id.lower(), "ClientId"),
        TableColumn("name", "Subscription", lambda each: each.name.lower(), "SubscriptionName"),
        TableColumn("topic", "Topic", lambda each: str(each.topics[0]) if each.topics else "", "DestinationName"),
        TableColumn("age", "Duration", lambda each: each.age, "Time since it connected or went offline", True),
        TableColumn("pending", "Backlog", lambda each: each.pending, "PendingQueueSize", True),
        TableColumn("lag", "Oldest message", lambda each: each.lag, "Age of the oldest message in the backlog", True),
        TableColumn("flight", "In flight", lambda each: each.in_flight, "DispatchedQueueSize", True),
        TableColumn("dispatched", "Dispatched", lambda each: each.dispatched, "DispatchedCounter", True),
        TableColumn("enqueued", "Enqueued", lambda each: each.enqueued, "EnqueueCounter", True),
        TableColumn("dequeued", "Dequeued", lambda each: each.dequeued, "DequeueCounter", True),
    ),
    chips={
        **{
            state: (label, lambda each, state=state: each.state == state)
            for state, label in SUBSCRIPTION_STATES.items()
        },
        "behind": ("Lagging", lambda each: each.pending > 0),
    },
    text=lambda each: " ".join((each.client_id, each.name, *map(str, each.topics), each.selector)),
    subject=lambda each: each.log,
)


def build_subscriptions(
    peers: Iterable[ConnectionView],
    numbers: Mapping[Destination, DestinationStats],
    kept: Mapping[Destination, SubscriptionIdentity],
    offline: Mapping[str, int],
    oldest: Mapping[Destination, int],
) -> list[TopicSubscription]:
    """Build the list of all topic subscriptions. No I/O.

    `numbers` and `kept` are by the log of a named subscription. `offline`: since when it has no consumer, by name of
    the log; `oldest`: arrival of the first message of a log (both in ms since the epoch).
    """
    peers = list(peers)
    of_log = {each.log: (peer, each) for peer in peers for each in peer.consumers if each.log}
    found = [_non_durable(peer, each) for peer in peers for each in peer.consumers if _is_non_durable(each)]
    for log, subscription in kept.items():
        peer, consumer = of_log.get(str(log), (None, None))
        stats = numbers.get(log) or DestinationStats(log)
        found.append(
            TopicSubscription(
                client_id=subscription.client_id,
                name=subscription.name,
                state="plain" if not subscription.durable else "active" if stats.ConsumerCount or peer else "offline",
                topics=subscription.topics,
                selector=subscription.condition or "",
                connection=peer.stats.id if peer else "",
                log=str(log),
                shared=subscription.shared,
                pending=stats.QueueSize,
                in_flight=stats.InFlightCount,
                dispatched=stats.DispatchCount,
                enqueued=stats.EnqueueCount,
                dequeued=stats.DequeueCount,
                since_ms=peer.stats.connected_ms if peer else offline.get(str(log), 0),
                oldest_ms=oldest.get(log, 0),
                slow=bool(consumer and consumer.slow),
            )
        )
    return found


def _is_non_durable(consumer: ConsumerStats) -> bool:
    return not consumer.log and any(
        each.kind in (DestinationKind.TOPIC, DestinationKind.TEMP_TOPIC) for each in destinations_of(consumer)
    )


def _non_durable(peer: ConnectionView, consumer: ConsumerStats) -> TopicSubscription:
    return TopicSubscription(
        client_id=peer.name,
        name=consumer.id,
        state="plain",
        topics=tuple(destinations_of(consumer)),
        selector=consumer.selector,
        connection=peer.stats.id,
        pending=consumer.pending,
        in_flight=consumer.in_flight,
        dispatched=consumer.delivered,
        enqueued=consumer.delivered + consumer.pending,
        dequeued=consumer.acked,
        since_ms=peer.stats.connected_ms,
        oldest_ms=consumer.oldest_ms,
        slow=consumer.slow,
    )


def consumers_of(
    peers: Iterable[ConnectionView], destination: Destination
) -> list[tuple[ConnectionView, ConsumerStats]]:
    """Return the consumers of a destination with their connections."""
    return [
        (peer, each)
        for peer in peers
        for each in peer.consumers
        if any(_covers(one, destination) for one in destinations_of(each))
    ]


def producers_of(peers: Iterable[ConnectionView], destination: Destination) -> list[ConnectionView]:
    """Return the open connections that sent to a destination."""
    return [peer for peer in peers if str(destination) in peer.details.producing_to]


def destinations_of(consumer: ConsumerStats) -> list[Destination]:
    """Return the destinations of a subscription."""
    return [each for each in map(_parse_or_none, consumer.destinations) if each]


def visible_connections(peers: Iterable[ConnectionView], sees: Callable[[Destination], bool]) -> list[ConnectionView]:
    """Return the connections that use a visible destination, or none yet."""
    return [peer for peer in peers if not (used := _used_destinations(peer)) or any(map(sees, used))]


def redact_connections(peers: Iterable[ConnectionView], sees: Sees) -> list[ConnectionView]:
    """Return the visible connections without their hidden destinations."""
    peers = list(peers)
    return peers if sees is everything else [_redact(peer, sees) for peer in visible_connections(peers, sees)]


def _redact(peer: ConnectionView, sees: Sees) -> ConnectionView:
    seen = [(each, list(filter(sees, destinations_of(each)))) for each in peer.consumers]
    consumers = tuple(replace(each, destinations=list(map(str, found))) for each, found in seen if found)
    targets = [each for each in peer.details.producing_to if sees(Destination.parse(each))]
    producers = [
        each for each in peer.details.producers if all(map(sees, map(Destination.parse, each["destinations"])))
    ]
    details = replace(peer.details, producing_to=targets, producers=producers)
    return replace(peer, consumers=consumers, details=details)


def _used_destinations(peer: ConnectionView) -> list[Destination]:
    return [*peer.destinations, *map(Destination.parse, peer.details.producing_to)]


def _covers(subscription: Destination, destination: Destination) -> bool:
    return subscription.kind is destination.kind and matches(subscription.physical.name, destination.name)


def _parse_or_none(text: str) -> Destination | None:
    try:
        return Destination.parse(text, DestinationKind.QUEUE)
    except InvalidDestination:
        return None


def _to_datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


# -- requests to the node

_lock = threading.Lock()
_cached: tuple[float, object, list[ConnectionView]] = (0.0, None, [])


def current_connections() -> list[ConnectionView]:
    """Return all connections with details, at most one second old. Raises BrokerError."""
    global _cached
    with _lock:
        asked_at, broker, peers = _cached
        if broker is not gateway() or time.monotonic() - asked_at > CACHE_SECONDS:
            broker = gateway()
            peers = [ConnectionView.from_stats(each) for each in broker.run(broker.admin.peers.all())]
            _cached = (time.monotonic(), broker, peers)
        return peers


def current_subscriptions(numbers: Mapping[Destination, DestinationStats]) -> list[TopicSubscription]:
    """Return all topic subscriptions; those of connections only while a node responds."""
    broker = gateway()
    logs = list(numbers)
    kept = broker.run(broker.admin.peers.named(logs))
    waiting = [log for log in kept if numbers[log].QueueSize]
    oldest = broker.run(broker.admin.peers.oldest(waiting))
    try:
        peers, offline = current_connections(), broker.run(broker.admin.peers.offline())
    except BrokerError:
        peers, offline = [], {}
    return build_subscriptions(peers, numbers, kept, offline, oldest)


def visible_connection_ids(sees: Callable[[Destination], bool]) -> frozenset[str]:
    """Return the ids of the visible connections. Raises BrokerError."""
    return frozenset(peer.stats.id for peer in visible_connections(current_connections(), sees))


def visible_subscription_logs(logs: Iterable[Destination], sees: Callable[[Destination], bool]) -> frozenset[str]:
    """Return the log names of the visible named subscriptions. Raises BrokerError."""
    broker = gateway()
    kept = broker.run(broker.admin.peers.named(list(logs)))
    return frozenset(log.name for log, each in kept.items() if any(map(sees, each.topics)))
