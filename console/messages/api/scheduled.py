"""REST operations on scheduled messages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from console.access.permissions import visible
from console.access.roles import Permission
from console.api.common.operations import operation
from console.api.common.paging import Paged
from console.broker.gateway import gateway
from console.messages import scheduled

router = Router(tags=["scheduled"])


class ScheduledMessageOut(Schema):
    """A scheduled message."""

    job: str
    due_ms: int
    purpose: str
    to: str
    size: int


class ScheduledMessagePage(Schema):
    """A page of scheduled messages, next delivery first. `total` includes hidden ones."""

    items: list[ScheduledMessageOut]
    total: int
    page: int


@operation(router, "GET", "", Permission.BROWSE, response=ScheduledMessagePage)
def list_scheduled(request: HttpRequest, query: Paged) -> Any:
    """List scheduled messages in order of their next delivery."""
    sees = visible(request.user, Permission.BROWSE)
    total, found = gateway().scheduled((query.page - 1) * query.size, query.size)
    return {"items": [each for each in found if scheduled.is_visible(each, sees)], "total": total, "page": query.page}


@operation(router, "DELETE", "/{job}", Permission.REMOVE, response={204: None})
def forget_scheduled(request: HttpRequest, job: str) -> Any:
    """Cancel a scheduled message."""
    scheduled.cancel(request, job)
    return Status(204, None)
