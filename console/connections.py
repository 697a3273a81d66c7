"""Who is connected, as pages show it: the connections of all nodes, and the consumers of one destination. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from brokerapp.destination import Destination, Kind
from brokerapp.engine.destination_map import matches
from brokerapp.errors import InvalidDestination
from brokerapp.snapshot import ConnectionStats
from console.live.picture import Picture


@dataclass(frozen=True, slots=True)
class Connection:
    """One STOMP connection and the node it is on."""

    node: str
    stats: ConnectionStats

    @property
    def since(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.stats.connected_ms / 1000, UTC)

    @property
    def destinations(self) -> list[Destination]:
        """What it is subscribed to."""
        return [each for each in map(_parsed, self.stats.subscriptions) if each]


def connections_of(picture: Picture) -> list[Connection]:
    """All connections, oldest first."""
    found = [Connection(node.node, ConnectionStats(**each)) for node in picture.nodes for each in node.connections]
    return sorted(found, key=lambda each: (each.stats.connected_ms, each.stats.id))


def consumers_of(picture: Picture, destination: Destination) -> list[Connection]:
    """The connections with a subscription that receives from this destination."""
    return [each for each in connections_of(picture) if any(_covers(one, destination) for one in each.destinations)]


def _covers(subscription: Destination, destination: Destination) -> bool:
    return subscription.kind is destination.kind and matches(subscription.name, destination.name)


def _parsed(text: str) -> Destination | None:
    try:
        return Destination.parse(text, Kind.QUEUE)
    except InvalidDestination:
        return None
