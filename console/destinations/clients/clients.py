"""Connections for pages, as a table that is paged, sorted and searched.

Details of connections are requested from the node when a page needs them, at most once per second and process.
Everything else has no I/O.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import ConnectionDetails, ConnectionStats, ConsumerStats
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
        return to_datetime(self.stats.connected_ms)

    @property
    def name(self) -> str:
        """Return the client id, or the connection id for a client without one."""
        return self.stats.client_id or self.stats.id

    @property
    def protocol(self) -> str:
        """Return the protocol that it speaks, with the version."""
        return self.stats.protocol

    @property
    def is_jms(self) -> bool:
        """Return whether it is a JMS client."""
        return self.protocol.startswith("OpenWire")

    @property
    def jms(self) -> JmsSessions | None:
        """Return the sessions of a JMS client with their producers and consumers; None for a STOMP client."""
        if not self.is_jms:
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


def to_datetime(milliseconds: int) -> datetime:
    """Return the moment of milliseconds since the epoch."""
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


def visible_connection_ids(sees: Callable[[Destination], bool]) -> frozenset[str]:
    """Return the ids of the visible connections. Raises BrokerError."""
    return frozenset(peer.stats.id for peer in visible_connections(current_connections(), sees))
