"""Build the routing graph from the definitions and the existing destinations. Pure.

Messages flow from left to right: producers, a destination, its definitions, their targets, and so on, to the
consumers. The graph is bounded: `map_page.py` selects the part of a page, `layout.py` places its nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.engine.routing.destination_trie import DestinationTrie
from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    MirroredQueue,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.routing.definitions.destination_matches import matching_topics

#: Maximum targets of one source and sources of one definition, unless one of them is selected.
MAX_TARGETS, MAX_SOURCES = 14, 10
#: Maximum targets of a selected source.
MAX_TARGETS_CLOSE = 100


class GraphNodeKind(StrEnum):
    """Kinds of nodes in the graph."""

    DESTINATION = "destination"
    RULE = "rule"
    PRODUCERS = "producers"
    CONSUMERS = "consumers"


@dataclass(slots=True, eq=False)
class GraphNode:
    """A node of the graph. `layer`, `row` and the coordinates are set by the layout."""

    key: str  #: native form of a destination
    kind: GraphNodeKind
    title: str
    destination: Destination  #: destination of its figures
    is_ghost: bool = False  #: a pattern or a group, not an existing destination
    keeps_nothing: bool = False  #: a forward-only composite destination
    definition: VirtualDestination | None = None  #: of a RULE node
    number: int = 0
    layer: int = 0
    row: float = 0.0
    x: float = 0.0
    y: float = 0.0
    width: int = 0

    @property
    def is_measured(self) -> bool:
        """Return whether it has live figures."""
        return not self.is_ghost


@dataclass(slots=True, eq=False)
class Edge:
    """A flow of messages between two nodes; its line width is the enqueue rate of `measured`."""

    source: GraphNode
    target: GraphNode
    measured: GraphNode
    selector: str = ""
    definition: str = ""
    path: str = ""  #: set by the layout


@dataclass(slots=True)
class Graph:
    """The nodes and edges of the graph; width and height are set by the layout."""

    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    @property
    def destinations(self) -> list[str]:
        """Return the destinations with live figures, in native form."""
        return sorted(
            {str(each.destination) for each in self.nodes if each.is_measured and each.kind != GraphNodeKind.RULE}
        )

    def subgraph(self, nodes: Collection[GraphNode]) -> Graph:
        """Return the graph of these nodes alone."""
        kept = set(nodes)
        edges = [each for each in self.edges if each.source in kept and each.target in kept]
        return Graph([each for each in self.nodes if each in kept], edges)


# -- feeds


@dataclass(frozen=True, slots=True)
class FeedEdge:
    """A definition that copies or forwards messages to a destination, and their source."""

    source: Destination
    definition: VirtualDestination
    selector: str | None = None


def feeds_into(destination: Destination, definitions: Definitions) -> list[FeedEdge]:
    """Return all definitions that copy or forward to a destination, with their sources."""
    return list(_feeds_into(destination, definitions))


def _feeds_into(destination: Destination, definitions: Definitions) -> Iterator[FeedEdge]:
    for each in definitions.virtual_destinations:
        match each:
            case VirtualTopic() if destination.kind is DestinationKind.QUEUE:
                if topic := topic_behind(each, destination.name):
                    yield FeedEdge(Destination.topic(topic), each)
            case CompositeDestination():
                yield from (
                    FeedEdge(each.destination, each, leg.selector)
                    for leg in each.legs
                    if leg.destination == destination
                )
            case MirroredQueue() if destination.kind is DestinationKind.TOPIC:
                name = destination.name
                if name.startswith(each.prefix) and name.endswith(each.postfix):
                    queue = name[len(each.prefix) : len(name) - len(each.postfix)]
                    if queue:
                        yield FeedEdge(Destination.queue(queue), each)


def consumer_queues_by_topic(
    definition: VirtualTopic, existing: Collection[Destination], queues: DestinationTrie[str] | None = None
) -> dict[str, list[str]]:
    """Map the topics of a virtual topic, also those known by their consumer queues only, to those queues."""
    found: dict[str, list[str]] = {each.name: [] for each in matching_topics(definition.name, existing)}
    if queues is not None and not definition.postfix:
        names = queues.find(definition.prefix + definition.name)
    else:
        names = [each.name for each in existing if each.kind is DestinationKind.QUEUE]
    for name in names:
        if topic := topic_behind(definition, name):
            found.setdefault(topic, []).append(name)
    return found


# -- building


class _GraphBuilder:
    def __init__(
        self, stats: Mapping[Destination, DestinationStats], max_targets: int, close_to: Destination | None
    ) -> None:
        self.stats, self.max_targets, self.close_to = stats, max_targets, close_to
        self.existing = sorted(stats)
        self.queues: DestinationTrie[str] = DestinationTrie()
        for each in self.existing:
            if each.kind is DestinationKind.QUEUE:
                self.queues.add(each.name, each.name)
        self.nodes: dict[str, GraphNode] = {}
        self.edges: list[Edge] = []

    def node(self, destination: Destination, title: str = "", is_ghost: bool = False) -> GraphNode:
        key = f"{'pattern ' if is_ghost else ''}{destination}"
        return self._node(key, GraphNodeKind.DESTINATION, title or destination.name, destination, is_ghost)

    def _node(
        self, key: str, role: GraphNodeKind, title: str, destination: Destination, is_ghost: bool = False
    ) -> GraphNode:
        if key not in self.nodes:
            self.nodes[key] = GraphNode(key, role, title, destination, is_ghost, number=len(self.nodes))
        return self.nodes[key]

    def rule(self, definition: VirtualDestination, source: GraphNode, title: str) -> GraphNode:
        rule = self._node(
            f"{definition.id}@{source.key}", GraphNodeKind.RULE, title, source.destination, is_ghost=source.is_ghost
        )
        if rule.definition is None:
            rule.definition = definition
            self.edges.append(Edge(source, rule, source, definition=definition.id))
        return rule

    def target(self, rule: GraphNode, target: GraphNode, selector: str | None = None) -> None:
        assert rule.definition is not None
        self.edges.append(Edge(rule, target, target, selector or "", rule.definition.id))

    def add(self, definition: VirtualDestination) -> None:
        match definition:
            case CompositeDestination():
                source = self.node(definition.destination)
                source.keeps_nothing = definition.forward_only
                rule = self.rule(definition, source, "forwards")
                for leg in definition.legs:
                    self.target(rule, self.node(leg.destination), leg.selector)
            case VirtualTopic():
                self._virtual_topic(definition)
            case MirroredQueue():
                source = self.node(Destination.queue(">"), "every queue", is_ghost=True)
                title = f"{definition.prefix}…{definition.postfix}"
                target = self.node(Destination.topic(title), title, is_ghost=True)
                self.target(self.rule(definition, source, "mirrors"), target)

    def _virtual_topic(self, definition: VirtualTopic) -> None:
        found = consumer_queues_by_topic(definition, self.existing, self.queues)
        shown = sorted(found)[:MAX_SOURCES]
        if self.close_to is not None:
            shown += [
                topic
                for topic, queues in found.items()
                if topic not in shown and (topic == self.close_to.name or self.close_to.name in queues)
            ]
        for topic in shown:
            rule = self.rule(definition, self.node(Destination.topic(topic)), "copies")
            queues = sorted(found[topic])
            for queue in self._first_queues(queues):
                self.target(rule, self.node(Destination.queue(queue)))
            if (rest := len(queues) - self.max_targets) > 0:
                ghost = Destination.queue(f"{definition.prefix}{topic}{definition.postfix}")
                self.target(rule, self.node(ghost, f"and {rest} more queues", is_ghost=True))
        if not found:
            source = self.node(Destination.topic(definition.name), is_ghost=True)
            target = Destination.queue(f"{definition.prefix}{definition.name}{definition.postfix}")
            self.target(self.rule(definition, source, "copies"), self.node(target, is_ghost=True))

    def _first_queues(self, queues: list[str]) -> list[str]:
        few = queues[: self.max_targets]
        if self.close_to is not None and self.close_to.name in queues[self.max_targets :]:
            few[-1] = self.close_to.name
        return few

    def add_producers_and_consumers(self) -> None:
        """Add the producers and consumers of the destinations shown."""
        fed = {each.target for each in self.edges}
        forwarding = {each.source for each in self.edges}
        for node in list(self.nodes.values()):
            if node.kind is not GraphNodeKind.DESTINATION or node.is_ghost:
                continue
            stats = self.stats.get(node.destination)
            if node not in fed or (stats is not None and stats.ProducerCount):
                ends = self._node(f"producers@{node.key}", GraphNodeKind.PRODUCERS, "", node.destination)
                self.edges.append(Edge(ends, node, node))
            reads = stats is not None and stats.ConsumerCount
            if reads or (node.destination.is_queue and not node.keeps_nothing and node not in forwarding):
                ends = self._node(f"consumers@{node.key}", GraphNodeKind.CONSUMERS, "", node.destination)
                self.edges.append(Edge(node, ends, ends))


def build_graph(
    definitions: Definitions, stats: Mapping[Destination, DestinationStats], close_to: Destination | None = None
) -> Graph:
    """Build the whole graph without coordinates; `close_to` is included with all its neighbours."""
    builder = _GraphBuilder(stats, MAX_TARGETS_CLOSE if close_to else MAX_TARGETS, close_to)
    for definition in definitions.virtual_destinations:
        builder.add(definition)
    if close_to is not None and str(close_to) not in builder.nodes and close_to in stats:
        builder.node(close_to)
    builder.add_producers_and_consumers()
    return Graph(list(builder.nodes.values()), builder.edges)


def neighbours(graph: Graph) -> dict[GraphNode, list[GraphNode]]:
    """Map each node to the nodes at its edges."""
    found: dict[GraphNode, list[GraphNode]] = defaultdict(list)
    for edge in graph.edges:
        found[edge.source].append(edge.target)
        found[edge.target].append(edge.source)
    return found
