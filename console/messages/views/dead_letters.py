"""Page of all dead letters in groups by cause and original destination, with a trend."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access.permissions import Permission, has_permission, permission_required, visible
from console.accounts.impersonation import impersonation_of
from console.analyses.window_links import analysis_link
from console.messages.dead_letter_groups import BARS, DeadLetterGroup, histogram
from console.messages.dead_letter_survey import survey_visible
from console.messages.jobs import job_service
from console.messages.jobs.models import Job
from console.messages.jobs.spec import SMALL_JOB
from console.ui.formatting.url_query import query_string

#: Time ranges of the trend: name, label, seconds.
WINDOWS = (("1h", "Hour", 3600), ("24h", "Day", 86400), ("7d", "Week", 7 * 86400), ("30d", "Month", 30 * 86400))
#: Sort orders of the groups: name, label.
SORT_ORDERS = (("last", "Newest"), ("count", "Largest"), ("first", "Oldest"))
#: Groups shown on a page.
PAGE = 50
#: Size of the trend's view box.
WIDTH, HEIGHT = 960, 120
#: Size of a group's trend.
SPARK_WIDTH, SPARK_HEIGHT = 100, 24
#: Session key: time of the user's last visit.
LAST_VISIT = "dlq_seen"


@require_GET
@permission_required(Permission.BROWSE)
def dead_letters(request: HttpRequest) -> HttpResponse:
    """Show the dead letters of all queues that the user may browse, grouped by cause and original destination."""
    found, sees = survey_visible(request.user), visible(request.user, Permission.BROWSE)
    window = request.GET.get("window", "24h")
    seconds = {name: length for name, _, length in WINDOWS}.get(window, 86400)
    now_ms = time.time() * 1000
    since_ms = now_ms - seconds * 1000
    counts = histogram(found.times, since_ms, now_ms)
    order, text = request.GET.get("sort", "last"), request.GET.get("q", "").strip()
    wanted = found.matching(text)
    keys = {"count": lambda each: -each.count, "first": lambda each: each.first_ms}
    if order in keys:
        wanted.sort(key=keys[order])
    page = Paginator(wanted, PAGE).get_page(request.GET.get("page"))
    seen_ms = now_ms
    if impersonation_of(request.user) is None:  # the session belongs to the user who impersonates
        seen_ms, request.session[LAST_VISIT] = request.session.get(LAST_VISIT, 0), now_ms
    open_jobs = job_service.without_edits(Job.objects.exclude(state__in=Job.FINAL))[:20]
    context = {
        "survey": found, "page": page, "query": _url(text, order, window)[1:], "text": text, "order": order,
        "window": window, "rows": [_row(request, each, since_ms, now_ms, seen_ms) for each in page],
        "windows": [(label, _url(text, order, name), name == window) for name, label, _ in WINDOWS],
        "orders": [(label, _url(text, name, window), name == order) for name, label in SORT_ORDERS],
        "trend": _bars(counts, WIDTH, HEIGHT), "steps": _steps(counts, since_ms, now_ms),
        "since": datetime.fromtimestamp(since_ms / 1000, UTC), "until": datetime.fromtimestamp(now_ms / 1000, UTC),
        "recent": sum(since_ms <= each <= now_ms for each in found.times),
        "jobs": [job for job in open_jobs if sees(job.source)],
        "few": SMALL_JOB,
    }  # fmt: skip
    return render(request, "messages/dead_letters.html", context)


def _row(request: HttpRequest, group, since_ms: float, now_ms: float, seen_ms: float) -> dict:
    return {
        "group": group,
        "spark": _bars(group.bars(since_ms, now_ms, BARS // 2), SPARK_WIDTH, SPARK_HEIGHT),
        "is_new": 0 < seen_ms < group.first_ms < math.inf,
        "browse": query_string(selector=group.selector)[1:],
        "retry": query_string(action="retry", selector=group.selector)[1:],
        "analyse": _analysis_url(request, group),
        "may_retry": has_permission(request.user, Permission.RESUBMIT, group.queue),
    }


def _analysis_url(request: HttpRequest, group: DeadLetterGroup) -> str:
    """Return the analysis of causes from the first to the last failure of a group; "" without permission or times."""
    about = group.original_destination
    if group.first is None or group.last is None or not has_permission(request.user, Permission.ANALYSE, about):
        return ""
    return analysis_link("dead-letters", group.first, group.last, about)


def _bars(counts: list[int], width: int, height: int) -> list[tuple[str, str, str, str, int]]:
    """Return the bars of a chart: left, top, width, height, and value."""
    top, step = max(counts, default=0) or 1, width / len(counts)
    return [
        (f"{place * step:.1f}", f"{height - tall:.1f}", f"{max(1.0, step - 2):.1f}", f"{tall:.1f}", count)
        for place, count in enumerate(counts)
        if (tall := (max(2.0, count / top * (height - 4)) if count else 0.0))
    ]


def _steps(counts: list[int], since_ms: float, until_ms: float) -> list[tuple[datetime, int]]:
    """Return the non-empty bars as a table: start time and value, latest first."""
    width = (until_ms - since_ms) / len(counts)
    found = [(datetime.fromtimestamp((since_ms + place * width) / 1000, UTC), n) for place, n in enumerate(counts) if n]
    return found[::-1]


def _url(text: str, order: str, window: str) -> str:
    return query_string(q=text, sort=order if order != "last" else "", window=window if window != "24h" else "")
