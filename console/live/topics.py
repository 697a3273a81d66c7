"""What a page can watch: each topic turns a picture into cells, texts by name, as its page was rendered with.

A cell whose name ends in `_html` is markup rendered by a template; `mark` is a point of a chart: time in milliseconds,
pending, in and out. All others are texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from brokerapp.destination import Destination, Kind
from brokerapp.snapshot import DestinationStats
from console import figures, health, runs
from console.access import AnyUser, Verb, visible
from console.connections import connections_of, consumers_of
from console.listing import COLUMNS, row_of
from console.live.graph_cells import graph_cells
from console.live.picture import Mark, Picture
from console.nodes import NodeFacts
from console.repair import jobs

Cells = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Topic:
    """A subscription's topic: `name`, or `name:argument`; `rows` are the rows the page shows, where it is a list."""

    name: str
    argument: str = ""
    rows: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str, rows: tuple[str, ...] = ()) -> Topic | None:
        """The topic a client names; None when there is none such."""
        name, _, argument = text.partition(":")
        topic = Topic(name, argument, rows)
        return topic if name in RIGHTS else None

    def __str__(self) -> str:
        return f"{self.name}:{self.argument}" if self.argument else self.name


def overview_cells(picture: Picture, topic: Topic) -> Cells:
    """Totals, the health sentence, what needs attention and a point of the chart."""
    found = health.findings(picture)
    verdict = health.verdict(picture, found)
    totals = picture.totals
    return {
        "state": verdict.state,
        "sentence": verdict.sentence,
        "enqueue": figures.rate(totals.enqueue),
        "dequeue": figures.rate(totals.dequeue),
        "pending": figures.whole(totals.pending),
        "dead": figures.whole(totals.dead),
        "has_dead": bool(totals.dead),
        "topic_enqueue": figures.rate(totals.topic_enqueue),
        "in_flight": figures.whole(totals.in_flight),
        "consumers": figures.counted(totals.consumers, "consumer"),
        "queues": figures.counted(totals.queues, "queue"),
        "topics": figures.counted(totals.topics, "topic"),
        "attention_html": render_to_string("console/parts/attention.html", {"findings": found[:6], "more": found[6:]}),
        "nodes_html": render_to_string(
            "console/parts/nodes.html", {"nodes": [NodeFacts(each) for each in picture.nodes]}
        ),
        "exists": bool(picture.stats),
        "mark": picture.past[-1] and chart_mark(picture.past[-1]) if picture.past else None,
    }


def list_cells(picture: Picture, topic: Topic) -> Cells:
    """The cells of the rows shown, each named `ROW#COLUMN`, and how many destinations of the kind there are."""
    kind = Kind.QUEUE if topic.argument.startswith("queues") else Kind.TOPIC
    cells: Cells = {"count": len(picture.of_kind(kind))}
    for name in topic.rows:
        stats = picture.stats.get(Destination(kind, name))
        if stats is None:
            cells[f"{name}#gone"] = True
            continue
        row = row_of(picture, stats)
        cells.update({f"{name}#{column.name}": text for column, text in row.cells})
        cells[f"{name}#spark"] = row.spark
    return cells


def destination_cells(picture: Picture, topic: Topic) -> Cells:
    """All numbers of one destination, its consumers and a point of its chart."""
    destination = Destination(Kind(topic.name), topic.argument)
    stats = picture.stats.get(destination)
    if stats is None:
        return {"gone": True}
    consumers = consumers_of(picture, destination)
    return {
        **numbers_of(picture, stats),
        "consumers_html": render_to_string("console/parts/consumers.html", {"consumers": consumers}),
        "mark": chart_mark(mark_of(picture, stats)),
    }


def numbers_of(picture: Picture, stats: DestinationStats) -> Cells:
    """Every column of a destination as text."""
    rates = picture.rates(stats.destination)
    return {column.name: column.text(column.value(stats, rates)) for column in COLUMNS.values()}


def mark_of(picture: Picture, stats: DestinationStats) -> Mark:
    """Where a destination stands now, as a point of its chart."""
    rates = picture.rates(stats.destination)
    out = rates.dequeue if stats.destination.kind is Kind.QUEUE else rates.dispatch
    return Mark(picture.at, stats.QueueSize, rates.enqueue, out)


def chart_mark(mark: Mark) -> list[float]:
    """A point as charts read it: milliseconds, pending, in, out."""
    return [round(mark.at * 1000), mark.pending, round(mark.enqueue, 2), round(mark.dequeue, 2)]


def connections_cells(picture: Picture, topic: Topic) -> Cells:
    """The table of connections."""
    connections = connections_of(picture)
    return {
        "count": figures.counted(len(connections), "connection"),
        "connections_html": render_to_string("console/parts/connections.html", {"connections": connections[:500]}),
    }


#: Topics made of the picture alone.
CELLS: dict[str, Callable[[Picture, Topic], Cells]] = {
    "overview": overview_cells,
    "list": list_cells,
    "queue": destination_cells,
    "topic": destination_cells,
    "connections": connections_cells,
    "graph": graph_cells,
}


def run_cells(user: AnyUser, topic: Topic) -> Cells:
    """One run of an analysis, or those of the rows shown."""
    return runs.cells(topic.argument, topic.rows)


def job_cells(user: AnyUser, topic: Topic) -> Cells:
    """One job on messages, or those of the rows shown; of queues that the user may browse."""
    return jobs.cells(topic.argument, topic.rows, visible(user, Verb.BROWSE))


#: Topics that are read from the database, now and then, and when somebody says that something moved on.
FROM_DATABASE: dict[str, Callable[[AnyUser, Topic], Cells]] = {
    "run": run_cells,
    "runs": run_cells,
    "job": job_cells,
    "jobs": job_cells,
}

#: The right each topic needs.
RIGHTS: dict[str, Verb] = {
    **dict.fromkeys(CELLS, Verb.SEE),
    "run": Verb.SEE,
    "runs": Verb.SEE,
    "job": Verb.BROWSE,
    "jobs": Verb.BROWSE,
}
