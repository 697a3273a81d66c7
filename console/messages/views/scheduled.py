"""Page of scheduled messages: next delivery, schedule and cancellation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.engine.scheduling.delivery_schedule import CRON, PERIOD, REPEAT
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import ScheduledMessage
from console.access.permissions import Permission, permission_required, visible
from console.broker.gateway import gateway
from console.messages import scheduled as service
from console.ui.formatting.number_format import format_duration
from console.ui.formatting.url_query import parse_integer

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class ScheduledRow:
    """A scheduled message in the list."""

    message: ScheduledMessage
    targets: tuple[Destination, ...]

    @property
    def due(self) -> datetime:
        """Return the time of the next delivery."""
        return datetime.fromtimestamp(min(self.message.due_ms, 4_102_444_800_000) / 1000, UTC)

    @property
    def schedule(self) -> str:
        """Return the schedule as text."""
        headers = self.message.headers
        if self.message.purpose == "return":
            return "redelivery"
        if cron := headers.get(CRON):
            return f"cron {cron}"
        if (repeat := headers.get(REPEAT, "0")) != "0":
            every = format_duration(int(headers.get(PERIOD, "0")) / 1000)
            return f"every {every}" if repeat == "-1" else f"every {every}, {repeat} more"
        return "once"


@require_GET
@permission_required(Permission.BROWSE)
def scheduled(request: HttpRequest) -> HttpResponse:
    """Show scheduled messages for destinations that the user may browse, in order of time."""
    skip = parse_integer(request.GET.get("skip"), digits=8)
    total, found = gateway().scheduled(skip, PAGE_SIZE)
    sees = visible(request.user, Permission.BROWSE)
    rows = [ScheduledRow(each, service.targets_of(each)) for each in found if service.is_visible(each, sees)]
    context = {
        "rows": rows, "total": total, "skip": skip, "hidden": len(found) - len(rows),
        "next": f"?skip={skip + PAGE_SIZE}" if skip + PAGE_SIZE < total else "",
        "previous": f"?skip={max(0, skip - PAGE_SIZE)}" if skip else "",
    }  # fmt: skip
    return render(request, "messages/scheduled.html", context)


@require_POST
@permission_required(Permission.REMOVE)
def cancel(request: HttpRequest) -> HttpResponse:
    """Cancel a scheduled message."""
    service.cancel(request, request.POST.get("job", ""))
    messages.success(request, "Scheduled message cancelled.")
    return redirect("scheduled")
