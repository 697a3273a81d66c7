"""Messages that wait until they are due, by whichever door one comes: who may know of one, and how it is taken back."""

from __future__ import annotations

from django.http import HttpRequest

from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import ScheduledMessage
from console.access.permissions import Verb, require, require_everywhere
from console.access.roles import Sees, everything
from console.audit import trail
from console.broker.gateway import gateway


def targets_of(message: ScheduledMessage) -> tuple[Destination, ...]:
    """Where it goes when it is due; nothing where that names no destination."""
    try:
        return Destination.parse_list(message.to)
    except InvalidDestination:
        return ()


def is_seen(message: ScheduledMessage, sees: Sees) -> bool:
    """Whether somebody may know of it: of all places where it goes."""
    targets = targets_of(message)
    return sees is everything or (bool(targets) and all(map(sees, targets)))


def forget(request: HttpRequest, job: str) -> None:
    """Take a message back before it is due. Raises RequestRefused, PermissionDenied."""
    found = gateway().waiting_as(job)
    if found is None:
        require(request, Verb.REMOVE)
        raise RequestRefused(f"no message waits as job {job!r}: it is delivered, or was taken back")
    targets = targets_of(found)
    for each in targets:
        require(request, Verb.REMOVE, each)
    if not targets:
        require_everywhere(request, Verb.REMOVE)
    with trail.recording(request, "forget scheduled", found.to, before={"job": job, "due_ms": found.due_ms}):
        gateway().forget_waiting(job)
