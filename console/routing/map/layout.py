"""Place the nodes of the routing graph: in layers from left to right, near their neighbours. Pure.

A node's layer is the length of the longest path to it. Nodes that would overlap are spread around their middle.
"""

from __future__ import annotations

from collections import defaultdict
from math import ceil

from console.routing.map.graph import Edge, Graph, GraphNode, GraphNodeKind, neighbours

#: Widths in units of the graph. A virtual topic with its consumers takes less than 1,000; a usual window has 970.
WIDTHS = {
    GraphNodeKind.DESTINATION: 240,
    GraphNodeKind.RULE: 112,
    GraphNodeKind.PRODUCERS: 118,
    GraphNodeKind.CONSUMERS: 128,
}
#: A destination is as wide as the longest name of its layer needs: minimum, icon and number, and width of a letter in
#: names of one line and of two.
NARROWEST, BESIDE_NAME, LETTER, SMALL_LETTER = 150, 94, 7.6, 6.6
NODE_HEIGHT, ROW, MARGIN = 38, 50, 10
#: Gap between two layers, without and with selectors beside the edges.
GAP, GAP_LABELLED = 30, 172
#: Horizontal distance in which an edge reaches the height of its target.
BEND = 36
#: Number of passes that align connected nodes.
SWEEPS = 4


def lay_out(graph: Graph) -> None:
    """Set the coordinates of all nodes and the paths of all edges."""
    _assign_layers(graph)
    layers = _assign_rows(graph)
    _assign_columns(graph, layers)
    for node in graph.nodes:
        node.y = round(MARGIN + node.row * ROW, 1)
    for edge in graph.edges:
        edge.path = _path(edge)
    graph.width = max((node.x + node.width for node in graph.nodes), default=0) + MARGIN
    graph.height = max((node.y for node in graph.nodes), default=0) + NODE_HEIGHT + MARGIN


def _assign_layers(graph: Graph) -> None:
    # Definitions contain no loops; the bound on rounds ends this in any case.
    for node in graph.nodes:  # the first layer is for producers
        node.layer = 1 if node.kind is GraphNodeKind.DESTINATION else 0
    for _ in range(len(graph.nodes)):
        moved = False
        for edge in graph.edges:
            if edge.target.layer <= edge.source.layer and edge.target is not edge.source:
                edge.target.layer, moved = edge.source.layer + 1, True
        if not moved:
            break
    for edge in graph.edges:  # producers are next to their destination
        if edge.source.kind is GraphNodeKind.PRODUCERS:
            edge.source.layer = edge.target.layer - 1


def _assign_rows(graph: Graph) -> dict[int, list[GraphNode]]:
    joined = neighbours(graph)
    layers: dict[int, list[GraphNode]] = defaultdict(list)
    for node in graph.nodes:
        layers[node.layer].append(node)
    for nodes in layers.values():
        for row, node in enumerate(nodes):
            node.row = row
    for _ in range(SWEEPS):
        for number in sorted(layers, reverse=True):
            _align_rows(layers[number], joined)
    if layers:  # the consumers once more: each directly behind its destination
        _align_rows(layers[max(layers)], joined)
    top = min((node.row for node in graph.nodes), default=0)
    for node in graph.nodes:
        node.row -= top
    return layers


def _assign_columns(graph: Graph, layers: dict[int, list[GraphNode]]) -> None:
    labelled = {edge.target.layer for edge in graph.edges if edge.selector}
    x = float(MARGIN)
    for number in sorted(layers):
        for node in layers[number]:
            node.width = _width(node, layers[number])
        widest = max(node.width for node in layers[number])
        if number != min(layers):
            x += GAP_LABELLED if number in labelled else GAP
        for node in layers[number]:
            # producers are at the right edge of their layer, near their destination
            node.x = x + (widest - node.width if node.kind is GraphNodeKind.PRODUCERS else 0)
        x += widest


def _width(node: GraphNode, layer: list[GraphNode]) -> int:
    if node.kind is not GraphNodeKind.DESTINATION:
        return WIDTHS[node.kind]
    longest = max(len(each.title) for each in layer if each.kind is GraphNodeKind.DESTINATION)
    return max(NARROWEST, min(WIDTHS[node.kind], ceil(BESIDE_NAME + LETTER * longest)))


def name_lines(node: GraphNode) -> tuple[str, ...]:
    """Break a destination's name into one line, or two of smaller letters.

    Lines break after a dot. A longer name is shortened in the middle, its beginning distinguishes it best.
    """
    name, room = node.title, node.width - BESIDE_NAME
    if len(name) * LETTER <= room:
        return (name,)
    small = int(room / SMALL_LETTER)
    dots = [at + 1 for at, letter in enumerate(name) if letter == "." and at + 1 <= small]
    head = name[: dots[-1]] if dots else name[:small]
    rest = name[len(head) :]
    return head, rest if len(rest) <= small else f"{rest[: small * 2 // 3]}…{rest[-(small - small * 2 // 3 - 1) :]}"


def _path(edge: Edge) -> str:
    half = NODE_HEIGHT / 2
    x1, y1 = edge.source.x + edge.source.width, edge.source.y + half
    x2, y2 = edge.target.x, edge.target.y + half
    level = min(x1 + BEND, x2)
    # It bends first and then runs straight to its target, with the selector beside it.
    return f"M{x1:g},{y1:g} C{x1 + BEND * 0.6:g},{y1:g} {x1 + BEND * 0.4:g},{y2:g} {level:g},{y2:g} H{x2:g}"


def _align_rows(nodes: list[GraphNode], joined: dict[GraphNode, list[GraphNode]]) -> None:
    """Move each node of a layer to the middle of its neighbours, at least one row apart from others."""
    wish = {node: _mean([each.row for each in joined[node]], node.row) for node in nodes}
    ordered = sorted(nodes, key=lambda node: wish[node])
    groups: list[list[GraphNode]] = []
    for node in ordered:
        groups.append([node])
        while len(groups) > 1 and _start(groups[-2], wish) + len(groups[-2]) > _start(groups[-1], wish):
            groups[-2:] = [groups[-2] + groups[-1]]
    for group in groups:
        for offset, node in enumerate(group):
            node.row = _start(group, wish) + offset


def _start(group: list[GraphNode], wish: dict[GraphNode, float]) -> float:
    return _mean([wish[node] - offset for offset, node in enumerate(group)], 0.0)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default
