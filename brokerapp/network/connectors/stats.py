"""Telling: the connectors of a broker and the bridges of others to it, as operators see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from brokerapp.model.definitions import VirtualDestination
from brokerapp.model.network_stats import BridgeConnectionStats, BridgeStats, ConnectorStats, DemandStats, NetworkStats
from brokerapp.network.bridge.bridge import Bridge
from brokerapp.network.bridge.connection import OUT, Way
from brokerapp.network.connectors.connectors import Connections, Connector
from brokerapp.network.options.destination_filter import twice
from brokerapp.network.options.options import without_effect

#: Subscriptions of a bridge, and consumers of each, that are told of in one answer: a person reads no more.
MAX_DEMAND, MAX_CONSUMERS = 1_000, 20


def network_stats(connections: Connections) -> NetworkStats:
    """All of it, in brief."""
    broker = connections.broker
    virtual = broker.topology.definitions.virtual_destinations
    return NetworkStats([_connector(each, virtual) for each in connections], broker.bridges.incoming())


def _connector(connector: Connector, virtual: Sequence[VirtualDestination]) -> ConnectorStats:
    definition = connector.definition
    idle = [f"{name} {why}" for name, why in without_effect(definition)]
    return ConnectorStats(
        definition.name, definition.uri, connector.running, connector.terms.duplex, definition.to_json(),
        [_way(each) for each in connector.ways], [*twice(connector.terms, virtual), *idle],
    )  # fmt: skip


def _way(way: Way) -> BridgeConnectionStats:
    return BridgeConnectionStats(
        addresses=list(map(str, way.addresses)),
        state=way.state,
        remote=way.remote,
        address=str(way.connected_to or ""),
        connected_ms=way.connected_ms,
        last_error=way.last_error,
        last_error_ms=way.last_error_ms,
        attempts=way.attempts,
        next_attempt_ms=way.next_attempt_ms,
        connections=way.connections,
        bridges=[_bridge(way, each) for each in way.directions],
    )


def _bridge(way: Way, direction: str) -> BridgeStats:
    """One direction, whether it is there now or not."""
    goes_out = direction == OUT
    counts = way.counts.out if goes_out else way.counts.back
    bridge = next((each for each in way.bridges if each.name == direction), None)
    return BridgeStats(
        direction,
        source=way.broker if goes_out else way.remote,
        target=way.remote if goes_out else way.broker,
        forwarded=counts.forwarded,
        forwarded_bytes=counts.forwarded_bytes,
        dropped_by_ttl=counts.dropped_by_ttl + (way.counts.here.too_far if goes_out else 0),
        duplicates=0 if goes_out else way.counts.here.repeated,
        refused=counts.refused,
        under_way=bridge.under_way if bridge is not None else 0,
        queued=_queued(way) if goes_out else 0,
        demand=len(bridge.demand.wanted) if bridge is not None else 0,
    )


def _queued(way: Way) -> int:
    if way.own is None:
        return 0
    logs = {log.name: log for each in way.own.client.subscriptions.values() for log in each.logs}
    return sum(log.depth for log in logs.values())


def demand_of(connector: Connector) -> list[dict[str, Any]]:
    """What its bridges consume, by way and direction."""
    return [
        {"remote": way.remote, "direction": bridge.name, "demand": [asdict(each) for each in _demand(bridge)]}
        for way in connector.ways
        for bridge in way.bridges
    ]


def _demand(bridge: Bridge) -> list[DemandStats]:
    return [
        DemandStats(
            str(each.destination), each.selector or "", each.priority, each.durable, each.static, list(each.path),
            sorted(islice(each.consumers, MAX_CONSUMERS)), each.forwarded, bridge.kept_back(each),
        )
        for each in islice(bridge.demand.wanted.values(), MAX_DEMAND)
    ]  # fmt: skip
