"""Show virtual and composite destinations as a graph and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from brokerapp.model.definition_codec import virtual_destination_to_json
from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    MirroredQueue,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Permission, pattern_filter, permission_required, visible
from console.access.roles import Sees
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot, visible_snapshot
from console.routing.definitions.changes import apply_changes, diff_definitions, id_of
from console.routing.definitions.definition_values import label_of, title_of
from console.routing.definitions.rollout import Rollout
from console.routing.definitions.versions import latest_version, undoable_change
from console.routing.definitions.visibility import visible_definitions
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft
from console.routing.editor.forms import OPTIONS
from console.routing.map.graph import Edge, Graph, GraphNode, GraphNodeKind, consumer_queues_by_topic
from console.routing.map.layout import NODE_HEIGHT, name_lines
from console.routing.map.map_page import ViewQuery, graph_view
from console.routing.map.traffic import flow_cells

#: Characters of a selector that fit beside an edge.
LABEL_FITS = 20
_ICONS = {GraphNodeKind.RULE: "routing", GraphNodeKind.PRODUCERS: "upload", GraphNodeKind.CONSUMERS: "download"}
#: Rows of the table on a page.
TABLE_ROWS = 100


@require_GET
@permission_required(Permission.SEE)
def routing(request: HttpRequest) -> HttpResponse:
    """Show the active definitions, or those of a draft, with the existing destinations."""
    query = ViewQuery.read(request.GET)
    picture, sees = visible_snapshot(mirror().current(), visible(request.user)), pattern_filter(request.user)
    current = gateway().definitions()
    draft = _draft(query.draft, sees)
    existing = apply_changes(current, draft.read_changes()) if draft else current
    definitions = visible_definitions(existing, sees)
    current = visible_definitions(current, sees)
    changed = {id_of(each.after) for each in diff_definitions(current, definitions) if each.after is not None}
    context: dict[str, Any] = {
        "query": query, "definitions": definitions, "current": current, "draft": draft,
        "undo": undoable_change(latest_version(sees)),
        "table_url": query.url(view="table"), "graph_url": query.url(view="picture"),
        "has_any": bool(definitions.virtual_destinations),
        "hidden": len(existing.virtual_destinations) - len(definitions.virtual_destinations), "fresh": query.fresh,
        "rollout": Rollout.of(current.version, gateway().nodes()),
        "narrow_url": "" if query.shape or query.focus or query.fresh else query.url(view="table"),
    }  # fmt: skip
    if query.table:
        context |= _table(definitions, query, picture)
        return render(request, "routing/map/map.html", context)
    view = graph_view(definitions, picture.stats, query)
    context |= {
        "view": view,
        "nodes": [_draw_node(each, picture, query) for each in view.graph.nodes],
        "edges": [_draw_edge(each, picture, changed, query.fresh) for each in view.graph.edges],
        "height": NODE_HEIGHT,
        "edge_sentences": _describe_edges(view.graph), "legend": _legend(view.graph, changed, query.fresh),
        "focused": _focus_details(view.focused, picture) if view.focused else None,
        "pages": _pages(query, view.page, view.pages),
        "nearer": query.url(steps=max(1, query.steps - 2)), "farther": query.url(steps=query.steps + 2),
        "everything": query.url(focus="", q="", steps=""),
    }  # fmt: skip
    return render(request, "routing/map/map.html", context)


def _draft(text: str, sees: Sees) -> Draft | None:
    draft = draft_service.get_open_draft(text, sees)
    if draft is None and text.isdecimal():
        raise Http404(f"No open draft {text}.")
    return draft


def _pages(query: ViewQuery, page: int, pages: int) -> dict[str, Any]:
    return {
        "page": page, "pages": pages,
        "previous": query.url(page=page - 1) if page > 1 else "",
        "next": query.url(page=page + 1) if page < pages else "",
    }  # fmt: skip


# -- the graph


@dataclass(frozen=True, slots=True)
class NodeDrawing:
    """A node of the graph as the template draws it."""

    node: GraphNode
    icon: str
    lines: tuple[str, ...]  #: of its name
    number: str  #: beside the name: depth or rate
    number_cell: str  #: live cell of the name or of the number
    grade: str
    grade_cell: str
    description: str  #: for screen readers
    link: str

    @property
    def css_class(self) -> str:
        """Return the CSS classes of the node."""
        node = self.node
        names = ["node", f"node-{node.kind}", f"node-{node.destination.kind}"]
        return " ".join(names + ["node-ghost"] * node.is_ghost + ["node-forward"] * node.keeps_nothing)

    @property
    def corner_radius(self) -> int:
        """Return the radius of the corners: destinations are boxes, all others pills."""
        return 8 if self.node.kind is GraphNodeKind.DESTINATION else 19

    @property
    def name_is_live(self) -> bool:
        """Return whether the name is a count that changes: producers or consumers."""
        return self.node.kind in (GraphNodeKind.PRODUCERS, GraphNodeKind.CONSUMERS)

    @property
    def placed_lines(self) -> list[tuple[str, str]]:
        """Return the lines of the name with their vertical positions."""
        heights = ("23.5",) if len(self.lines) == 1 else ("16", "30")
        return list(zip(heights, self.lines, strict=True))


def _draw_node(node: GraphNode, picture: BrokerSnapshot, query: ViewQuery) -> NodeDrawing:
    flow, row = flow_cells(picture, node.destination), str(node.destination)
    link = query.url(focus=node.key, q="")
    icon = _ICONS.get(node.kind, "queue" if node.destination.is_queue else "topic")
    if node.kind is GraphNodeKind.DESTINATION:
        stats = picture.stats.get(node.destination)
        icon = "dlq" if stats is not None and stats.DLQ else icon
        says = f"{node.destination.kind} {node.title}" + (
            "" if node.is_ghost else f", {flow['says']}{', forward only' if node.keeps_nothing else ''}"
        )
        holds = stats is not None and stats.QueueSize > 0  # from the time before it was forward only
        number = "" if node.is_ghost or (node.keeps_nothing and not holds) else str(flow["text"])
        cells = (f"{row}#text", f"{row}#grade") if node.is_measured else ("", "")
        return NodeDrawing(node, icon, name_lines(node), number, cells[0], str(flow["grade"]), cells[1], says, link)
    if node.kind is GraphNodeKind.RULE:
        assert node.definition is not None
        says = f"{label_of(node.definition)} {title_of(node.definition)}"
        return NodeDrawing(node, icon, (node.title,), "", "", "rule", "", says, link)
    which = "producers" if node.kind is GraphNodeKind.PRODUCERS else "consumers"
    grade, cell = ("idle", "") if which == "producers" else (str(flow["reading"]), f"{row}#reading")
    says = f"{flow[which]} of {node.destination.name}"
    href = reverse(node.destination.kind, kwargs={"name": node.destination.name})
    return NodeDrawing(node, icon, (str(flow[which]),), "", f"{row}#{which}", grade, cell, says, href)


@dataclass(frozen=True, slots=True)
class EdgeDrawing:
    """An edge of the graph as the template draws it."""

    edge: Edge
    grade: str
    grade_cell: str
    stream: str
    stream_cell: str
    count: int | str
    row: str
    label: str
    label_x: float
    label_y: float
    is_draft: bool
    is_fresh: bool


def _draw_edge(edge: Edge, picture: BrokerSnapshot, changed: set[str], fresh: str) -> EdgeDrawing:
    flow, row = flow_cells(picture, edge.measured.destination), str(edge.measured.destination)
    side = "out" if edge.target.kind is GraphNodeKind.CONSUMERS else "in"
    measured = edge.measured.is_measured
    grade = "reading" if side == "out" else "grade"
    label = edge.selector if len(edge.selector) <= LABEL_FITS else f"{edge.selector[: LABEL_FITS - 1]}…"
    return EdgeDrawing(
        edge,
        str(flow[grade]) if measured else "idle",
        f"{row}#{grade}" if measured else "",
        str(flow[side]) if measured else "s0",
        f"{row}#{side}" if measured else "",
        flow["count"] if measured else "",
        row if measured else "",
        label,
        edge.target.x - 10,
        edge.target.y + NODE_HEIGHT / 2 - 7,
        is_draft=edge.definition in changed,
        is_fresh=bool(fresh) and edge.definition == fresh,
    )


def _legend(graph: Graph, changed: set[str], fresh: str) -> list[tuple[str, str]]:
    """Explain colors and lines, as name and text; rare ones only if the graph contains them."""
    drawn = {edge.definition for edge in graph.edges}
    always = [("good", "active"), ("idle", "idle"), ("look", "backlog"), ("act", "dead letters")]
    rare = [
        ("fresh", "just applied, no messages yet", bool(fresh) and fresh in drawn),
        ("draft", "in the draft", bool(changed & drawn)),
        ("forward", "forward only", any(node.keeps_nothing for node in graph.nodes)),
        ("ghost", "pattern or group", any(node.is_ghost for node in graph.nodes)),
    ]
    return always + [(name, words) for name, words, is_drawn in rare if is_drawn]


def _describe_edges(graph: Graph) -> list[str]:
    """Describe the graph in sentences, one for each definition."""
    targets: dict[GraphNode, list[str]] = {}
    for edge in graph.edges:
        if edge.source.kind is GraphNodeKind.RULE:
            where = f" where {edge.selector}" if edge.selector else ""
            name = f"{edge.target.destination.kind} {edge.target.title}"
            targets.setdefault(edge.source, []).append(name + where)
    sources = {edge.target: edge.source for edge in graph.edges if edge.target.kind is GraphNodeKind.RULE}
    return [
        f"{sources[rule].destination.kind} {sources[rule].title} {rule.title} to {', '.join(found)}."
        for rule, found in targets.items()
        if rule in sources
    ]


def _focus_details(node: GraphNode, picture: BrokerSnapshot) -> dict[str, Any]:
    """Collect the details of the selected node."""
    destination = node.destination
    about = {"node": node, "title": node.title, "definition": node.definition, "says": "", "icon": "routing"}
    if node.definition is not None:
        return about | {"title": title_of(node.definition), "label": label_of(node.definition)}
    exists = destination in picture.stats
    return about | {
        "label": str(destination.kind),
        "icon": str(destination.kind),
        "says": str(flow_cells(picture, destination)["says"]) if node.is_measured else "",
        "row": str(destination) if exists else "",
        "open": reverse(destination.kind, kwargs={"name": destination.name}) if exists else "",
        "browse": reverse("messages", kwargs={"name": destination.name})
        if exists and destination.kind is DestinationKind.QUEUE
        else "",
        "preview": "?" + urlencode({"destination": str(destination)}) if node.is_measured else "",
    }


# -- the table


def _table(definitions: Definitions, query: ViewQuery, picture: BrokerSnapshot) -> dict[str, Any]:
    """List one page of the definitions, filtered by a part of their name, target or selector."""
    rows = [_table_row(each, list(picture.stats)) for each in definitions.virtual_destinations]
    wanted = query.text.lower()
    rows = [row for row in rows if wanted in f"{row['title']} {row['targets']}".lower()]
    pages = max(1, -(-len(rows) // TABLE_ROWS))
    page = min(query.page, pages)
    return {"rows": rows[(page - 1) * TABLE_ROWS : page * TABLE_ROWS], "pages": _pages(query, page, pages)}


def _table_row(definition: VirtualDestination, existing: list[Destination]) -> dict[str, Any]:
    """Describe a definition for a row: title, targets, options that differ from their defaults."""
    row = {
        "definition": definition,
        "label": label_of(definition),
        "title": title_of(definition),
        "options": _changed_options(definition),
    }
    match definition:
        case VirtualTopic():
            found = consumer_queues_by_topic(definition, existing)
            queues = f"{definition.prefix}{definition.name}{definition.postfix}"
            meets = (len(found), sum(map(len, found.values())))
            return row | {"icon": "topic", "targets": [("queue", queues, None)], "meets": meets}
        case CompositeDestination():
            legs = [(leg.destination.kind, leg.destination.name, leg.selector) for leg in definition.legs]
            return row | {"icon": definition.destination.kind, "targets": legs}
        case MirroredQueue():
            topics = f"{definition.prefix}*{definition.postfix}"
            return row | {"icon": "queue", "targets": [("topic", topics, None)]}


def _changed_options(definition: VirtualDestination) -> list[str]:
    changed = virtual_destination_to_json(definition)
    return [f"{OPTIONS[name].name}={str(value).lower()}" for name, value in changed.items() if name in OPTIONS]
