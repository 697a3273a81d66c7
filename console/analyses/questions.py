"""Build requests of analyses for pages and schedules, and decide which runs a user may read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse

from analytics.requests.catalogue import ANALYSES, SQL, AnalysisDefinition, analysis_for
from analytics.requests.parameters import WINDOW
from analytics.requests.request import AnalysisRequest, TimeWindow, seconds_of
from analytics.requests.time_ranges import LINK_FIELDS, SECOND_US
from brokerapp.errors import InvalidDestination, StoreUnavailable
from brokerapp.model.definition_codec import to_json
from brokerapp.model.destination import ANY_REST, Destination
from console.access.permissions import AnyUser, Permission, has_permission, require, visible
from console.access.roles import Scope, everything
from console.analyses.models import AnalysisRun
from console.analyses.sql_access import readable_by, sees_all
from console.broker.gateway import gateway
from console.ui.formatting import time_format

#: Runs looked at for who may know of some only.
MAX_CHECKED = 1_000


def catalogue() -> list[AnalysisDefinition]:
    """Return all analyses that can be asked by themselves."""
    return [each for each in ANALYSES.values() if each.group]


def request_for(kind: str, given: Mapping[str, str], window: TimeWindow | None = None) -> tuple[str, dict[str, Any]]:
    """Return the title of an analysis and its parameters, completed by defaults. Raises RequestRefused.

    An explicit time range takes the place of the parameter for one that ends now.
    """
    analysis = analysis_for(AnalysisRequest.from_dict({"kind": kind}))
    given = given if window is None else {**given, WINDOW.name: ""}
    parameters = {name: value for name, value in analysis.values(given).items() if value}
    if window is not None:
        analysis.refuse_too_long(window)
        del parameters[WINDOW.name]
        parameters |= ends_of(window)
    AnalysisRequest.from_dict({"kind": kind, **parameters})
    return analysis.title, parameters


def ends_of(window: TimeWindow) -> dict[str, int]:
    """Return the fields by which a request has an explicit time range."""
    return {"since_us": window.since_us, "until_us": window.until_us}


def explicit_window(request: Mapping[str, Any]) -> TimeWindow | None:
    """Return the time range that a stored request names; None for one that ended when it was started.

    Requests of reports have both: a time range of a certain length that ends with the edition.
    """
    since_us, until_us = request.get("since_us"), request.get("until_us")
    if WINDOW.name in request or not isinstance(since_us, int) or not isinstance(until_us, int):
        return None
    return TimeWindow(since_us, until_us)


def choice_for(analysis: AnalysisDefinition, seconds: float) -> str:
    """Return the shortest time range offered with this analysis of at least this length, else the longest, or ""."""
    offered = [value for each in analysis.parameters if each.name == "window" for value, _ in each.choices]
    return next((each for each in offered if seconds_of(each) >= seconds), offered[-1] if offered else "")


def is_sql(run: AnalysisRun) -> bool:
    """Return whether a run is one of an SQL statement."""
    return run.kind == SQL


def with_routing(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with the definitions in force now, where the analysis asks for them and the broker answers."""
    analysis = ANALYSES.get(request["kind"])
    if analysis is None or not analysis.reads_routing:
        return dict(request)
    try:
        return {**request, "routing": to_json(gateway().definitions())}
    except StoreUnavailable:  # what needs no definitions is still found
        return dict(request)


def scope_of(kind: str, parameters: Mapping[str, Any]) -> tuple[Destination, ...]:
    """Return the patterns of destinations that an analysis covers: everything, unless its result stays within some."""
    analysis = ANALYSES.get(kind)
    stays = analysis is not None and analysis.stays_within and parameters.get("destination")
    try:
        return Scope.parse(parameters["destination"] if stays else ANY_REST).destinations
    except InvalidDestination:  # what nobody can have a scope for
        return Scope(ANY_REST).destinations


def is_readable(run: AnalysisRun, user: AnyUser) -> bool:
    """Return whether a user may read a run: the user may see all that it covers."""
    if is_sql(run):
        return readable_by(user)(run)
    sees = visible(user)
    return sees is everything or all(map(sees, scope_of(run.kind, run.request)))


def readable_runs(found: QuerySet[AnalysisRun], user: AnyUser) -> QuerySet[AnalysisRun]:
    """Return the runs that the user may read; with limited permissions, only the latest runs are checked."""
    sees = visible(user)
    if sees is everything and sees_all(user):
        return found
    if sees is everything and not has_permission(user, Permission.SQL):
        return found.exclude(kind=SQL)
    may_read_sql = readable_by(user)
    readable = [
        run.pk
        for run in found[:MAX_CHECKED]
        if (may_read_sql(run) if is_sql(run) else all(map(sees, scope_of(run.kind, run.request))))
    ]
    return found.filter(pk__in=readable)


def previous_run(run: AnalysisRun, user: AnyUser) -> AnalysisRun | None:
    """Return the latest finished run of the same question before this one, or else of the same analysis."""
    done = AnalysisRun.objects.filter(kind=run.kind, state=AnalysisRun.State.DONE, created__lt=run.created)
    done = readable_runs(done, user)
    same = done.filter(request=run.request).first()
    return same or (None if is_sql(run) else done.first())  # other statements have nothing to compare


def get_run_or_404(request: HttpRequest, run_id: str) -> AnalysisRun:
    """Return a run that the user may read. Raises Http404, PermissionDenied."""
    run = get_object_or_404(AnalysisRun, id=run_id)
    if is_sql(run):
        require(request, Permission.SQL)
        if not readable_by(request.user)(run):
            raise PermissionDenied("This query was run with permissions that you do not have.")
        return run
    for place in scope_of(run.kind, run.request):
        require(request, Permission.SEE, place)
    return run


def rerun_query(run: AnalysisRun) -> str:
    """Return the query by which forms ask the question of a run again; "" where no form does."""
    analysis = ANALYSES.get(run.kind)
    if analysis is None or not analysis.group:
        return ""
    asked = {each.name: run.request.get(each.name) for each in analysis.parameters}
    if (window := explicit_window(run.request)) is not None:
        asked |= link_fields(window)
    return urlencode({name: value for name, value in asked.items() if isinstance(value, str) and value})


def analyse_url(run: AnalysisRun) -> str:
    """Return the form that asks the question of a run for another time range, which links add; "" without a form."""
    analysis = ANALYSES.get(run.kind)
    if analysis is None or not analysis.group:
        return ""
    asked = {each.name: run.request.get(each.name) for each in analysis.parameters if each.name != WINDOW.name}
    query = urlencode({name: value for name, value in asked.items() if isinstance(value, str) and value})
    return reverse("ask-analysis", kwargs={"kind": run.kind}) + f"?{query}"


def link_fields(window: TimeWindow) -> dict[str, str]:
    """Return the fields by which links carry a time range, in whole seconds that contain it."""
    ends = window.since_us // SECOND_US, -(-window.until_us // SECOND_US)
    return dict(zip(LINK_FIELDS, map(str, ends), strict=True))


def describe_parameters(kind: str, parameters: Mapping[str, Any]) -> str:
    """Return the parameters as a person would say them: `last hour`. Definitions that are judged are no words."""
    window = explicit_window(parameters)
    period = "" if window is None else time_format.format_period(*map(_moment, (window.since_us, window.until_us)))
    parameters = {name: value for name, value in parameters.items() if isinstance(value, str)}
    if kind not in ANALYSES:
        return ", ".join(parameters.values())
    known = {each.name: each for each in ANALYSES[kind].parameters}
    words = (known[name].words(value) for name, value in parameters.items() if name in known)
    return ", ".join(filter(None, (period, *words)))


def _moment(us: int) -> datetime:
    return datetime.fromtimestamp(us / SECOND_US, UTC)
