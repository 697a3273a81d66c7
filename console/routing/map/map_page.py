"""Select the part of the routing graph for a page: a page of all, search results, or a neighbourhood. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from brokerapp.errors import InvalidDestination
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from console.routing.map.graph import Graph, GraphNode, build_graph, neighbours
from console.routing.map.layout import lay_out
from console.ui.formatting.url_query import parse_integer

#: Nodes on a page; connected parts are not split below twice that.
PAGE_NODES = 90
#: Default and maximum distance from the selected node, in edges.
STEPS, MAX_STEPS = 4, 12
#: Views of the map. Default: the graph, on narrow screens the table. "picture" is the graph's name in addresses.
SHAPES = ("picture", "table")


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """The query of a page of the map."""

    focus: str = ""  #: key of a node, or id of a definition
    text: str = ""
    steps: int = STEPS
    page: int = 1
    shape: str = ""  #: one of SHAPES; "": depends on the screen
    fresh: str = ""  #: id of a definition that was just applied
    draft: str = ""

    @staticmethod
    def read(query: Mapping[str, str]) -> ViewQuery:
        """Read the query of an address; invalid values become the default."""
        return ViewQuery(
            focus=query.get("focus", ""),
            text=query.get("q", "").strip(),
            steps=min(MAX_STEPS, max(1, parse_integer(query.get("steps"), STEPS))),
            page=max(1, parse_integer(query.get("page"), 1)),
            shape=shape if (shape := query.get("view", "")) in SHAPES else "",
            fresh=query.get("fresh", ""),
            draft=query.get("draft", ""),
        )

    @property
    def table(self) -> bool:
        """Return whether the page is a table."""
        return self.shape == "table"

    def url(self, **changes: object) -> str:
        """Return this query with changes as a query string; changes start at the first page."""
        values = {
            "focus": self.focus, "q": self.text, "steps": self.steps if self.steps != STEPS else "",
            "view": self.shape, "draft": self.draft,
            "page": self.page if self.page > 1 and not changes else "",
        } | changes  # fmt: skip
        return "?" + urlencode({name: value for name, value in values.items() if value not in ("", 1)})


@dataclass(frozen=True, slots=True)
class GraphView:
    """The part of the graph that a page shows, with coordinates; `total`: nodes of the whole graph."""

    graph: Graph
    total: int
    page: int
    pages: int
    focused: GraphNode | None = None


def graph_view(definitions: Definitions, stats: Mapping[Destination, DestinationStats], query: ViewQuery) -> GraphView:
    """Select and place the part of the graph for a query."""
    graph = build_graph(definitions, stats, _destination(query.focus))
    focused = _focused(graph, query.focus)
    if focused:
        shown, pages, number = _neighbourhood(graph, focused, query.steps), 1, 1
    elif query.text:
        found = [each for each in graph.nodes if query.text.lower() in each.title.lower()]
        pages_of = _pages(graph, _neighbourhood(graph, found, query.steps)) or [[]]
        pages, number = len(pages_of), min(query.page, len(pages_of))
        shown = pages_of[number - 1]
    else:
        pages_of = _pages(graph, graph.nodes) or [[]]
        fresh = next(
            (i for i, nodes in enumerate(pages_of, 1) if any(_declares(each, query.fresh) for each in nodes)), 0
        )
        pages, number = len(pages_of), fresh or min(query.page, len(pages_of))
        shown = pages_of[number - 1]
    part = graph.subgraph(shown)
    lay_out(part)
    return GraphView(part, len(graph.nodes), number, pages, focused[0] if len(focused) == 1 else None)


def _destination(text: str) -> Destination | None:
    try:
        return Destination.parse(text.partition("@")[2] or text) if "://" in text else None
    except InvalidDestination:
        return None


def _declares(node: GraphNode, id: str) -> bool:
    return node.definition is not None and node.definition.id == id


def _focused(graph: Graph, focus: str) -> list[GraphNode]:
    """Return the node with this key, or all nodes of the definition with this id."""
    if not focus:
        return []
    exact = [each for each in graph.nodes if each.key == focus]
    return exact or [each for each in graph.nodes if _declares(each, focus)]


def _neighbourhood(graph: Graph, start: Iterable[GraphNode], steps: int) -> list[GraphNode]:
    """Return these nodes and all within a distance, nearest first, at most two pages."""
    joined = neighbours(graph)
    reached = dict.fromkeys(start)
    edge = list(reached)
    for _ in range(steps):
        edge = [other for node in edge for other in joined[node] if other not in reached]
        reached.update(dict.fromkeys(edge))
    return list(reached)[: 2 * PAGE_NODES]


def _pages(graph: Graph, nodes: Collection[GraphNode]) -> list[list[GraphNode]]:
    """Split nodes into pages of about PAGE_NODES; connected parts stay together, in the order of the definitions."""
    joined, left = neighbours(graph), set(nodes)
    pages: list[list[GraphNode]] = []
    for node in nodes:
        if node not in left:
            continue
        part, waiting = [], [node]
        left.discard(node)
        while waiting:
            each = waiting.pop(0)
            part.append(each)
            for other in joined[each]:
                if other in left:
                    left.discard(other)
                    waiting.append(other)
        for begin in range(0, len(part), 2 * PAGE_NODES):
            piece = part[begin : begin + 2 * PAGE_NODES]
            if pages and len(pages[-1]) + len(piece) <= PAGE_NODES:
                pages[-1] += piece
            else:
                pages.append(piece)
    return pages
