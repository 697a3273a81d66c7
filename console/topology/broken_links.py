"""Find bridge connections that should be connected and are not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerapp.model.network_stats import BridgeConnectionState, BridgeConnectionStats, NetworkStats
from brokerapp.model.stats_records import NodeStatus
from console.topology.diagram import last_failure


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A connection of a running connector to a broker that is unreachable."""

    connector: str
    remote: str  #: the broker's name, or its addresses
    why: str  #: the last error and how many attempts failed


def find_broken_links(nodes: Sequence[NodeStatus]) -> list[BrokenLink]:
    """Return all broken links; not those of a stopped connector or one whose first attempt has not ended."""
    networks = [NetworkStats.from_json(each.network) for each in nodes if each.network]
    found = [
        BrokenLink(connector.name, way.remote or ", ".join(way.addresses), last_failure(way) or str(way.state))
        for network in networks
        for connector in network.connectors
        if connector.running
        for way in connector.ways
        if _is_broken(way)
    ]
    return list(dict.fromkeys(found))


def _is_broken(way: BridgeConnectionStats) -> bool:
    # A connection that is being retried is still down: otherwise the link would alternate with every attempt.
    is_trying_again = way.state is BridgeConnectionState.CONNECTING and way.attempts > 0
    return is_trying_again or way.state in (BridgeConnectionState.WAITING, BridgeConnectionState.GAVE_UP)
