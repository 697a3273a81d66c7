"""Compute the broker diagram and its live cells: this broker, other brokers, and the links between them. Pure.

A cell is named `KEY#NAME`, with the KEY of its link, connection or bridge.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.model.network_stats import (
    BridgeConnectionState,
    BridgeConnectionStats,
    BridgeStats,
    ConnectorStats,
    InboundBridgeStats,
    NetworkStats,
)
from brokerapp.model.stats_records import NodeStatus
from console.destinations.placement import NodeStatusView, node_status_view
from console.ui.formatting import number_format

Cells = dict[str, Any]
#: Color of a connection's state: good, look, act or off.
LEVELS = {
    BridgeConnectionState.CONNECTED: "good",
    BridgeConnectionState.CONNECTING: "look",
    BridgeConnectionState.WAITING: "act",
    BridgeConnectionState.GAVE_UP: "act",
    BridgeConnectionState.STOPPED: "off",
}
#: Color of a cluster member's state.
MEMBER_LEVELS = {MemberState.SELF: "good", MemberState.UP: "good", MemberState.DOWN: "act", MemberState.REFUSED: "act"}
#: Shown in place of a figure that includes hidden destinations.
HIDDEN = "–"


@dataclass(frozen=True, slots=True)
class DiagramLink:
    """A link between this broker and another one."""

    key: str
    kind: str  #: bridge, incoming or cluster
    toward: str  #: direction of messages: out, in or both
    title: str  #: the connector's name, or a description
    connector: str  #: the name of this broker's connector, if it has one
    cells: Cells


@dataclass(slots=True)
class BrokerBox:
    """Another broker in the diagram."""

    name: str  #: "": never connected
    address: str
    is_left: bool = True  #: whether it only has incoming bridges
    links: list[DiagramLink] = field(default_factory=list)
    is_master: bool = False
    in_cluster: bool = False


@dataclass(frozen=True, slots=True)
class BridgeConnectionRow:
    """A connector's connection to one broker, with its bridges."""

    key: str
    stats: BridgeConnectionStats
    cells: Cells
    bridges: list[tuple[str, BridgeStats, Cells]]

    @property
    def failed(self) -> datetime | None:
        """Return the time of its last error."""
        return _datetime_of(self.stats.last_error_ms)

    @property
    def since(self) -> datetime | None:
        """Return the time of the connect, if it is connected."""
        return _datetime_of(self.stats.connected_ms) if self.stats.state is BridgeConnectionState.CONNECTED else None


@dataclass(frozen=True, slots=True)
class ConnectorCard:
    """A network connector with its connections."""

    stats: ConnectorStats
    node: str
    connections: list[BridgeConnectionRow]

    @property
    def level(self) -> str:
        """Return the color of its worst connection."""
        order = ("act", "look", "good", "off")
        return min((LEVELS[each.stats.state] for each in self.connections), key=order.index, default="off")


@dataclass(frozen=True, slots=True)
class IncomingRow:
    """An incoming bridge of another broker."""

    key: str
    stats: InboundBridgeStats
    cells: Cells

    @property
    def since(self) -> datetime | None:
        """Return the time of the connect."""
        return _datetime_of(self.stats.connected_ms)


@dataclass(frozen=True, slots=True)
class TopologyDiagram:
    """The diagram of the topology: this broker's nodes, and the brokers around it."""

    broker: str
    nodes: Sequence[NodeStatus]
    standings: dict[str, NodeStatusView]  #: of the nodes, by session
    connectors: list[ConnectorCard]
    incoming: list[IncomingRow]
    boxes: list[BrokerBox]

    @property
    def left(self) -> list[BrokerBox]:
        """Return the brokers that only have incoming bridges."""
        return [each for each in self.boxes if each.is_left]

    @property
    def right(self) -> list[BrokerBox]:
        """Return the brokers with outgoing bridges and those of the cluster."""
        return [each for each in self.boxes if not each.is_left]

    @property
    def shape(self) -> str:
        """Return a checksum of the parts: when it changes, the page is reloaded."""
        said = [
            [each.node for each in self.nodes],
            [
                (
                    each.stats.name,
                    each.stats.running,
                    [(row.stats.remote, len(row.bridges)) for row in each.connections],
                )
                for each in self.connectors
            ],
            [(each.stats.broker, each.stats.connection) for each in self.incoming],
            [each.name for each in self.boxes if each.in_cluster],
        ]
        return f"{zlib.crc32(json.dumps(said).encode()):08x}"

    @property
    def cells(self) -> Cells:
        """Return all live cells by name."""
        found: Cells = {}
        rows = [row for card in self.connectors for row in card.connections]
        parts = [(row.key, row.cells) for row in rows]
        parts += [(key, cells) for row in rows for key, _, cells in row.bridges]
        parts += [(row.key, row.cells) for row in self.incoming]
        parts += [(f"n{node}", {"level": each.level, "homes": each.says}) for node, each in self.standings.items()]
        parts += [(link.key, link.cells) for box in self.boxes for link in box.links]
        for key, cells in parts:
            found |= {f"{key}#{name}": value for name, value in cells.items()}
        return found


def build_diagram(
    broker: str, nodes: Sequence[NodeStatus], cluster: ClusterStatus | None, sees_all: bool = True
) -> TopologyDiagram:  # fmt: skip
    """Build the diagram from what the nodes report. Sums are hidden from users who do not see all destinations."""
    networks = [(node.node, NetworkStats.from_json(node.network)) for node in nodes if node.network]
    cards = [
        connector_card(each, sees_all, node, f"{number}.{place}")
        for number, (node, network) in enumerate(networks)
        for place, each in enumerate(network.connectors)
    ]
    incoming = [
        IncomingRow(f"i{number}.{place}", each, _incoming_cells(each, sees_all))
        for number, (_, network) in enumerate(networks)
        for place, each in enumerate(network.incoming)
    ]
    standings = {each.node: node_status_view(each, sees_all) for each in nodes}
    return TopologyDiagram(broker, nodes, standings, cards, incoming, _broker_boxes(cards, incoming, cluster, sees_all))


def connector_card(stats: ConnectorStats, sees_all: bool = True, node: str = "", key: str = "0.0") -> ConnectorCard:
    """Describe one connector with its connections."""
    ways = []
    for number, way in enumerate(stats.ways):
        own = f"w{key}.{number}"
        bridges = [(f"{own}.{each.direction}", each, _bridge_cells(each, sees_all)) for each in way.bridges]
        ways.append(BridgeConnectionRow(own, way, _connection_cells(way), bridges))
    return ConnectorCard(stats, node, ways)


def _connection_cells(way: BridgeConnectionStats) -> Cells:
    return {"level": LEVELS[way.state], "state": str(way.state), "why": last_failure(way)}


def last_failure(way: BridgeConnectionStats) -> str:
    """Describe the last error of a connection and the number of attempts."""
    if way.state is BridgeConnectionState.CONNECTED or not way.last_error:
        return ""
    tried = f" ({number_format.pluralize_count(way.attempts, 'attempt')})" if way.attempts else ""
    return f"{way.last_error}{tried}"


def _bridge_cells(bridge: BridgeStats, sees_all: bool) -> Cells:
    return {
        "forwarded": _count(bridge.forwarded, sees_all),
        "bytes": number_format.format_bytes(bridge.forwarded_bytes) if sees_all else HIDDEN,
        "queued": _count(bridge.queued, sees_all) if bridge.direction == "out" else HIDDEN,
        "under_way": _count(bridge.under_way, sees_all),
        "dropped": _count(bridge.dropped_by_ttl, sees_all),
        "duplicates": _count(bridge.duplicates, sees_all),
        "refused": _count(bridge.refused, sees_all),
        "demand": _count(bridge.demand, sees_all),
    }


def _incoming_cells(incoming: InboundBridgeStats, sees_all: bool) -> Cells:
    return {
        "level": "good", "state": "connected",
        "received": _count(incoming.received, sees_all), "given": _count(incoming.given, sees_all),
        "duplicates": _count(incoming.duplicates, sees_all), "dropped": _count(incoming.dropped_by_ttl, sees_all),
    }  # fmt: skip


def _count(number: int, sees_all: bool) -> str:
    return number_format.format_integer(number) if sees_all else HIDDEN


# -- boxes and links


def _broker_boxes(
    cards: Iterable[ConnectorCard], incoming: Iterable[IncomingRow], cluster: ClusterStatus | None, sees_all: bool
) -> list[BrokerBox]:  # fmt: skip
    boxes: dict[str, BrokerBox] = {}
    for card in cards:
        for row in card.connections:
            where = row.stats.address or ", ".join(row.stats.addresses)
            box = boxes.setdefault(row.stats.remote or where, BrokerBox(row.stats.remote, where))
            box.is_left = False
            box.links += _bridge_links(card, row)
    for row in incoming:
        box = boxes.setdefault(row.stats.broker, BrokerBox(row.stats.broker, row.stats.address))
        moved = f"{row.cells['received']} received" + (f", {row.cells['given']} forwarded" if row.stats.given else "")
        cells = {"level": "good", "says": moved}
        box.links.append(DiagramLink(f"l{row.key}", "incoming", "in", "incoming bridge", "", cells))
    for member in cluster.members if cluster else ():
        if cluster is None or member.broker == cluster.broker:  # the nodes of this one are drawn as such
            continue
        box = boxes.setdefault(member.name, BrokerBox(member.name, member.address))
        box.is_left, box.in_cluster, box.is_master = False, True, member.is_master
        box.links.append(_member_link(member, sees_all))
    return sorted(boxes.values(), key=lambda each: (each.name or each.address).lower())


def _bridge_links(card: ConnectorCard, row: BridgeConnectionRow) -> Iterator[DiagramLink]:
    toward = "both" if card.stats.duplex else "out"
    counts = [f"{cells['forwarded']} {'out' if each.direction == 'out' else 'in'}" for _, each, cells in row.bridges]
    waiting = [cells["queued"] for _, each, cells in row.bridges if each.direction == "out" and each.queued]
    said = ", ".join([*counts, *(f"{each} queued" for each in waiting)])
    is_up = row.stats.state is BridgeConnectionState.CONNECTED
    cells = {"level": row.cells["level"], "says": said if is_up else str(row.stats.state)}
    yield DiagramLink(f"l{row.key}", "bridge", toward, card.stats.name, card.stats.name, cells)


def _member_link(member: MemberStatus, sees_all: bool) -> DiagramLink:
    """Describe the link to a cluster member; `taken` is a sum over all destinations."""
    is_up = member.state is MemberState.UP
    says = f"{number_format.format_integer(member.taken)} received" if is_up and sees_all else str(member.state)
    return DiagramLink(
        f"m{member.name}", "cluster", "both", "cluster", "", {"level": MEMBER_LEVELS[member.state], "says": says}
    )


def _datetime_of(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def configured_properties(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the properties that are set, by ActiveMQ's names, in the order of the definition; no secrets."""
    options = definition.get("options", {})
    return [(name, "set" if value is None else str(value)) for name, value in options.items()]
