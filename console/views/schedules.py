"""Schedules of analyses: add, switch, delete."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST
from django_celery_beat.models import PeriodicTask

from brokerapp.errors import RequestRefused
from console import audit
from console import schedules as schedule
from console.access import Verb, needs


@require_POST
@needs(Verb.SCHEDULE)
def create(request: HttpRequest) -> HttpResponse:
    """Have an analysis run again and again."""
    rhythm = request.POST.get("rhythm", "")
    if rhythm not in schedule.RHYTHMS:
        return HttpResponseBadRequest(f"{rhythm!r} is not one of {', '.join(schedule.RHYTHMS)}")
    try:
        with audit.recording(request, "schedule", request.POST.get("kind", "")) as change:
            task = schedule.add(
                request.POST.get("kind", ""), request.POST.get("window", ""), rhythm, request.user.get_username()
            )
            change.after = {"name": task.name}
    except RequestRefused as error:
        return HttpResponseBadRequest(str(error))
    messages.success(request, f"Scheduled: {task.name}.")
    return redirect("analyses")


@require_POST
@needs(Verb.SCHEDULE)
def change(request: HttpRequest, schedule_id: int, action: str) -> HttpResponse:
    """Switch a schedule on or off, or delete it."""
    task = get_object_or_404(PeriodicTask, id=schedule_id, task=schedule.TASK)
    match action:
        case "switch":
            with audit.recording(request, "switch schedule", task.name, before={"enabled": task.enabled}) as done:
                task.enabled = not task.enabled
                task.save()
                done.after = {"enabled": task.enabled}
        case "delete":
            with audit.recording(request, "delete schedule", task.name):
                task.delete()
        case _:
            raise Http404(f"{action} is nothing one can do to a schedule.")
    return redirect("analyses")
