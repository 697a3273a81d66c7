"""Scheduled messages: what waits until it is due, when that is, and how it is taken back."""

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
from console.access.permissions import Verb, permission_required, visible
from console.broker.gateway import gateway
from console.messages import scheduled as service
from console.ui.formatting.number_format import format_duration

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One message that waits."""

    message: ScheduledMessage
    targets: tuple[Destination, ...]

    @property
    def due(self) -> datetime:
        """When it goes next."""
        return datetime.fromtimestamp(min(self.message.due_ms, 4_102_444_800_000) / 1000, UTC)

    @property
    def rhythm(self) -> str:
        """How it goes on after that."""
        headers = self.message.headers
        if self.message.purpose == "return":
            return "redelivery"
        if cron := headers.get(CRON):
            return f"cron {cron}"
        if (repeat := headers.get(REPEAT, "0")) != "0":
            every = format_duration(int(headers.get(PERIOD, "0")) / 1000)
            return f"every {every}, for ever" if repeat == "-1" else f"every {every}, {repeat} times more"
        return "once"


@require_GET
@permission_required(Verb.BROWSE)
def scheduled(request: HttpRequest) -> HttpResponse:
    """What waits, in order of time; of destinations that one may browse."""
    skip = int(text) if (text := request.GET.get("skip", "0")).isdecimal() and len(text) < 9 else 0
    total, found = gateway().waiting(skip, PAGE_SIZE)
    sees = visible(request.user, Verb.BROWSE)
    rows = [Row(each, service.targets_of(each)) for each in found if service.is_seen(each, sees)]
    context = {
        "rows": rows, "total": total, "skip": skip, "hidden": len(found) - len(rows),
        "next": f"?skip={skip + PAGE_SIZE}" if skip + PAGE_SIZE < total else "",
        "previous": f"?skip={max(0, skip - PAGE_SIZE)}" if skip else "",
    }  # fmt: skip
    return render(request, "messages/scheduled.html", context)


@require_POST
@permission_required(Verb.REMOVE)
def forget(request: HttpRequest) -> HttpResponse:
    """Take a message back before it is due."""
    service.forget(request, request.POST.get("job", ""))
    messages.success(request, "It is taken back, and will not be delivered.")
    return redirect("scheduled")
