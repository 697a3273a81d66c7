"""Dead letters in one place: what failed, where, since when, and the way back."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access.permissions import Verb, has_permission, permission_required, visible
from console.accounts.impersonation import look_of
from console.messages.dead_letter_groups import BARS, histogram
from console.messages.dead_letter_survey import survey_for
from console.messages.jobs import job_service
from console.messages.jobs.models import Job
from console.messages.jobs.spec import FEW

#: Times that the trend can show, in words and seconds.
WINDOWS = (("1h", "Hour", 3600), ("24h", "Day", 86400), ("7d", "Week", 7 * 86400), ("30d", "Month", 30 * 86400))
#: What the groups can be sorted by.
ORDERS = (("last", "Newest"), ("count", "Most"), ("first", "Oldest"))
#: Groups shown on a page.
PAGE = 50
#: The box of the trend, in its own units.
WIDTH, HEIGHT = 960, 120
#: That of a group's trend.
SPARK_WIDTH, SPARK_HEIGHT = 100, 24
#: Session key: when this user was here before.
SEEN = "dlq_seen"


@require_GET
@permission_required(Verb.BROWSE)
def dead_letters(request: HttpRequest) -> HttpResponse:
    """All dead-letter queues that one may browse, their messages in groups of those that failed alike."""
    found, sees = survey_for(request.user), visible(request.user, Verb.BROWSE)
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
    if look_of(request.user) is None:  # when somebody else was here last the session does not know
        seen_ms, request.session[SEEN] = request.session.get(SEEN, 0), now_ms
    context = {
        "survey": found, "page": page, "query": _url(text, order, window)[1:], "text": text, "order": order,
        "window": window, "rows": [_row(request, each, since_ms, now_ms, seen_ms) for each in page],
        "windows": [(label, _url(text, order, name), name == window) for name, label, _ in WINDOWS],
        "orders": [(label, _url(text, name, window), name == order) for name, label in ORDERS],
        "trend": _bars(counts, WIDTH, HEIGHT), "steps": _steps(counts, since_ms, now_ms),
        "since": datetime.fromtimestamp(since_ms / 1000, UTC), "until": datetime.fromtimestamp(now_ms / 1000, UTC),
        "recent": sum(since_ms <= each <= now_ms for each in found.times),
        "jobs": [job for job in job_service.listed(Job.objects.exclude(state__in=Job.FINAL))[:20] if sees(job.source)],
        "few": FEW,
    }  # fmt: skip
    return render(request, "messages/dead_letters.html", context)


def _row(request: HttpRequest, cluster, since_ms: float, now_ms: float, seen_ms: float) -> dict:
    return {
        "cluster": cluster,
        "spark": _bars(cluster.bars(since_ms, now_ms, BARS // 2), SPARK_WIDTH, SPARK_HEIGHT),
        "is_new": 0 < seen_ms < cluster.first_ms < math.inf,
        "browse": urlencode({"selector": cluster.selector}),
        "retry": urlencode({"action": "retry", "selector": cluster.selector}),
        "may_retry": has_permission(request.user, Verb.RESUBMIT, cluster.queue),
    }


def _bars(counts: list[int], width: int, height: int) -> list[tuple[str, str, str, str, int]]:
    """Bars of a picture: left edge, top, width, height, and what they stand for."""
    top, step = max(counts, default=0) or 1, width / len(counts)
    return [
        (f"{place * step:.1f}", f"{height - tall:.1f}", f"{max(1.0, step - 2):.1f}", f"{tall:.1f}", count)
        for place, count in enumerate(counts)
        if (tall := (max(2.0, count / top * (height - 4)) if count else 0.0))
    ]


def _steps(counts: list[int], since_ms: float, until_ms: float) -> list[tuple[datetime, int]]:
    """The same as a table: when each part of the time begins in which any failed, the latest first."""
    width = (until_ms - since_ms) / len(counts)
    found = [(datetime.fromtimestamp((since_ms + place * width) / 1000, UTC), n) for place, n in enumerate(counts) if n]
    return found[::-1]


def _url(text: str, order: str, window: str) -> str:
    parts = {"q": text, "sort": order if order != "last" else "", "window": window if window != "24h" else ""}
    return "?" + urlencode({name: value for name, value in parts.items() if value})
