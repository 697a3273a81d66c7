"""Analyses of the recorded traffic: what can be asked, the runs, one run with its result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from csp.decorators import csp_update
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from analytics.requests.catalogue import ANALYSES, AnalysisDefinition, by_group
from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, permission_required, require
from console.analyses import result_tables, run_queue, run_service, time_range_form
from console.analyses.charts import plots
from console.analyses.exports.formats import FORMATS
from console.analyses.models import AnalysisRun
from console.analyses.questions import (
    analyse_url,
    catalogue,
    describe_parameters,
    get_run_or_404,
    previous_run,
    readable_runs,
    request_for,
    rerun_query,
    scope_of,
)
from console.analyses.tables import levels_of
from console.analyses.time_range_form import TimeRangeField
from console.audit import trail
from console.metrics.archive_status import archive_status
from console.ui.staticfiles import PLOTLY_STYLES

#: Runs shown below the catalogue.
LATEST = 6


@require_GET
@permission_required(Permission.SEE)
def analyses(request: HttpRequest) -> HttpResponse:
    """Return the catalogue, and the latest runs."""
    return _page(request)


def _page(request: HttpRequest, error: str = "") -> HttpResponse:
    line, latest = run_queue.waiting_ids(), readable_runs(AnalysisRun.objects.all(), request.user)[:LATEST]
    context = {
        "catalogue": catalogue(),
        "groups": by_group(),
        "rows": [(run, run_service.cells_of(run, line), describe_parameters(run.kind, run.request)) for run in latest],
        "error": error,
        "archived": archive_status(),
    }
    return render(request, "analyses/analyses.html", context, status=400 if error else 200)


@require_GET
@permission_required(Permission.ANALYSE)
def ask(request: HttpRequest, kind: str) -> HttpResponse:
    """Return the form of one question."""
    if kind not in ANALYSES or not ANALYSES[kind].group:
        raise Http404(f"Analysis {kind} not found.")
    given = request.GET.dict()
    return _form(request, ANALYSES[kind], given, time_range_form.field_of_link(ANALYSES[kind], given, time.time()))


def _form(
    request: HttpRequest,
    analysis: AnalysisDefinition,
    given: Mapping[str, str],
    time_range: TimeRangeField,
    error: str = "",
) -> HttpResponse:
    done = AnalysisRun.objects.filter(kind=analysis.kind, state=AnalysisRun.State.DONE)
    last = list(readable_runs(done, request.user)[:3])
    context = {
        "analysis": analysis,
        "cost": run_service.describe_cost(last[0]) if last else "",
        "time_range": time_range,
        "custom": time_range_form.CUSTOM,
        "fields": [(each, given.get(each.name) or each.default) for each in analysis.parameters],
        "last": last,
        "error": error,
    }
    return render(request, "analyses/run_form.html", context, status=400 if error else 200)


@require_POST
@permission_required(Permission.ANALYSE)
def start(request: HttpRequest) -> HttpResponse:
    """Start an analysis and go to its run."""
    kind = request.POST.get("kind", "")
    try:
        window = time_range_form.posted_window(request.POST, ANALYSES.get(kind))
        title, parameters = request_for(kind, request.POST.dict(), window)
    except RequestRefused as error:
        if kind in ANALYSES:
            field = time_range_form.field_of_post(request.POST)
            return _form(request, ANALYSES[kind], request.POST, field, str(error))
        return _page(request, str(error))
    for place in scope_of(kind, parameters):
        require(request, Permission.ANALYSE, place)
        require(request, Permission.SEE, place)
    with trail.recording(request, "analyse", kind) as change:
        run = run_service.start(kind, title, parameters, request.user.get_username())
        change.after = {"run": str(run.id), **parameters}
    return redirect("run", run_id=run.id)


@require_GET
@permission_required(Permission.SEE)
@csp_update({"style-src": PLOTLY_STYLES, "img-src": "blob:"})
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """Show a run: its progress, error or result."""
    found = get_run_or_404(request, run_id)
    result = run_service.result_of(found) if found.state == AnalysisRun.State.DONE else None
    context = {
        "run": found,
        "cells": run_service.cells_of(found),
        "parameters": describe_parameters(found.kind, found.request),
    }
    context["before"] = previous_run(found, request.user) if result else None
    return render(request, "analyses/run.html", context | (_shown(result, found, request.GET) if result else {}))


def _shown(result: dict, run: AnalysisRun, query: Mapping[str, str]) -> dict:
    """Return the result file as the page needs it; times as datetimes."""
    window = result["window"]
    return {
        "result": result,
        "since": _time(window["since_us"]),
        "until": _time(window["until_us"]),
        "fresh": _time(result.get("freshness_us")),
        "began": run_service.recording_start_of(result),
        "missing": run_service.missing_events_of(result),
        "levels": levels_of(result),
        "completeness": run_service.completeness_of(result),
        "again": rerun_query(run),
        "analyse_url": analyse_url(run),
        "files": [table["file"].removesuffix(".parquet") for table in result["tables"] if "file" in table],
        "plots": plots(result),
        "formats": FORMATS.values(),
        "tables": result_tables.result_pages(result, settings.SLUICE.results / str(run.id), query),
    }


def _time(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)


@require_POST
@permission_required(Permission.ANALYSE)
def cancel(request: HttpRequest, run_id: str) -> HttpResponse:
    """Cancel a run and return to its page."""
    found = get_run_or_404(request, run_id)
    if found.is_final:
        messages.warning(request, "The run has already finished.")
    else:
        with trail.recording(request, "cancel", f"run {found.id}", before={"state": found.state}):
            run_service.cancel(found, request.user.get_username())
    return redirect("run", run_id=found.id)
