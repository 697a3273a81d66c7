"""Page of a deleted queue or topic whose history is still stored: analyses, alerts and audit entries link to it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.time_series import COARSE, FINE
from console.access.permissions import Permission, has_permission
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.metrics import charts_history, rollup_history
from console.metrics.charts.chart_data import chart_of

#: Audit entries that the page shows.
MAX_CHANGES = 10


def deleted_page(request: HttpRequest, destination: Destination) -> HttpResponse:
    """Show when a deleted destination was last active and its chart until then. Raises Http404 without any history."""
    now = int(time.time())
    last = _last_moved(destination, now)
    may_read = has_permission(request.user, Permission.AUDIT)
    changes = AuditEntry.objects.filter(object=str(destination))[:MAX_CHANGES] if may_read else ()
    if last is None and not any(each.outcome == AuditEntry.Outcome.DONE for each in changes):
        raise Http404(f"{str(destination.kind).capitalize()} {destination.name} not found. It may have been deleted.")
    window = _window(request, last or now, now)
    context: dict[str, Any] = {
        "destination": destination,
        "is_gone": True,
        "last": datetime.fromtimestamp(last, UTC) if last else None,
        "changes": changes,
        "may_read_changes": may_read,
        "chart": chart_of(request, window, destination),
        "window": window,
    }
    return render(request, "destinations/deleted.html", context, status=410)


def _last_moved(destination: Destination, now: int) -> int | None:
    """Return when it last enqueued or dequeued (seconds since the epoch), from the history or the archive."""
    try:
        kept = [charts_history.read_points(gateway(), resolution, [destination])[0] for resolution in (FINE, COARSE)]
    except BrokerError:
        kept = []
    if any(kept):
        return max(each[-1].at for each in kept if each)
    for name in ("24h", "30d"):  # to the minute, or else to the hour
        window = charts_history.ChartWindow.read({"window": name}, now).rolled_up(now)
        cells = rollup_history.rollups().points(window.start, window.end, window.resolution.step, str(destination))
        if cells:
            return min(now, cells[-1].start + window.resolution.step)
    return None


def _window(request: HttpRequest, last: int, now: int) -> charts_history.ChartWindow:
    """Return the time range of the URL, or the shortest one that shows the last activity."""
    if charts_history.OF_WINDOW & set(request.GET):
        return charts_history.ChartWindow.read(request.GET, now)
    names = [name for name, (_, seconds) in charts_history.WINDOWS.items() if now - last < seconds * 3 // 4]
    return charts_history.ChartWindow.read({"window": names[0] if names else "30d"}, now)
