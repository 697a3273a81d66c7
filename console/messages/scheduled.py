"""Scheduled messages for pages and the REST API: visibility and cancellation."""

from __future__ import annotations

from django.http import HttpRequest

from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import ScheduledMessage
from console.access.permissions import Permission, require, require_everywhere
from console.access.roles import Sees, everything
from console.audit import trail
from console.broker.gateway import gateway


def targets_of(message: ScheduledMessage) -> tuple[Destination, ...]:
    """Return the destinations of a scheduled message; none if they cannot be parsed."""
    try:
        return Destination.parse_list(message.to)
    except InvalidDestination:
        return ()


def is_visible(message: ScheduledMessage, sees: Sees) -> bool:
    """Return whether the user may see all destinations of a scheduled message."""
    targets = targets_of(message)
    return sees is everything or (bool(targets) and all(map(sees, targets)))


def cancel(request: HttpRequest, job: str) -> None:
    """Cancel a scheduled message. Raises RequestRefused, PermissionDenied."""
    found = gateway().scheduled_job(job)
    if found is None:
        require(request, Permission.REMOVE)
        raise RequestRefused(f"scheduled message {job!r} not found: it was delivered or cancelled")
    targets = targets_of(found)
    for each in targets:
        require(request, Permission.REMOVE, each)
    if not targets:
        require_everywhere(request, Permission.REMOVE)
    with trail.recording(request, "forget scheduled", found.to, before={"job": job, "due_ms": found.due_ms}):
        gateway().cancel_scheduled(job)
