"""REST API of health and metrics over time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import BeforeValidator, Field

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.version import VERSION
from console.access.permissions import require, visible
from console.access.roles import Permission
from console.api.common.inputs import Seconds
from console.api.common.operations import operation
from console.api.common.paging import Page, PageQuery, Text, page_of
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.metrics import health, rollup_history
from console.metrics.charts.chart_data import chart_of
from console.metrics.charts_history import ChartWindow
from console.metrics.views.depths import DepthsMoment

router = Router(tags=["watching"])

#: Things that need attention, the most harmful ones, that one answer names.
MOST = 100


class AttentionOut(Schema):
    """An issue that needs attention."""

    destination: Text
    urgency: Annotated[Literal["note", "look", "act"], BeforeValidator(lambda urgency: urgency.name.lower())]
    label: str
    sentence: str


class TotalsOut(Schema):
    """Sums over what the caller sees. Rates are of queues, messages a second."""

    queues: int
    topics: int
    pending: int = Field(description="Messages in queues, without dead letters")
    dead: int
    in_flight: int
    consumers: int
    enqueue: float
    dequeue: float
    topic_enqueue: float


class OverviewOut(Schema):
    """The broker's health, totals and issues, and the version of Sluice."""

    version: str
    state: Literal["good", "look", "act", "lost"]
    sentence: str
    totals: TotalsOut
    attention: list[AttentionOut] = Field(description=f"Largest number of affected messages first, at most {MOST}")
    attention_total: int


class HistoryQuery(Schema):
    """A destination and a time range."""

    destination: str = Field("", description="Destination such as `queue://orders`; empty: the broker")
    window: Literal["15m", "1h", "24h", "7d", "30d"] = "15m"
    from_: Seconds | None = Field(
        None, alias="from", description="Unix time in seconds; with `to`, instead of `window`"
    )
    to: Seconds | None = None


class PointOut(Schema):
    """Depth and rates at one time; topics have no depth."""

    time_ms: int
    pending: float | None
    rate_in: float
    rate_out: float


class EventOut(Schema):
    """An event in the time range."""

    time_ms: int
    kind: Literal["node", "routing", "change", "alert"]
    text: str


class HistoryOut(Schema):
    """Points of a chart, oldest first, with gaps where nothing was recorded."""

    start_ms: int
    end_ms: int
    points: list[PointOut]
    events: list[EventOut]


class DepthOut(Schema):
    """Past and current depth of a queue or subscription; `now` is null if it no longer exists."""

    destination: Text
    depth: int
    now: int | None


class DepthsOut(Page[DepthOut]):
    """Depths at one time, the deepest first. `noted`: when they were recorded; null: no data."""

    noted: datetime | None


class DepthsQuery(PageQuery):
    """Query of the depths at a past time."""

    at: str = Field(description="Date and time, such as `2026-11-21T07:00Z`")


@operation(router, "GET", "/overview", Permission.SEE, response=OverviewOut)
def get_overview(request: HttpRequest) -> Any:
    """Get the health of the broker, totals and issues, and the version of Sluice."""
    picture, sees = mirror().current(), visible(request.user)
    found = health.findings(picture, sees)
    seen = visible_snapshot(picture, sees)
    verdict = health.summarize(seen, found)
    return {
        "version": VERSION, "state": verdict.state, "sentence": verdict.sentence, "totals": seen.totals,
        "attention": found[:MOST], "attention_total": len(found),
    }  # fmt: skip


@operation(router, "GET", "/history", Permission.SEE, response=HistoryOut)
def get_history(request: HttpRequest, query: Annotated[HistoryQuery, Query()]) -> Any:
    """Get depth and rates over time, of the broker or one destination."""
    destination = Destination.parse(query.destination) if query.destination else None
    if destination is not None:
        require(request, Permission.SEE, destination)
    chart = chart_of(request, ChartWindow.read(request.GET, time.time()), destination)
    names = ("time_ms", "pending", "rate_in", "rate_out")
    return {
        "start_ms": chart["start"],
        "end_ms": chart["end"],
        "points": [dict(zip(names, mark, strict=True)) for mark in chart["marks"]],
        "events": [{"time_ms": at, "kind": kind, "text": text} for at, kind, text, _url in chart["events"]],
    }


@operation(router, "GET", "/depths", Permission.SEE, response=DepthsOut)
def get_depths(request: HttpRequest, query: Annotated[DepthsQuery, Query()]) -> Any:
    """Get the depths at a past time."""
    moment = DepthsMoment.read(query.at, datetime.now(UTC), "UTC")
    if moment.wrong:
        raise RequestRefused(f"at: {moment.wrong}")
    found, stats = rollup_history.rollups().depths_at(int(moment.at.timestamp())), mirror().current().stats

    def now(destination: Destination) -> int | None:
        return stats[destination].QueueSize if destination in stats else None

    rows = rollup_history.past_depths(found.of, now, visible(request.user)) if found else []
    return page_of(rows, query) | {"noted": datetime.fromtimestamp(found.noted, UTC) if found else None}
