"""Analyses of the recorded traffic: what can be asked, runs, results, schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django_celery_beat.models import PeriodicTask
from ninja import Router, Schema, Status

from brokerapp.errors import RequestRefused
from console import audit, runs, schedules
from console.access import require_everywhere
from console.analyses import catalogue, request_for
from console.api.operations import operation
from console.api.paging import Paged, page_of
from console.models import AnalysisRun
from console.rights import Verb

router = Router(tags=["analyses"])


class ParameterOut(Schema):
    """What a request may say."""

    name: str
    default: str
    choices: list[tuple[str, str]]


class AnalysisOut(Schema):
    """A question that can be asked."""

    kind: str
    title: str
    question: str
    parameters: list[ParameterOut]


class NewRun(Schema):
    """What to ask."""

    kind: str
    parameters: dict[str, str] = {}


class RunOut(Schema):
    """How a run stands."""

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


class RunPage(Schema):
    """A page of runs, newest first."""

    items: list[RunOut]
    total: int
    page: int
    pages: int


class ScheduleOut(Schema):
    """A schedule."""

    id: int
    name: str
    rhythm: str
    enabled: bool
    next_run: datetime | None


class NewSchedule(Schema):
    """An analysis to run again and again."""

    kind: str
    window: str = ""
    rhythm: str


class ScheduleState(Schema):
    """Whether it runs."""

    enabled: bool


@operation(router, "GET", "", Verb.SEE, response=list[AnalysisOut])
def list_analyses(request: HttpRequest) -> Any:
    """What can be asked of the recorded traffic."""
    return catalogue()


@operation(router, "GET", "/runs", Verb.SEE, response=RunPage)
def list_runs(request: HttpRequest, query: Paged) -> Any:
    """List runs, newest first."""
    return page_of(AnalysisRun.objects.all(), query)


@operation(router, "POST", "/runs", Verb.ANALYSE, response={201: RunOut})
def start_run(request: HttpRequest, wanted: NewRun) -> Any:
    """Start an analysis."""
    title, parameters = request_for(wanted.kind, wanted.parameters)
    with audit.recording(request, "analyse", wanted.kind) as change:
        run = runs.start(wanted.kind, title, parameters, request.user.get_username())
        change.after = {"run": str(run.id), **parameters}
    return Status(201, run)


@operation(router, "GET", "/runs/{uuid:run_id}", Verb.SEE, response=RunOut)
def get_run(request: HttpRequest, run_id: UUID) -> Any:
    """One run."""
    return get_object_or_404(AnalysisRun, id=run_id)


@operation(router, "GET", "/runs/{uuid:run_id}/result", Verb.SEE, response=dict[str, Any])
def get_result(request: HttpRequest, run_id: UUID) -> Any:
    """What a run found: charts, tables and a sentence."""
    require_everywhere(request, Verb.SEE)
    run = get_object_or_404(AnalysisRun, id=run_id)
    result = runs.result_of(run) if run.state == AnalysisRun.State.DONE else None
    if result is None:
        raise Http404(f"The run {run_id} has no result: it is {run.state}.")
    return result


@operation(router, "POST", "/runs/{uuid:run_id}/cancel", Verb.ANALYSE, response=RunOut)
def cancel_run(request: HttpRequest, run_id: UUID) -> Any:
    """Stop a run."""
    run = get_object_or_404(AnalysisRun, id=run_id)
    if not run.is_final:
        with audit.recording(request, "cancel", f"run {run.id}", before={"state": run.state}):
            runs.cancel(run, request.user.get_username())
        run.refresh_from_db()
    return run


@operation(router, "GET", "/schedules", Verb.SEE, response=list[ScheduleOut])
def list_schedules(request: HttpRequest) -> Any:
    """Schedules of analyses."""
    return [
        {"id": each.task.pk, "name": each.task.name, "rhythm": each.rhythm, "enabled": each.task.enabled,
         "next_run": each.next_run}
        for each in schedules.schedules()
    ]  # fmt: skip


@operation(router, "POST", "/schedules", Verb.SCHEDULE, response={201: dict[str, Any]})
def create_schedule(request: HttpRequest, wanted: NewSchedule) -> Any:
    """Have an analysis run again and again."""
    if wanted.rhythm not in schedules.RHYTHMS:
        raise RequestRefused(f"rhythm: {wanted.rhythm!r} is not one of {', '.join(schedules.RHYTHMS)}")
    with audit.recording(request, "schedule", wanted.kind) as change:
        task = schedules.add(wanted.kind, wanted.window, wanted.rhythm, request.user.get_username())
        change.after = {"name": task.name}
    return Status(201, {"id": task.pk, "name": task.name})


@operation(router, "PUT", "/schedules/{int:schedule_id}", Verb.SCHEDULE, response=ScheduleState)
def switch_schedule(request: HttpRequest, schedule_id: int, state: ScheduleState) -> Any:
    """Switch a schedule on or off."""
    task = get_object_or_404(PeriodicTask, id=schedule_id, task=schedules.TASK)
    with audit.recording(request, "switch schedule", task.name, before={"enabled": task.enabled}) as change:
        task.enabled = state.enabled
        task.save()
        change.after = {"enabled": task.enabled}
    return state


@operation(router, "DELETE", "/schedules/{int:schedule_id}", Verb.SCHEDULE, response={204: None})
def delete_schedule(request: HttpRequest, schedule_id: int) -> Any:
    """Delete a schedule."""
    task = get_object_or_404(PeriodicTask, id=schedule_id, task=schedules.TASK)
    with audit.recording(request, "delete schedule", task.name):
        task.delete()
    return Status(204, None)
