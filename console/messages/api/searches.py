"""Searches through all queues, which a worker does; each user's own."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from console.access.roles import Verb
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.messages.api.tracing import HitOut
from console.messages.search import search_service
from console.messages.search.models import MessageSearch

router = Router(tags=["messages"])


class NewSearch(RequestBody):
    """What to search for: a message id, a correlation id, or the value of an indexed property (`order:4711`)."""

    q: Annotated[str, Field(min_length=1, max_length=300)]


class SearchOut(Schema):
    """A search, and the messages that it found so far."""

    id: UUID
    q: str
    state: str
    note: str
    progress: float = Field(description="From 0 to 1")
    scanned: int = Field(description="Messages that were scanned")
    expected: int = Field(description="Messages in the queues when it was started")
    queues: int = Field(description="Queues that were scanned completely")
    queues_total: int
    created: datetime
    finished: datetime | None
    hits: list[HitOut]


@operation(router, "POST", "", Verb.BROWSE, response={201: SearchOut})
def start_search(request: HttpRequest, wanted: NewSearch) -> Any:
    """Search all queues and the recorded trace in the background."""
    return Status(201, _shown(request, search_service.start(request, wanted.q)))


@operation(router, "GET", "/{uuid:search_id}", Verb.BROWSE, response=SearchOut)
def get_search(request: HttpRequest, search_id: UUID) -> Any:
    """One search of the caller."""
    return _shown(request, search_service.existing(request, search_id))


@operation(router, "POST", "/{uuid:search_id}/cancel", Verb.BROWSE, response=SearchOut)
def cancel_search(request: HttpRequest, search_id: UUID) -> Any:
    """Cancel a search; what it found stays."""
    search = search_service.existing(request, search_id)
    search_service.cancel(search)
    return _shown(request, search)


def _shown(request: HttpRequest, search: MessageSearch) -> dict[str, Any]:
    plain = ("id", "state", "note", "progress", "scanned", "expected", "created", "finished")
    return {name: getattr(search, name) for name in plain} | {
        "q": search.text, "queues": search.position, "queues_total": len(search.queues),
        "hits": search_service.hits(request, search),
    }  # fmt: skip
