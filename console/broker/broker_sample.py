"""The whole broker as one point of the history: its sums, how full it is, and what of it is away. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.network_stats import BridgeConnectionState, NetworkStats
from brokerapp.model.stats_records import NodeStatus
from brokerapp.model.time_series import BrokerPoint, DestinationPoint
from brokerapp.monitoring.node_metrics import watched_disk
from brokerapp.store.server.disk_space import DiskSpace
from console.broker.snapshot import BrokerSnapshot

#: Ways that should be connected and are not.
_DOWN = (BridgeConnectionState.WAITING, BridgeConnectionState.GAVE_UP, BridgeConnectionState.CONNECTING)


def broker_point(picture: BrokerSnapshot, at: int, points: Mapping[Destination, DestinationPoint]) -> BrokerPoint:
    """Return the broker at the end of a step in which these moved."""
    of_queues = [point for destination, point in points.items() if destination.kind is DestinationKind.QUEUE]
    nodes, stores = picture.nodes, [node.store for node in picture.nodes]

    def connected(which: str) -> int:
        return sum(node.connected.get(which, 0) for node in nodes)

    return BrokerPoint(
        at,
        pending=picture.totals.pending,
        arrived=sum(each.arrived for each in of_queues),
        left=sum(each.left for each in of_queues),
        dead=picture.totals.dead,
        connections=connected("all"),
        started=max((node.started_ms // 1000 for node in nodes), default=0),
        store_used=max((each.get("used", 0) for each in stores), default=0),
        store_limit=max((each.get("limit") or each.get("message_limit", 0) for each in stores), default=0),
        memory=_fullest((node.memory, "used", "limit") for node in nodes),
        machine=_fullest((each, "used", "machine") for each in stores),
        temporary=_fullest((each, "temp_used", "temp_limit") for each in stores),
        nodes=len(nodes),
        links_down=sum(links_down(nodes).values()),
        away=len(unreachable_brokers(picture)),
        held_back=connected("held_back"),
        slow=connected("slow"),
        disk=max((_share_used(disk) for disk in map(watched_disk, nodes) if disk is not None), default=None),
    )


def _share_used(disk: DiskSpace) -> int:
    """Return the used share of a disk in thousandths; space reserved for acknowledgements counts as free."""
    return 1000 * (disk.total - disk.free - disk.reserved) // disk.total


def _fullest(rooms: Iterable[tuple[Mapping[str, Any], str, str]]) -> int:
    """Return the greatest share in thousandths: of what is used, by its name, in a limit, by its name."""
    return max((1000 * room.get(used, 0) // room[limit] for room, used, limit in rooms if room.get(limit)), default=0)


def links_down(nodes: Iterable[NodeStatus]) -> dict[str, int]:
    """Network connectors that run, and how many of their ways to other brokers are not connected."""
    return {name: count for name, count in _links(nodes) if count}


def _links(nodes: Iterable[NodeStatus]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        for each in NetworkStats.from_json(node.network).connectors:
            if each.running:
                yield each.name, sum(way.state in _DOWN for way in each.ways)


def certificate_ends(nodes: Iterable[NodeStatus]) -> dict[str, float]:
    """Return when the first certificate ends that a connector of each node shows, in seconds since the epoch."""
    found: dict[str, float] = {}
    for node in nodes:
        for each in node.listeners:
            if until := each.get("certificate_until"):  # nodes of an earlier version do not say it
                name = f"node {node.name or node.node}"
                found[name] = min(until, found.get(name, until))
    return found


def unreachable_brokers(picture: BrokerSnapshot) -> list[str]:
    """Return the other brokers of the cluster that cannot be reached."""
    return [each.name for each in picture.cluster.missing] if picture.cluster else []
