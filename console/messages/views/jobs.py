"""Pages of jobs: the list, one job with its outcomes, and the actions that control it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, has_permission, permission_required, visible
from console.messages.jobs import failed_again, job_service, requests
from console.messages.jobs.models import Job, JobOutcome
from console.ui.formatting.url_query import parse_seq, query_string

State, Outcome = Job.State, JobOutcome.Outcome

#: Rows of a page: of the list of jobs, and of the outcomes of a job.
PAGE, OUTCOMES = 30, 100
#: Jobs read for one page; those of hidden queues are skipped.
MAX_SCANNED = 1_000
#: Filters of the list: name in the URL, label, condition.
FILTERS: dict[str, tuple[str, Q]] = {
    "": ("All", Q()),
    "open": ("Active", ~Q(state__in=Job.FINAL)),
    "asked": ("Awaiting approval", Q(state=State.ASKED)),
    "trouble": ("With failures", Q(failed__gt=0) | Q(state=State.FAILED)),
}


@require_GET
@permission_required(Permission.BROWSE)
def job_list(request: HttpRequest) -> HttpResponse:
    """Show a page of jobs on queues that the user may browse, newest first."""
    sees = visible(request.user, Permission.BROWSE)
    chip = request.GET.get("show", "") if request.GET.get("show", "") in FILTERS else ""
    text = request.GET.get("q", "").strip()
    holds = Q(name__icontains=text) | Q(queue__icontains=text) | Q(asked_by__icontains=text)
    found = [
        job
        for job in job_service.without_edits(Job.objects.filter(FILTERS[chip][1], holds))[:MAX_SCANNED]
        if sees(job.source)
    ]
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page, "rows": [(job, job_service.job_cells(job)) for job in page],
        "chips": [(label, query_string(show=name, q=text), name == chip) for name, (label, _) in FILTERS.items()],
        "chip": chip, "text": text, "query": query_string(show=chip, q=text)[1:],
    }  # fmt: skip
    return render(request, "messages/jobs/list.html", context)


@require_GET
@permission_required(Permission.BROWSE)
def detail(request: HttpRequest, job_id: str) -> HttpResponse:
    """Show one job with the outcome of each message."""
    job = requests.get_job_or_404(request, job_id)
    outcome = request.GET.get("outcome", "")
    after = parse_seq(request.GET.get("after"))
    rows = job.outcomes.filter(seq__gt=after)
    if outcome in Outcome.values:
        rows = rows.filter(outcome=outcome)
    rows = list(rows[: OUTCOMES + 1])
    more = len(rows) > OUTCOMES
    counts = {value: job.outcomes.filter(outcome=value).count() for value in Outcome.values}
    context = {
        "job": job, "outcome": outcome, "after": after,
        "cells": job_service.job_cells(job) | failed_again.cells_of(job),
        "changes": job_service.describe_edit(job, request.user),
        "rows": [(row, job_service.visible_detail(row, visible(request.user))) for row in rows[:OUTCOMES]],
        "next": query_string(outcome=outcome, after=rows[OUTCOMES - 1].seq) if more else "",
        "outcomes": [
            (Outcome(value).label, count, query_string(outcome=value), value == outcome)
            for value, count in counts.items()
            if count
        ],
        "parts": job.parts.all(),
        **(_approval_context(request, job) if job.state == State.ASKED else {}),
    }  # fmt: skip
    return render(request, "messages/jobs/job.html", context)


def _approval_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return the preview that an approver sees."""
    spec = requests.spec_of(job)
    chosen = requests.choose_messages(spec)
    lacked = [
        permission
        for permission in job_service.permissions_to("approve", job)
        if not has_permission(request.user, permission, job.source)
    ]
    return {
        "approval": (lacked or [Permission.BULK])[0].name.lower(),
        "spec": spec, "chosen": chosen, "impact": requests.impact_of(request, spec, chosen),
        "preview": requests.first_preview(request, spec, chosen),
    }  # fmt: skip


@require_POST
@permission_required(Permission.BROWSE)
def control(request: HttpRequest, job_id: str, action: str) -> HttpResponse:
    """Approve, pause, resume, throttle or cancel a job, or retry its failed messages."""
    job = requests.get_job_or_404(request, job_id)
    job, is_done = requests.control(request, job, action, _rate(request.POST.get("rate", "")))
    if not is_done:
        messages.error(request, f"No change: the job is {State(job.state).label.lower()}.")
    return redirect("job", job_id=job.id)


def _rate(text: str) -> int:
    if text.strip() in ("", "0"):
        return 0
    if not (text.isdecimal() and len(text) < 7):
        raise RequestRefused(f"rate: {text[:40]!r} must be a number of messages/s")
    return int(text)
