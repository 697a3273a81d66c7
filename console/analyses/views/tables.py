"""Hourly and daily tables of recorded traffic: their state, and the form that rebuilds a period."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, permission_required
from console.analyses import tables as service
from console.ui.formatting.number_format import pluralize_count
from console.ui.preferences.timezones import current_zone_name, parse_moment


@require_GET
@permission_required(Permission.SEE)
def tables(request: HttpRequest) -> HttpResponse:
    """Return the state of the tables of each broker."""
    return _page(request)


@require_POST
@permission_required(Permission.ANALYSE)
def rebuild(request: HttpRequest) -> HttpResponse:
    """Have a period computed again."""
    zone = request.POST.get("zone", "")
    since, until = (parse_moment(request.POST.get(name, ""), zone) for name in ("since", "until"))
    if since is None or until is None:
        wrong = request.POST.get("since" if since is None else "until", "")
        return _page(request, f"Invalid date or time {wrong!r}. Use 2026-11-21 or 2026-11-21T14:30.")
    try:
        hours = service.rebuild(request, since, until)
    except RequestRefused as error:
        return _page(request, str(error))
    if hours:
        messages.success(request, f"{pluralize_count(hours, 'hour')} scheduled to be rebuilt.")
    else:
        messages.info(request, "No hours rebuilt: no table of this time range has archived events.")
    return redirect("tables")


def _page(request: HttpRequest, error: str = "") -> HttpResponse:
    state = service.tables_state()
    build = state.last_build
    context = {
        "state": state,
        "rows": [(each, service.moment_of(each.computed_until_us)) for each in state.brokers],
        "built": build and service.moment_of(build.finished_us),
        "counted": state.current and service.moment_of(state.current.counted_until_us),
        "error": error,
        "zone": current_zone_name(),
        "since": request.POST.get("since", ""),
        "until": request.POST.get("until", ""),
    }
    return render(request, "analyses/tables.html", context, status=400 if error else 200)
