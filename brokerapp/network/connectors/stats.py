"""Describe the connectors of a broker, and bridges of others to it, for operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, Protocol

from brokerapp.core.ports import RoutingPort
from brokerapp.model.definitions import VirtualDestination
from brokerapp.model.network_stats import (
    BridgeConnectionStats,
    BridgeStats,
    ConnectorStats,
    DemandStats,
    InboundBridgeStats,
    NetworkStats,
)
from brokerapp.network.bridge.bridge import Bridge
from brokerapp.network.bridge.connection import OUTBOUND, BridgeConnection
from brokerapp.network.connectors.accepted_bridges import AcceptedBridges
from brokerapp.network.connectors.connectors import ConnectorManager, RunningConnector
from brokerapp.network.options.destination_filter import duplicate_warnings
from brokerapp.network.options.options import unsupported_options

#: Subscriptions of a bridge, and consumers of each, that are told of in one answer: a person reads no more.
MAX_DEMAND, MAX_CONSUMERS = 1_000, 20


class InboundBridges(Protocol):
    """Describes the bridges of other brokers to this node."""

    def incoming(self) -> list[InboundBridgeStats]: ...


class NetworkStatus:
    """Describes the connectors of a node, and the bridges of other brokers to it."""

    def __init__(
        self,
        *,
        connections: ConnectorManager,
        bridges: InboundBridges,
        accepted: AcceptedBridges,
        routing: RoutingPort,
    ) -> None:
        self._connections, self._bridges, self._accepted = connections, bridges, accepted
        self._routing = routing

    def stats(self) -> NetworkStats:
        """Return the state of all connectors and bridges, without what each bridge consumes."""
        virtual = self._routing.table.definitions.virtual_destinations
        return NetworkStats([_connector_stats(each, virtual) for each in self._connections], self.incoming())

    def incoming(self) -> list[InboundBridgeStats]:
        """Return the bridges of other brokers to this very node."""
        forwarded = self._accepted.forwarded
        return [
            replace(each, given=each.given + forwarded.get(each.connection, 0)) for each in self._bridges.incoming()
        ]


def _connector_stats(connector: RunningConnector, virtual: Sequence[VirtualDestination]) -> ConnectorStats:
    definition = connector.definition
    idle = [f"{name} {why}" for name, why in unsupported_options(definition)]
    return ConnectorStats(
        definition.name,
        definition.uri,
        connector.is_running,
        connector.options.duplex,
        definition.to_json(),
        [_connection_stats(each) for each in connector.connections],
        [*duplicate_warnings(connector.options, virtual), *idle],
    )


def _connection_stats(way: BridgeConnection) -> BridgeConnectionStats:
    return BridgeConnectionStats(
        addresses=list(map(str, way.addresses)),
        state=way.state,
        remote=way.remote,
        address=str(way.connected_to or ""),
        protocol=way.protocol,
        connected_ms=way.connected_ms,
        last_error=way.last_error,
        last_error_ms=way.last_error_ms,
        attempts=way.attempts,
        next_attempt_ms=way.next_attempt_ms,
        connections=way.connection_count,
        bridges=[_bridge_stats(way, each) for each in way.directions],
    )


def _bridge_stats(way: BridgeConnection, direction: str) -> BridgeStats:
    """One direction, whether it is there now or not."""
    goes_out = direction == OUTBOUND
    counts = way.counts.outbound if goes_out else way.counts.inbound
    bridge = next((each for each in way.bridges if each.name == direction), None)
    return BridgeStats(
        direction,
        source=way.broker if goes_out else way.remote,
        target=way.remote if goes_out else way.broker,
        forwarded=counts.forwarded,
        forwarded_bytes=counts.forwarded_bytes,
        dropped_by_ttl=counts.dropped_by_ttl + (way.counts.filtered.too_far if goes_out else 0),
        duplicates=0 if goes_out else way.counts.filtered.repeated,
        refused=counts.refused,
        under_way=bridge.unconfirmed_count if bridge is not None else 0,
        queued=_queued_count(way) if goes_out else 0,
        demand=len(bridge.demand.subscriptions) if bridge is not None else 0,
    )


def _queued_count(way: BridgeConnection) -> int:
    if way.local_connection is None:
        return 0
    logs = {log.name: log for each in way.local_connection.client.subscriptions.values() for log in each.logs}
    return sum(log.depth for log in logs.values())


def demand_of(connector: RunningConnector) -> list[dict[str, Any]]:
    """Return the demand of a connector's bridges, by connection and direction."""
    return [
        {"remote": way.remote, "direction": bridge.name, "demand": [asdict(each) for each in _demand_stats(bridge)]}
        for way in connector.connections
        for bridge in way.bridges
    ]


def _demand_stats(bridge: Bridge) -> list[DemandStats]:
    return [
        DemandStats(
            str(each.destination), each.selector or "", each.priority, each.durable, each.static, list(each.path),
            sorted(islice(each.consumers, MAX_CONSUMERS)), each.forwarded, bridge.held_back(each),
        )
        for each in islice(bridge.demand.subscriptions.values(), MAX_DEMAND)
    ]  # fmt: skip
