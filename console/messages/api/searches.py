"""REST operations on background searches of messages; callers see their own only."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from console.access.roles import Permission
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.messages.api.tracing import SearchHitOut
from console.messages.search import search_service
from console.messages.search.models import MessageSearch

router = Router(tags=["messages"])


class SearchIn(RequestBody):
    """Query: a message id, a correlation id, or the value of an indexed property (`order:4711`)."""

    q: Annotated[str, Field(min_length=1, max_length=300)]


class SearchOut(Schema):
    """A search with its progress and its results so far."""

    id: UUID
    q: str
    state: str
    note: str
    progress: float = Field(description="From 0 to 1")
    scanned: int = Field(description="Messages scanned so far")
    expected: int = Field(description="Messages in the queues at the start")
    queues: int = Field(description="Queues scanned completely")
    queues_total: int
    created: datetime
    finished: datetime | None
    hits: list[SearchHitOut]


@operation(router, "POST", "", Permission.BROWSE, response={201: SearchOut})
def start_search(request: HttpRequest, wanted: SearchIn) -> Any:
    """Search all queues and the recorded trace in the background."""
    return Status(201, _search_out(request, search_service.start(request, wanted.q)))


@operation(router, "GET", "/{uuid:search_id}", Permission.BROWSE, response=SearchOut)
def get_search(request: HttpRequest, search_id: UUID) -> Any:
    """Return one search of the caller."""
    return _search_out(request, search_service.get_search(request, search_id))


@operation(router, "POST", "/{uuid:search_id}/cancel", Permission.BROWSE, response=SearchOut)
def cancel_search(request: HttpRequest, search_id: UUID) -> Any:
    """Cancel a search; its results are kept."""
    search = search_service.get_search(request, search_id)
    search_service.cancel(search)
    return _search_out(request, search)


def _search_out(request: HttpRequest, search: MessageSearch) -> dict[str, Any]:
    plain = ("id", "state", "note", "progress", "scanned", "expected", "created", "finished")
    return {name: getattr(search, name) for name in plain} | {
        "q": search.text, "queues": search.position, "queues_total": len(search.queues),
        "hits": search_service.hits(request, search),
    }  # fmt: skip
