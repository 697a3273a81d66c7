"""Messages that wait until they are due."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from console.access.permissions import visible
from console.access.roles import Verb
from console.api.common.operations import operation
from console.api.common.paging import Paged
from console.broker.gateway import gateway
from console.messages import scheduled

router = Router(tags=["scheduled"])


class WaitingOut(Schema):
    """A message that waits."""

    job: str
    due_ms: int
    purpose: str
    to: str
    size: int


class WaitingPage(Schema):
    """Those due first. `total` counts all that wait, those that this caller may not see too."""

    items: list[WaitingOut]
    total: int
    page: int


@operation(router, "GET", "", Verb.BROWSE, response=WaitingPage)
def list_scheduled(request: HttpRequest, query: Paged) -> Any:
    """List messages that wait until they are due, in order of time."""
    sees = visible(request.user, Verb.BROWSE)
    total, found = gateway().waiting((query.page - 1) * query.size, query.size)
    return {"items": [each for each in found if scheduled.is_seen(each, sees)], "total": total, "page": query.page}


@operation(router, "DELETE", "/{job}", Verb.REMOVE, response={204: None})
def forget_scheduled(request: HttpRequest, job: str) -> Any:
    """Let a message that waits be delivered no more."""
    scheduled.forget(request, job)
    return Status(204, None)
