"""Lists connections in brief, as nodes report them every second. Pure. In full: see clients.py."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from brokerapp.model.stats_records import ConnectionStats
from console.broker.snapshot import BrokerSnapshot


@dataclass(frozen=True, slots=True)
class Connection:
    """One STOMP connection and the node it is on."""

    node: str
    stats: ConnectionStats

    @property
    def since(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.stats.connected_ms / 1000, UTC)


def connections_of(picture: BrokerSnapshot) -> list[Connection]:
    """All connections, oldest first."""
    found = [Connection(node.node, ConnectionStats(**each)) for node in picture.nodes for each in node.connections]
    return sorted(found, key=lambda each: (each.stats.connected_ms, each.stats.id))
