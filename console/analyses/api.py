"""Analyses of the recorded traffic: what can be asked, runs, results."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from analytics.requests.catalogue import ANALYSES
from console.access.permissions import require
from console.access.roles import Permission
from console.analyses import run_service, tables
from console.analyses.models import AnalysisRun
from console.analyses.questions import catalogue, get_run_or_404, readable_runs, request_for, scope_of
from console.analyses.time_range_form import requested_window
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, Paged, page_of
from console.audit import trail

router = Router(tags=["analyses"])

SINCE_HELP = (
    "Start of the time range, in place of the parameter `window`: a time such as 2026-03-29T08:00Z (UTC without an"
    " offset), or a duration before now such as 24h"
)
UNTIL_HELP = "End of the time range, in the same form; empty: now"


class ParameterOut(Schema):
    """A parameter of an analysis."""

    name: str
    default: str
    choices: list[tuple[str, str]]


class AnalysisOut(Schema):
    """An analysis in the catalogue."""

    kind: str
    title: str
    question: str
    parameters: list[ParameterOut]


class RunIn(RequestBody):
    """An analysis to run, with its parameters."""

    kind: str
    parameters: dict[str, str] = {}
    since: str = Field("", description=SINCE_HELP)
    until: str = Field("", description=UNTIL_HELP)


class RunOut(Schema):
    """The state of a run."""

    id: UUID
    kind: str
    title: str
    request: dict[str, Any]
    state: str
    stage: str
    progress: float
    reason: str
    sentence: str
    asked_by: str
    created: datetime
    started: datetime | None
    finished: datetime | None
    pinned: bool


class PinIn(RequestBody):
    """Return whether a run is exempt from cleanup."""

    pinned: bool


@operation(router, "GET", "", Permission.SEE, response=list[AnalysisOut])
def list_analyses(request: HttpRequest) -> Any:
    """List the analyses in the catalogue."""
    return catalogue()


class BrokerTablesOut(Schema):
    """The tables of one broker. Times are microseconds since the epoch."""

    broker: str
    version: int
    computed_until_us: int | None
    hours: int
    days: int
    bytes: int
    events: int
    files_set_aside: int
    pending_hours: int
    pending_events: int


class LastBuildOut(Schema):
    """How the last build of tables went; `error` is empty if it did not fail."""

    finished_us: int
    seconds: float
    hours: int
    events: int
    error: str


class CurrentHoursOut(Schema):
    """Hours that are counted from the stream of events. `behind_seconds`: age of the oldest event not counted."""

    counted_until_us: int | None
    behind_seconds: float | None
    hours: int
    events: int


class TablesOut(Schema):
    """The hourly and daily tables, and their retention in days (0: unlimited).

    `current` is null where hours are not counted from the stream.
    """

    brokers: list[BrokerTablesOut]
    last_build: LastBuildOut | None
    current: CurrentHoursOut | None
    hourly_days: float
    daily_days: float


class RebuildIn(RequestBody):
    """The time range of the hours to compute again."""

    since: datetime
    until: datetime


class RebuildOut(Schema):
    """The number of hours that will be computed again."""

    hours: int


@operation(router, "GET", "/tables", Permission.SEE, response=TablesOut)
def get_tables(request: HttpRequest) -> Any:
    """Get the state of the hourly and daily tables of recorded traffic."""
    return asdict(tables.tables_state())


@operation(router, "POST", "/tables/rebuild", Permission.ANALYSE, response=RebuildOut)
def rebuild_tables(request: HttpRequest, wanted: RebuildIn) -> Any:
    """Compute the hourly and daily tables of a time range again."""
    since, until = (each if each.tzinfo else each.replace(tzinfo=UTC) for each in (wanted.since, wanted.until))
    return {"hours": tables.rebuild(request, since, until)}


@operation(router, "GET", "/runs", Permission.SEE, response=Page[RunOut])
def list_runs(request: HttpRequest, query: Paged) -> Any:
    """List runs, newest first."""
    page = page_of(readable_runs(AnalysisRun.objects.all(), request.user), query)
    run_service.load_progress(page["items"])
    return page


@operation(router, "POST", "/runs", Permission.ANALYSE, response={201: RunOut})
def start_run(request: HttpRequest, wanted: RunIn) -> Any:
    """Start an analysis."""
    analysis = ANALYSES.get(wanted.kind)
    window = requested_window(wanted.parameters.get("window"), wanted.since, wanted.until, analysis)
    title, parameters = request_for(wanted.kind, wanted.parameters, window)
    for place in scope_of(wanted.kind, parameters):
        require(request, Permission.ANALYSE, place)
        require(request, Permission.SEE, place)
    with trail.recording(request, "analyse", wanted.kind) as change:
        run = run_service.start(wanted.kind, title, parameters, request.user.get_username())
        change.after = {"run": str(run.id), **parameters}
    return Status(201, run)


@operation(router, "GET", "/runs/{uuid:run_id}", Permission.SEE, response=RunOut)
def get_run(request: HttpRequest, run_id: UUID) -> Any:
    """Get a run."""
    run = get_run_or_404(request, str(run_id))
    run_service.load_progress([run])
    return run


@operation(router, "GET", "/runs/{uuid:run_id}/result", Permission.SEE, response=dict[str, Any])
def get_result(request: HttpRequest, run_id: UUID) -> Any:
    """Get the result of a run: summary, charts and tables."""
    run = get_run_or_404(request, str(run_id))
    result = run_service.result_of(run) if run.state == AnalysisRun.State.DONE else None
    if result is None:
        raise Http404(f"Run {run_id} has no result (state: {run.state}).")
    return result


@operation(router, "POST", "/runs/{uuid:run_id}/cancel", Permission.ANALYSE, response=RunOut)
def cancel_run(request: HttpRequest, run_id: UUID) -> Any:
    """Cancel a run."""
    run = get_run_or_404(request, str(run_id))
    if not run.is_final:
        with trail.recording(request, "cancel", f"run {run.id}", before={"state": run.state}):
            run_service.cancel(run, request.user.get_username())
        run.refresh_from_db()
    return run


@operation(router, "PUT", "/runs/{uuid:run_id}/pin", Permission.ANALYSE, response=RunOut)
def pin_run(request: HttpRequest, run_id: UUID, wanted: PinIn) -> Any:
    """Pin or unpin a run. Pinned runs are exempt from cleanup."""
    run = get_run_or_404(request, str(run_id))
    run_service.pin(request, run, wanted.pinned)
    return run
