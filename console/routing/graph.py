"""The picture of the routing: what the definitions make of the destinations that exist, laid out in layers. Pure.

Nodes are destinations, edges the copies that go from one to another. A node's layer is the longest way to it from a
source; within a layer nodes stand near what they are connected to. Patterns nothing matches yet are shown as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from brokerapp.definitions import Composite, Definitions, MirroredQueue, VirtualDestination, VirtualTopic
from brokerapp.destination import Destination, Kind
from brokerapp.engine.consumer_queues import topic_behind
from brokerapp.engine.destination_map import matches

#: Bounds the picture: targets shown of one source, and sources shown of one definition.
MAX_TARGETS, MAX_SOURCES = 14, 10
#: Sizes in the picture's own units.
NODE_WIDTH, NODE_HEIGHT, ROW, COLUMN, MARGIN = 316, 38, 52, 236, 8
#: How far an edge goes before it is on the height of its target.
BEND = 76
#: Characters of a name, and of a selector, that fit.
NAME_FITS, LABEL_FITS = 29, 24
#: Sweeps that bring connected nodes to the same height.
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Feed:
    """One way in which messages come to a destination."""

    source: Destination
    definition: VirtualDestination
    selector: str | None = None


@dataclass(slots=True, eq=False)
class Node:
    """One destination in the picture."""

    destination: Destination
    title: str
    is_ghost: bool = False  #: a pattern or a remainder, no destination that exists
    keeps_nothing: bool = False  #: a forward-only composite
    definition: str = ""  #: id of the definition this node stands for
    layer: int = 0
    row: float = 0.0

    @property
    def shows_depth(self) -> bool:
        """Whether it has a number that can be watched."""
        return self.destination.kind is Kind.QUEUE and not self.is_ghost

    @property
    def x(self) -> int:
        """Left edge."""
        return MARGIN + self.layer * (NODE_WIDTH + COLUMN)

    @property
    def y(self) -> float:
        """Upper edge."""
        return round(MARGIN + self.row * ROW, 1)

    @property
    def text(self) -> str:
        """The name, shortened in its middle where it does not fit."""
        return _short(self.title, NAME_FITS)


@dataclass(slots=True, eq=False)
class Edge:
    """Copies going from one destination to another."""

    source: Node
    target: Node
    selector: str = ""
    definition: str = ""

    @property
    def path(self) -> str:
        """The curve, as an SVG path."""
        (x1, y1), (x2, y2) = self._ends()
        # It bends at once and then runs straight to its target: the selector is written along that stretch.
        level = x1 + BEND
        return f"M{x1},{y1} C{x1 + BEND * 0.6},{y1} {x1 + BEND * 0.4},{y2} {level},{y2} H{x2}"

    @property
    def label(self) -> str:
        """The selector, shortened."""
        return _short(self.selector, LABEL_FITS)

    @property
    def label_x(self) -> float:
        """Right edge of the label: just before the target."""
        return self.target.x - 12

    @property
    def label_y(self) -> float:
        """Base line of the label."""
        return self.target.y + NODE_HEIGHT / 2 - 6

    def _ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        half = NODE_HEIGHT / 2
        return (self.source.x + NODE_WIDTH, self.source.y + half), (self.target.x, self.target.y + half)


@dataclass(slots=True)
class Graph:
    """Nodes and edges with their places."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Of the whole picture."""
        return max((node.x for node in self.nodes), default=0) + NODE_WIDTH + MARGIN

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return max((node.y for node in self.nodes), default=0) + NODE_HEIGHT + MARGIN

    @property
    def names(self) -> list[str]:
        """The queues shown, whose depths can be watched."""
        return [
            each.destination.name for each in self.nodes if not each.is_ghost and each.destination.kind is Kind.QUEUE
        ]


# -- what feeds what


def feeders_of(destination: Destination, definitions: Definitions) -> list[Feed]:
    """Every definition that sends copies to this destination, with where they come from."""
    return list(_feeders(destination, definitions))


def _feeders(destination: Destination, definitions: Definitions) -> Iterator[Feed]:
    for each in definitions.virtual_destinations:
        match each:
            case VirtualTopic() if destination.kind is Kind.QUEUE:
                if topic := topic_behind(each, destination.name):
                    yield Feed(Destination.topic(topic), each)
            case Composite():
                yield from (
                    Feed(each.destination, each, leg.selector) for leg in each.legs if leg.destination == destination
                )
            case MirroredQueue() if destination.kind is Kind.TOPIC:
                name = destination.name
                if name.startswith(each.prefix) and name.endswith(each.postfix):
                    queue = name[len(each.prefix) : len(name) - len(each.postfix)]
                    if queue:
                        yield Feed(Destination.queue(queue), each)


# -- building


class _Builder:
    def __init__(self, existing: Collection[Destination]) -> None:
        self.existing = existing
        self.nodes: dict[tuple[Destination, bool], Node] = {}
        self.edges: list[Edge] = []

    def node(self, destination: Destination, title: str = "", is_ghost: bool = False) -> Node:
        key = (destination, is_ghost)
        if key not in self.nodes:
            self.nodes[key] = Node(destination, title or destination.name, is_ghost)
        return self.nodes[key]

    def edge(self, source: Node, target: Node, definition: VirtualDestination, selector: str | None = None) -> None:
        self.edges.append(Edge(source, target, selector or "", definition.id))

    def add(self, definition: VirtualDestination) -> None:
        match definition:
            case Composite():
                self._composite(definition)
            case VirtualTopic():
                self._virtual_topic(definition)
            case MirroredQueue():
                self._mirror(definition)

    def _composite(self, definition: Composite) -> None:
        source = self.node(definition.destination)
        source.keeps_nothing, source.definition = definition.forward_only, definition.id
        for leg in definition.legs:
            self.edge(source, self.node(leg.destination), definition, leg.selector)

    def _virtual_topic(self, definition: VirtualTopic) -> None:
        queues_by_topic: dict[str, list[str]] = defaultdict(list)
        for destination in self.existing:
            if destination.kind is Kind.TOPIC and matches(definition.name, destination.name):
                queues_by_topic.setdefault(destination.name, [])
            elif destination.kind is Kind.QUEUE and (topic := topic_behind(definition, destination.name)):
                queues_by_topic[topic].append(destination.name)
        for topic, queues in sorted(queues_by_topic.items())[:MAX_SOURCES]:
            source = self.node(Destination.topic(topic))
            source.definition = definition.id
            for queue in sorted(queues)[:MAX_TARGETS]:
                self.edge(source, self.node(Destination.queue(queue)), definition)
            if (rest := len(queues) - MAX_TARGETS) > 0:
                ghost = Destination.queue(f"{definition.prefix}{topic}{definition.postfix}")
                self.edge(source, self.node(ghost, f"and {rest} more queues", is_ghost=True), definition)
        if not queues_by_topic:
            source = self.node(Destination.topic(definition.name), is_ghost=True)
            source.definition = definition.id
            target = Destination.queue(f"{definition.prefix}{definition.name}{definition.postfix}")
            self.edge(source, self.node(target, is_ghost=True), definition)

    def _mirror(self, definition: MirroredQueue) -> None:
        source = self.node(Destination.queue(">"), "every queue", is_ghost=True)
        source.definition = definition.id
        title = f"{definition.prefix}…{definition.postfix}"
        self.edge(source, self.node(Destination.topic(title), title, is_ghost=True), definition)


def picture_of(definitions: Definitions, existing: Collection[Destination]) -> Graph:
    """The picture of these definitions over the destinations that exist."""
    builder = _Builder(existing)
    for definition in definitions.virtual_destinations:
        builder.add(definition)
    graph = Graph(list(builder.nodes.values()), builder.edges)
    _layer(graph)
    _place(graph)
    return graph


# -- layout


def _layer(graph: Graph) -> None:
    # Definitions have no loops; were there one, the bound on rounds would still end this.
    for _ in range(len(graph.nodes)):
        moved = False
        for edge in graph.edges:
            if edge.target.layer <= edge.source.layer and edge.target is not edge.source:
                edge.target.layer, moved = edge.source.layer + 1, True
        if not moved:
            return


def _place(graph: Graph) -> None:
    neighbours: dict[Node, list[Node]] = defaultdict(list)
    for edge in graph.edges:
        neighbours[edge.source].append(edge.target)
        neighbours[edge.target].append(edge.source)
    layers: dict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        layers[node.layer].append(node)
    for nodes in layers.values():
        for row, node in enumerate(nodes):
            node.row = row
    for _ in range(SWEEPS):
        for number in sorted(layers, reverse=True):
            _settle(layers[number], neighbours)
    top = min((node.row for node in graph.nodes), default=0)
    for node in graph.nodes:
        node.row -= top


def _settle(nodes: list[Node], neighbours: dict[Node, list[Node]]) -> None:
    """Move each node of a layer to the middle of what it is connected to, one row apart from the others at least."""
    wish = {node: _mean([each.row for each in neighbours[node]], node.row) for node in nodes}
    ordered = sorted(nodes, key=lambda node: wish[node])
    # Groups of nodes that would overlap are spread around their common middle.
    groups: list[list[Node]] = []
    for node in ordered:
        groups.append([node])
        while len(groups) > 1 and _start(groups[-2], wish) + len(groups[-2]) > _start(groups[-1], wish):
            groups[-2:] = [groups[-2] + groups[-1]]
    for group in groups:
        for offset, node in enumerate(group):
            node.row = _start(group, wish) + offset


def _start(group: list[Node], wish: dict[Node, float]) -> float:
    return _mean([wish[node] - offset for offset, node in enumerate(group)], 0.0)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _short(text: str, fits: int) -> str:
    if len(text) <= fits:
        return text
    head = fits * 2 // 3  # what tells names apart stands mostly in front
    return f"{text[:head]}…{text[-(fits - head - 1) :]}"
