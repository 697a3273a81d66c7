"""Hourly and daily tables of recorded traffic: their state, and the form that rebuilds a period."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from analytics.requests.parameters import SQL_WINDOW
from analytics.requests.request import TimeWindow, seconds_of
from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, permission_required
from console.analyses import tables as service
from console.analyses import time_range_form
from console.ui.formatting.number_format import pluralize_count


@require_GET
@permission_required(Permission.SEE)
def tables(request: HttpRequest) -> HttpResponse:
    """Return the state of the tables of each broker."""
    return _page(request)


@require_POST
@permission_required(Permission.ANALYSE)
def rebuild(request: HttpRequest) -> HttpResponse:
    """Have a period computed again."""
    try:
        period = time_range_form.posted_window(request.POST) or _latest(request.POST.get(SQL_WINDOW.name, ""))
        since, until = (datetime.fromtimestamp(each / 1e6, UTC) for each in (period.since_us, period.until_us))
        hours = service.rebuild(request, since, until)
    except RequestRefused as error:
        return _page(request, str(error))
    if hours:
        messages.success(request, f"{pluralize_count(hours, 'hour')} scheduled to be rebuilt.")
    else:
        messages.info(request, "No hours rebuilt: no table of this time range has archived events.")
    return redirect("tables")


def _latest(length: str) -> TimeWindow:
    """Return the period of this length that ends now. Raises RequestRefused."""
    if length not in dict(SQL_WINDOW.choices):
        raise RequestRefused(f"{length!r} is not a time range of the form")
    until_us = time.time_ns() // 1000
    return TimeWindow(until_us - seconds_of(length) * 1_000_000, until_us)


def _page(request: HttpRequest, error: str = "") -> HttpResponse:
    state = service.tables_state()
    build = state.last_build
    context = {
        "state": state,
        "rows": [(each, service.moment_of(each.computed_until_us)) for each in state.brokers],
        "built": build and service.moment_of(build.finished_us),
        "counted": state.current and service.moment_of(state.current.counted_until_us),
        "error": error,
        "windows": SQL_WINDOW.choices,
        "custom": time_range_form.CUSTOM,
        "time_range": time_range_form.field_of_post(request.POST or {SQL_WINDOW.name: SQL_WINDOW.default}),
    }
    return render(request, "analyses/tables.html", context, status=400 if error else 200)
