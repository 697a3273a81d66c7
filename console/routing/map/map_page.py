"""What one page shows of the picture: all by pages, what a search finds, or the neighbourhood of one thing. Pure."""

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

#: Nodes on a page: what a person still takes in by scrolling; parts that hang together are not cut below twice that.
PAGE_NODES = 90
#: Steps from what is looked at to what is shown with it: producers, rule, target, next rule ...
STEPS, MAX_STEPS = 4, 12
#: How the map is shown. Where an address says nothing it is the picture, on a screen too narrow for it the table.
SHAPES = ("picture", "table")


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """What a page of the map shows, as its address says."""

    focus: str = ""  #: key of a node, or id of a definition
    text: str = ""
    steps: int = STEPS
    page: int = 1
    shape: str = ""  #: one of SHAPES; "": what suits the screen
    fresh: str = ""  #: id of a definition that was just applied
    draft: str = ""

    @staticmethod
    def read(query: Mapping[str, str]) -> ViewQuery:
        """The query in an address; what makes no sense there falls back to its default."""
        return ViewQuery(
            focus=query.get("focus", ""),
            text=query.get("q", "").strip(),
            steps=min(MAX_STEPS, max(1, _number(query.get("steps"), STEPS))),
            page=max(1, _number(query.get("page"), 1)),
            shape=shape if (shape := query.get("view", "")) in SHAPES else "",
            fresh=query.get("fresh", ""),
            draft=query.get("draft", ""),
        )

    @property
    def table(self) -> bool:
        """Whether the page is a table."""
        return self.shape == "table"

    def url(self, **changes: object) -> str:
        """This query with changes, as a query string; another search or focus begins at its first page."""
        values = {
            "focus": self.focus, "q": self.text, "steps": self.steps if self.steps != STEPS else "",
            "view": self.shape, "draft": self.draft,
            "page": self.page if self.page > 1 and not changes else "",
        } | changes  # fmt: skip
        return "?" + urlencode({name: value for name, value in values.items() if value not in ("", 1)})


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 6 else default


@dataclass(frozen=True, slots=True)
class GraphView:
    """The part of the picture that is shown, placed; of `total` nodes."""

    graph: Graph
    total: int
    page: int
    pages: int
    focused: GraphNode | None = None


def graph_view(definitions: Definitions, stats: Mapping[Destination, DestinationStats], query: ViewQuery) -> GraphView:
    """The part that a query asks for."""
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
    """The node of this key, or all nodes of the definition of this id."""
    if not focus:
        return []
    exact = [each for each in graph.nodes if each.key == focus]
    return exact or [each for each in graph.nodes if _declares(each, focus)]


def _neighbourhood(graph: Graph, start: Iterable[GraphNode], steps: int) -> list[GraphNode]:
    """These nodes and all within so many steps, nearest first, at most two pages of them."""
    joined = neighbours(graph)
    reached = dict.fromkeys(start)
    edge = list(reached)
    for _ in range(steps):
        edge = [other for node in edge for other in joined[node] if other not in reached]
        reached.update(dict.fromkeys(edge))
    return list(reached)[: 2 * PAGE_NODES]


def _pages(graph: Graph, nodes: Collection[GraphNode]) -> list[list[GraphNode]]:
    """Pages of about PAGE_NODES: parts that hang together stay so, in the order of the definitions."""
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
