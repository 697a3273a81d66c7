"""Lists connections in brief, as nodes report them every second. No I/O; clients.py has the details."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from brokerapp.model.stats_records import ConnectionStats
from console.broker.snapshot import BrokerSnapshot


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A STOMP connection and the node that accepted it."""

    node: str
    stats: ConnectionStats

    @property
    def since(self) -> datetime:
        """Return when the client connected."""
        return datetime.fromtimestamp(self.stats.connected_ms / 1000, UTC)


def connection_rows(picture: BrokerSnapshot) -> list[ConnectionRow]:
    """Return all connections of a snapshot, oldest first."""
    found = [ConnectionRow(node.node, ConnectionStats(**each)) for node in picture.nodes for each in node.connections]
    return sorted(found, key=lambda each: (each.stats.connected_ms, each.stats.id))
