"""Run what-if analyses of a draft on recorded traffic, and compare the result with the active version."""

from __future__ import annotations

from datetime import UTC, datetime

from csp.decorators import csp_update
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError
from console.access.permissions import Permission, permission_required, visible
from console.access.roles import everything
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.analyses.time_range_form import CUSTOM, posted_window
from console.audit import trail
from console.routing.drafts.actions import get_draft_or_404
from console.routing.drafts.models import Draft
from console.routing.preview import what_if
from console.ui.staticfiles import PLOTLY_STYLES


@require_GET
@permission_required(Permission.SEE)
@csp_update({"style-src": PLOTLY_STYLES, "img-src": "blob:"})
def show_run(request: HttpRequest, draft_id: int, run_id: str | None = None) -> HttpResponse:
    """Show a what-if run of a draft, the latest one unless named: its progress or its result."""
    draft = get_draft_or_404(request, draft_id)
    every = what_if.runs_of_draft(draft)
    run = next(iter(every), None) if run_id is None else get_object_or_404(_runs_of(draft), pk=run_id)
    context = {
        "draft": draft, "run": run, "earlier": [(each, what_if.describe_window(each)) for each in every if each != run],
        "time_ranges": what_if.time_ranges(),
        "time_range": what_if.time_range_of(run, request.GET), "custom": CUSTOM,
    }  # fmt: skip
    if draft.is_open:
        context["analyse_url"] = reverse("draft-trials", args=[draft.pk])
    context["sees_all"] = visible(request.user) is everything
    if run is not None:
        context |= {"cells": run_service.cells_of(run), "is_old": run.request.get("revision") != str(draft.revision)}
        context |= _result_context(request, run)
    return render(request, "routing/drafts/what_if.html", context)


def _result_context(request: HttpRequest, run: AnalysisRun) -> dict:
    """Return the part of the result that the user may see."""
    result = run_service.result_of(run) if run.state == AnalysisRun.State.DONE else None
    if result is None:
        return {}
    sees = visible(request.user)
    window = result["window"]
    until, fresh = _time(window["until_us"]), _time(result.get("freshness_us"))
    return {
        "result": result,
        "shown": what_if.visible_result(result, sees) if result["tables"] else None,
        "since": _time(window["since_us"]), "until": until,
        "fresh": fresh, "is_behind": fresh is not None and until is not None and fresh < until,
        "began": run_service.recording_start_of(result),
        "missing": run_service.missing_events_of(result),
    }  # fmt: skip


def _time(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)


def _runs_of(draft: Draft):
    return AnalysisRun.objects.filter(kind=what_if.KIND, request__draft=str(draft.pk))


@require_POST
@permission_required(Permission.ANALYSE)
def start_run(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Start a what-if run of a draft."""
    draft = get_draft_or_404(request, draft_id)
    try:
        with trail.recording(request, "try draft", draft.name) as change:
            explicit = posted_window(request.POST)
            window = "" if explicit else request.POST.get("window", "")
            run = what_if.start_draft_run(draft, window, request.user.get_username(), explicit)
            change.after = {"run": str(run.id), **what_if.window_of(run), "revision": draft.revision}
    except BrokerError as error:
        messages.error(request, f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return redirect("draft-trials", draft_id=draft.pk)
    return redirect("draft-trial", draft_id=draft.pk, run_id=run.id)


@require_POST
@permission_required(Permission.ANALYSE)
def cancel_run(request: HttpRequest, draft_id: int, run_id: str) -> HttpResponse:
    """Cancel a what-if run."""
    draft = get_draft_or_404(request, draft_id)
    run = get_object_or_404(_runs_of(draft), pk=run_id)
    if not run.is_final:
        with trail.recording(request, "cancel", f"run {run.id}", before={"state": run.state}):
            run_service.cancel(run, request.user.get_username())
    return redirect("draft-trial", draft_id=draft.pk, run_id=run.id)
