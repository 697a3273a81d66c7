"""Who is connected, as pages show it: connections and subscribers as lists that are paged, sorted and searched.

Connections in full are asked of the node, at most once a second a process and only while somebody looks. All else here
is pure.
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
from console.ui.formatting.tables import Table, TableColumn
from console.ui.preferences import favourites

#: Seconds for which an answer of the node is good enough for the next page.
FRESH = 1.0


@dataclass(frozen=True, slots=True)
class Peer:
    """One connection, with its subscriptions."""

    stats: ConnectionStats
    full: ConnectionDetails
    consumers: tuple[ConsumerStats, ...]

    @staticmethod
    def of(full: ConnectionDetails) -> Peer:
        """What the node told of it."""
        consumers = tuple(ConsumerStats(**each) for each in full.consumers)
        return Peer(ConnectionStats(**full.connection), full, consumers)

    @property
    def since(self) -> datetime:
        """When it was made."""
        return _moment(self.stats.connected_ms)

    @property
    def name(self) -> str:
        """What to call it: the client-id it gave itself."""
        return self.stats.client_id or self.stats.id

    @property
    def subject(self) -> str:
        """What a star on it is of."""
        return favourites.client_subject(self.name)

    @property
    def prefetch(self) -> int:
        """Messages all its subscriptions may hold together."""
        return sum(each.prefetch for each in self.consumers)

    @property
    def in_flight(self) -> int:
        """Messages they hold."""
        return sum(each.in_flight for each in self.consumers)

    @property
    def destinations(self) -> list[Destination]:
        """What it is subscribed to."""
        return [each for consumer in self.consumers for each in destinations_of(consumer)]

    @property
    def heard(self) -> float | None:
        """Seconds since something came from it, where it promised heart-beats."""
        return self.full.heard_ms_ago / 1000 if self.full.expects_every_ms else None

    @property
    def is_late(self) -> bool:
        """Whether it keeps less than it promised."""
        return self.heard is not None and self.full.heard_ms_ago > 1.5 * self.full.expects_every_ms


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One subscription of topics: of a connection, or kept for a name whether somebody consumes it or not."""

    client_id: str
    name: str  #: of a named one; else what the client calls it
    state: str  #: active, offline or plain
    topics: tuple[Destination, ...]
    selector: str = ""
    connection: str = ""
    log: str = ""  #: of a named one: the destination of its messages, in native form
    shared: bool = False
    pending: int = 0
    in_flight: int = 0
    dispatched: int = 0
    enqueued: int = 0
    dequeued: int = 0
    since_ms: int = 0  #: connected, or offline, since; 0: not known
    oldest_ms: int = 0  #: when the oldest that waits came; 0: none waits
    slow: bool = False

    @property
    def since(self) -> datetime | None:
        """Connected, or offline, since."""
        return _moment(self.since_ms) if self.since_ms else None

    @property
    def age(self) -> float:
        """Seconds it is connected, or offline."""
        return max(0.0, time.time() - self.since_ms / 1000) if self.since_ms else 0.0

    @property
    def lag(self) -> float:
        """Seconds that the oldest message waits for it."""
        return max(0.0, time.time() - self.oldest_ms / 1000) if self.oldest_ms else 0.0


#: States of subscribers as the page calls them.
STATES = {"active": "Durable, active", "offline": "Durable, offline", "plain": "Non-durable"}

CONNECTIONS = Table[Peer](
    columns=(
        TableColumn("client", "Client", lambda peer: peer.name.lower()),
        TableColumn("user", "User", lambda peer: peer.stats.user),
        TableColumn("from", "From", lambda peer: peer.stats.remote_address),
        TableColumn("version", "STOMP", lambda peer: peer.stats.version),
        TableColumn("since", "Since", lambda peer: -peer.stats.connected_ms),
        TableColumn(
            "heard", "Heard", lambda peer: peer.heard or 0.0, "Since something came, where it sends heart-beats"
        ),
        TableColumn("prefetch", "Prefetch", lambda peer: peer.prefetch, "Messages its subscriptions may hold", True),
        TableColumn("flight", "In flight", lambda peer: peer.in_flight, "Messages it holds unacknowledged", True),
        TableColumn("sent", "Sent", lambda peer: peer.stats.sent, "Messages it sent", True),
        TableColumn("delivered", "Delivered", lambda peer: peer.stats.delivered, "Messages it was sent", True),
    ),
    chips={
        "slow": ("Slow", lambda peer: peer.stats.slow),
        "blocked": ("Held back", lambda peer: peer.stats.blocked),
        "consumers": ("Consumers", lambda peer: bool(peer.consumers)),
        "producers": ("Producers", lambda peer: bool(peer.full.producing_to)),
    },
    text=lambda peer: " ".join(
        (peer.name, peer.stats.id, peer.stats.user, peer.stats.remote_address, *map(str, peer.destinations))
    ),
    subject=lambda peer: peer.subject,
)

SUBSCRIBERS = Table[Subscriber](
    columns=(
        TableColumn("client", "Client", lambda each: each.client_id.lower(), "ClientId"),
        TableColumn("name", "Subscription", lambda each: each.name.lower(), "SubscriptionName"),
        TableColumn("topic", "Topic", lambda each: str(each.topics[0]) if each.topics else "", "DestinationName"),
        TableColumn("age", "For", lambda each: each.age, "How long it is connected, or offline", True),
        TableColumn("pending", "Pending", lambda each: each.pending, "PendingQueueSize", True),
        TableColumn("lag", "Lag", lambda each: each.lag, "How long the oldest message waits for it", True),
        TableColumn("flight", "In flight", lambda each: each.in_flight, "DispatchedQueueSize", True),
        TableColumn("dispatched", "Dispatched", lambda each: each.dispatched, "DispatchedCounter", True),
        TableColumn("enqueued", "Enqueued", lambda each: each.enqueued, "EnqueueCounter", True),
        TableColumn("dequeued", "Dequeued", lambda each: each.dequeued, "DequeueCounter", True),
    ),
    chips={
        **{state: (label, lambda each, state=state: each.state == state) for state, label in STATES.items()},
        "behind": ("Behind", lambda each: each.pending > 0),
    },
    text=lambda each: " ".join((each.client_id, each.name, *map(str, each.topics), each.selector)),
    subject=lambda each: each.log,
)


def subscribers(
    peers: Iterable[Peer],
    numbers: Mapping[Destination, DestinationStats],
    kept: Mapping[Destination, SubscriptionIdentity],
    offline: Mapping[str, int],
    oldest: Mapping[Destination, int],
) -> list[Subscriber]:
    """All subscribers of topics. Pure.

    `numbers` and `kept`: of the logs of named ones; `offline`: since when nobody consumes them, by name of the log;
    `oldest`: when the first message of a log came (both ms since the epoch).
    """
    peers = list(peers)
    of_log = {each.log: (peer, each) for peer in peers for each in peer.consumers if each.log}
    found = [_plain(peer, each) for peer in peers for each in peer.consumers if _is_plain(each)]
    for log, subscription in kept.items():
        peer, consumer = of_log.get(str(log), (None, None))
        stats = numbers.get(log) or DestinationStats(log)
        found.append(
            Subscriber(
                client_id=subscription.client_id,
                name=subscription.name,
                state="plain" if not subscription.durable else "active" if stats.ConsumerCount or peer else "offline",
                topics=subscription.topics,
                selector=subscription.selector or "",
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


def _is_plain(consumer: ConsumerStats) -> bool:
    return not consumer.log and any(
        each.kind in (DestinationKind.TOPIC, DestinationKind.TEMP_TOPIC) for each in destinations_of(consumer)
    )


def _plain(peer: Peer, consumer: ConsumerStats) -> Subscriber:
    return Subscriber(
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


def consumers_of(peers: Iterable[Peer], destination: Destination) -> list[tuple[Peer, ConsumerStats]]:
    """Who receives from a destination."""
    return [
        (peer, each)
        for peer in peers
        for each in peer.consumers
        if any(_covers(one, destination) for one in destinations_of(each))
    ]


def producers_of(peers: Iterable[Peer], destination: Destination) -> list[Peer]:
    """Who sent to a destination and is still there."""
    return [peer for peer in peers if str(destination) in peer.full.producing_to]


def destinations_of(consumer: ConsumerStats) -> list[Destination]:
    """What a subscription is of."""
    return [each for each in map(_parsed, consumer.destinations) if each]


def seen_by(peers: Iterable[Peer], sees: Callable[[Destination], bool]) -> list[Peer]:
    """The connections that somebody may know of: those that use what they see, or nothing yet."""
    return [peer for peer in peers if not (used := _used(peer)) or any(map(sees, used))]


def narrowed(peers: Iterable[Peer], sees: Sees) -> list[Peer]:
    """The connections that somebody may know of, with what they may know of them: they use what they see, and that."""
    peers = list(peers)
    return peers if sees is everything else [_narrowed(peer, sees) for peer in seen_by(peers, sees)]


def _narrowed(peer: Peer, sees: Sees) -> Peer:
    seen = [(each, list(filter(sees, destinations_of(each)))) for each in peer.consumers]
    consumers = tuple(replace(each, destinations=list(map(str, found))) for each, found in seen if found)
    targets = [each for each in peer.full.producing_to if sees(Destination.parse(each))]
    return replace(peer, consumers=consumers, full=replace(peer.full, producing_to=targets))


def _used(peer: Peer) -> list[Destination]:
    return [*peer.destinations, *map(Destination.parse, peer.full.producing_to)]


def _covers(subscription: Destination, destination: Destination) -> bool:
    return subscription.kind is destination.kind and matches(subscription.physical.name, destination.name)


def _parsed(text: str) -> Destination | None:
    try:
        return Destination.parse(text, DestinationKind.QUEUE)
    except InvalidDestination:
        return None


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


# -- asking the node

_asking = threading.Lock()
_answer: tuple[float, object, list[Peer]] = (0.0, None, [])


def peers_now() -> list[Peer]:
    """All connections in full, as of a second ago at most. Raises BrokerError."""
    global _answer
    with _asking:
        asked_at, door, peers = _answer
        if door is not gateway() or time.monotonic() - asked_at > FRESH:
            door = gateway()
            peers = [Peer.of(each) for each in door.run(door.admin.peers.all())]
            _answer = (time.monotonic(), door, peers)
        return peers


def subscribers_now(numbers: Mapping[Destination, DestinationStats]) -> list[Subscriber]:
    """All subscribers of topics; those of connections only while a node answers."""
    door = gateway()
    logs = list(numbers)
    kept = door.run(door.admin.peers.named(logs))
    waiting = [log for log in kept if numbers[log].QueueSize]
    oldest = door.run(door.admin.peers.oldest(waiting))
    try:
        peers, offline = peers_now(), door.run(door.admin.peers.offline())
    except BrokerError:
        peers, offline = [], {}
    return subscribers(peers, numbers, kept, offline, oldest)


def known_connections(sees: Callable[[Destination], bool]) -> frozenset[str]:
    """Ids of the connections that somebody may know of. Raises BrokerError."""
    return frozenset(peer.stats.id for peer in seen_by(peers_now(), sees))


def known_subscriptions(logs: Iterable[Destination], sees: Callable[[Destination], bool]) -> frozenset[str]:
    """Names of the logs of named subscriptions that somebody may know of. Raises BrokerError."""
    door = gateway()
    kept = door.run(door.admin.peers.named(list(logs)))
    return frozenset(log.name for log, each in kept.items() if any(map(sees, each.topics)))
