"""Define the live channels of pages: each turns a snapshot of the broker into cells, which are texts by name.

A cell whose name ends in `_html` is markup rendered by a template; `mark` is a point of a chart: time in milliseconds,
pending, in and out; `rows` are the cells of a list's rows, by name of the row. All others are texts.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.stats_records import ConnectionStats, DestinationStats
from console.access.permissions import AnyUser, Permission, visible
from console.access.roles import Sees, everything
from console.alerts import active_alerts, notifications
from console.analyses import run_service
from console.analyses.questions import is_readable
from console.broker.live.frame_delta import Cells
from console.broker.live.routing_cells import graph_cells
from console.broker.snapshot import BrokerSnapshot, ChartPoint, visible_snapshot
from console.destinations.clients.clients import visible_connection_ids
from console.destinations.clients.connection_list import connection_rows
from console.destinations.clients.topic_subscriptions import visible_subscription_logs
from console.destinations.lists import COLUMNS, DestinationRow
from console.destinations.placement import owner_node
from console.messages.jobs import failed_again, job_service
from console.metrics import health
from console.topology.broken_links import find_broken_links
from console.topology.clusters import cluster_context, cluster_now
from console.topology.diagram import build_diagram
from console.topology.node_facts import NodeSummary, gauges_of
from console.ui.formatting import number_format

#: Whether somebody may know of a row, by its name.
Knows = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class LiveChannel:
    """A subscription's topic: `name`, or `name:argument`; `rows` are the rows the page shows, where it is a list."""

    name: str
    argument: str = ""
    rows: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str, rows: tuple[str, ...] = ()) -> LiveChannel | None:
        """Return the topic a client names; None when there is none such."""
        name, _, argument = text.partition(":")
        topic = LiveChannel(name, argument, rows)
        try:
            return topic if name in PERMISSIONS and (topic.destination is None or argument) else None
        except InvalidDestination:
            return None

    def __str__(self) -> str:
        return f"{self.name}:{self.argument}" if self.argument else self.name

    @property
    def destination(self) -> Destination | None:
        """Return the destination of the channel, or None."""
        return Destination(DestinationKind(self.name), self.argument) if self.name in NAMED_KINDS else None

    @property
    def kind(self) -> DestinationKind:
        """Return the kind of destination that a list shows."""
        return DestinationKind.QUEUE if self.argument.startswith("queues") else DestinationKind.TOPIC

    @property
    def destinations(self) -> list[Destination]:
        """Return the destinations of a list's rows."""
        return [Destination(self.kind, name) for name in self.rows]


def overview_cells(picture: BrokerSnapshot, topic: LiveChannel, sees: Sees = everything) -> Cells:
    """Totals, the health sentence, what needs attention, of what one sees; the point of the chart is the broker's."""
    found = health.findings(picture, sees)
    picture = visible_snapshot(picture, sees)
    verdict = health.summarize(picture, found)
    totals = picture.totals
    return {
        "state": verdict.state,
        "sentence": verdict.sentence,
        "enqueue": number_format.format_rate(totals.enqueue),
        "dequeue": number_format.format_rate(totals.dequeue),
        "pending": number_format.format_integer(totals.pending),
        "dead": number_format.format_integer(totals.dead),
        "has_dead": bool(totals.dead),
        "topic_enqueue": number_format.format_rate(totals.topic_enqueue),
        "in_flight": number_format.format_integer(totals.in_flight),
        "consumers": number_format.pluralize_count(totals.consumers, "consumer"),
        "queues": number_format.pluralize_count(totals.queues, "queue"),
        "topics": number_format.pluralize_count(totals.topics, "topic"),
        "attention_html": render_to_string(
            "metrics/attention.html",
            {
                "findings": found[:6],
                "more": found[6:],
                "cluster": picture.cluster,
                "broken": find_broken_links(picture.nodes),
                "disk": health.low_disk(picture),
            },
        ),
        "nodes_html": render_to_string("topology/nodes.html", {"nodes": [NodeSummary(each) for each in picture.nodes]}),
        "gauges_html": render_to_string("metrics/gauges.html", {"gauges": gauges_of(picture.nodes)}),
        "exists": bool(picture.stats),
        "mark": picture.past[-1] and chart_mark(picture.past[-1]) if picture.past else None,
    }


def list_cells(picture: BrokerSnapshot, topic: LiveChannel, sees: Sees = everything) -> Cells:
    """Return the cells of the rows shown, by row, and how many destinations of the kind there are."""
    rows: dict[str, dict[str, Any]] = {}
    for destination in topic.destinations:
        stats = picture.stats.get(destination)
        if stats is None or not sees(destination):
            rows[destination.name] = {"gone": True}
        else:
            rows[destination.name] = {column.name: text for column, text in DestinationRow(picture, stats).cells}
    return {"count": sum(bool(sees(each.destination)) for each in picture.of_kind(topic.kind)), "rows": rows}


def destination_cells(picture: BrokerSnapshot, topic: LiveChannel, sees: Sees = everything) -> Cells:
    """Return all numbers of one destination, its consumers and a point of its chart."""
    destination = Destination(DestinationKind(topic.name), topic.argument)
    stats = picture.stats.get(destination)
    if stats is None or not sees(destination):
        return {"gone": True}
    home = owner_node(picture.nodes, destination)
    return {**numbers_of(picture, stats), "home": home, "mark": chart_mark(mark_of(picture, stats))}


def numbers_of(picture: BrokerSnapshot, stats: DestinationStats) -> Cells:
    """Every column of a destination as text."""
    row = DestinationRow(picture, stats)
    return {column.name: column.format(row) for column in COLUMNS.values()}


def mark_of(picture: BrokerSnapshot, stats: DestinationStats) -> ChartPoint:
    """Return the current depth and rates of a destination as a chart point."""
    rates = picture.rates(stats.destination)
    out = rates.dequeue if stats.destination.kind is DestinationKind.QUEUE else rates.dispatch
    return ChartPoint(picture.at, stats.QueueSize, rates.enqueue, out)


def chart_mark(mark: ChartPoint) -> list[float]:
    """Return a point as charts read it: milliseconds, pending, in, out."""
    return [round(mark.at * 1000), mark.pending, round(mark.enqueue, 2), round(mark.dequeue, 2)]


def connections_cells(picture: BrokerSnapshot, topic: LiveChannel, knows: Knows = everything) -> Cells:
    """Return the numbers of the connections shown, by id, and how many there are."""
    by_id = {each.stats.id: each.stats for each in connection_rows(picture) if knows(each.stats.id)}
    rows = {id: _connection_cells(by_id[id]) if id in by_id else {"gone": True} for id in topic.rows}
    return {"count": len(by_id), "rows": rows}


def _connection_cells(stats: ConnectionStats) -> Cells:
    return {
        "sent": number_format.format_integer(stats.sent),
        "delivered": number_format.format_integer(stats.delivered),
    }


def subscribers_cells(picture: BrokerSnapshot, topic: LiveChannel, knows: Knows = everything) -> Cells:
    """Return the numbers of the named subscriptions shown, by the names of their logs, and how many there are."""
    known = {each.name: stats for each, stats in picture.subscriptions.items() if knows(each.name)}
    rows = {}
    for name in topic.rows:
        stats = known.get(name)
        rows[name] = (
            {"gone": True}
            if stats is None
            else {
                "pending": number_format.format_integer(stats.QueueSize),
                "flight": number_format.format_integer(stats.InFlightCount),
                "dispatched": number_format.format_integer(stats.DispatchCount),
                "enqueued": number_format.format_integer(stats.EnqueueCount),
                "dequeued": number_format.format_integer(stats.DequeueCount),
            }
        )
    return {"count": len(known), "rows": rows}


def topology_cells(picture: BrokerSnapshot, topic: LiveChannel, sees: Sees = everything) -> Cells:
    """Return the cells of bridges and their states, and whether the diagram has to be drawn again."""
    found = build_diagram(settings.SLUICE.broker_name, picture.nodes, picture.cluster, sees is everything)
    return {**found.cells, "changed": bool(topic.argument) and found.shape != topic.argument}


#: Topics made of the picture alone, and of what one sees of it: destinations, or of KNOWN rows.
CELLS: dict[str, Callable[[BrokerSnapshot, LiveChannel, Callable[[Any], bool]], Cells]] = {
    "overview": overview_cells,
    "list": list_cells,
    "queue": destination_cells,
    "topic": destination_cells,
    "connections": connections_cells,
    "graph": lambda picture, topic, sees=everything: graph_cells(picture, topic.rows, sees),
    "subscribers": subscribers_cells,
    "topology": topology_cells,
}


#: Topics whose rows are no destinations: which of them somebody knows of who does not see everything. Asks a node.
VISIBLE_ROWS: dict[str, Callable[[BrokerSnapshot, Sees], Container[str]]] = {
    "connections": lambda picture, sees: visible_connection_ids(sees),
    "subscribers": lambda picture, sees: visible_subscription_logs(picture.subscriptions, sees),
}


def run_cells(user: AnyUser, topic: LiveChannel) -> Cells:
    """Return the cells of a run of an analysis, or of the runs in the rows shown, if the user may see them."""
    return run_service.cells(topic.argument, topic.rows, lambda run: is_readable(run, user))


def job_cells(user: AnyUser, topic: LiveChannel) -> Cells:
    """Return the cells of a job, or of the jobs in the rows shown, if the user may browse their queues."""
    sees = visible(user, Permission.BROWSE)
    cells = job_service.live_cells(topic.argument, topic.rows, sees)
    if topic.argument and cells:
        cells |= failed_again.live_cells(job_service.find_jobs([topic.argument])[0])
    return cells


def alert_cells(user: AnyUser, topic: LiveChannel) -> Cells:
    """Return the cells of firing alerts that the user may see."""
    return active_alerts.cells(user)


def bell_cells(user: AnyUser, topic: LiveChannel) -> Cells:
    """Return the cells of the user's notifications."""
    return notifications.cells(user)


def cluster_cells(user: AnyUser, topic: LiveChannel) -> Cells:
    """Return the cluster, of which a node is asked."""
    context = cluster_context(cluster_now(), visible(user) is everything)
    return {"cluster_html": render_to_string("topology/cluster.html", context)}


#: Topics that are read from the database, or asked of a node, now and then, and when somebody says that one moved on.
FROM_DATABASE: dict[str, Callable[[AnyUser, LiveChannel], Cells]] = {
    "run": run_cells,
    "runs": run_cells,
    "job": job_cells,
    "jobs": job_cells,
    "alerts": alert_cells,
    "bell": bell_cells,
    "cluster": cluster_cells,
}

#: The right each topic needs.
PERMISSIONS: dict[str, Permission] = {
    **dict.fromkeys(CELLS, Permission.SEE),
    "run": Permission.SEE,
    "runs": Permission.SEE,
    "job": Permission.BROWSE,
    "jobs": Permission.BROWSE,
    "alerts": Permission.SEE,
    "bell": Permission.SEE,
    "cluster": Permission.SEE,
}
