"""REST operations that search messages and return the journey of one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from console.access.masking import mask_message
from console.access.permissions import missing_permission_message, pattern_filter, visible
from console.access.roles import Permission
from console.api.common.operations import operation
from console.api.common.paging import Text
from console.audit import trail
from console.broker.mirror import mirror
from console.messages.journey.journey_service import journey_of
from console.messages.search.lookup import search

router = Router(tags=["messages"])


class SearchHitOut(Schema):
    """A message found in one destination, and its other copies."""

    id: str
    place: Text = Field(validation_alias="destination")
    state: str
    when: datetime | None
    why: str
    origin: str
    cause: str
    seq: int | None
    others: list[tuple[str, Text]]


class SearchResultOut(Schema):
    """Results of a quick search; `complete` is false if the time limit was reached."""

    hits: list[SearchHitOut]
    complete: bool


class JourneyStepOut(Schema):
    """A step of a journey; `place` is its destination in native form, if any."""

    time: datetime
    kind: str
    words: str = Field(validation_alias="label")
    place: Text | None = Field(validation_alias="destination")
    detail: str


class CopyLocationOut(Schema):
    """Recorded state of one copy of the message."""

    place: Text = Field(validation_alias="destination")
    state: str
    since: datetime
    detail: str


class JourneyOut(Schema):
    """Journey of a message, limited to destinations the caller may browse."""

    id: str
    steps: list[JourneyStepOut]
    copies: list[CopyLocationOut]
    complete: bool


class MessageSearchIn(Schema):
    """Query: a message id, a correlation id, or the value of an indexed property (`order:4711`)."""

    q: str = Field(min_length=1, max_length=300)


@operation(router, "GET", "/search", Permission.BROWSE, response=SearchResultOut)
def search_messages(request: HttpRequest, sought: Annotated[MessageSearchIn, Query()]) -> Any:
    """Search stored and recorded messages, within a time limit."""
    sees, user = visible(request.user, Permission.BROWSE), request.user
    stats = list(mirror().current().stats.values())
    return search(sought.q.strip(), stats, sees, lambda message, place: mask_message(user, message, place))


@operation(router, "GET", "/messages/{name:message_id}/journey", Permission.BROWSE, response=JourneyOut)
def get_journey(request: HttpRequest, message_id: str) -> Any:
    """Return the journey of a message."""
    found, sees = journey_of(message_id, pattern_filter(request.user)), visible(request.user, Permission.BROWSE)
    places = {step.destination for step in found.steps if step.destination}
    if not found.steps:
        raise Http404("Message not found: no trace is recorded.")
    if places and not any(map(sees, places)):
        reason = missing_permission_message(request.user, Permission.BROWSE)
        trail.record_denied(request, "browse", message_id, reason)
        raise PermissionDenied(reason)
    return found.visible_to(sees)
