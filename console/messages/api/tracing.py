"""Finding messages, and what became of one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from console.access.masking import mask_message
from console.access.permissions import missing_permission_message, pattern_filter, visible
from console.access.roles import Verb
from console.api.common.operations import operation
from console.audit import trail
from console.broker.mirror import mirror
from console.messages.journey.journey_service import journey_of
from console.messages.search.lookup import Hit, search

router = Router(tags=["messages"])


class HitOut(Schema):
    """A message in one place, and where else copies of it are."""

    id: str
    place: str
    state: str
    when: datetime | None
    why: str
    origin: str
    cause: str
    seq: int | None
    others: list[tuple[str, str]]

    @staticmethod
    def resolve_place(hit: Hit) -> str:
        """In native form."""
        return str(hit.place)

    @staticmethod
    def resolve_others(hit: Hit) -> list[tuple[str, str]]:
        """State and place of each."""
        return [(state, str(place)) for state, place in hit.others]


class FoundOut(Schema):
    """What a search found; `complete` says whether all was looked at within its time."""

    hits: list[HitOut]
    complete: bool


class JourneyStepOut(Schema):
    """One thing that happened; `place` in native form, where it was at one."""

    time: datetime
    kind: str
    words: str
    place: str | None
    detail: str


class CopyOut(Schema):
    """Where a copy stands, as far as it was recorded."""

    place: str
    state: str
    since: datetime
    detail: str


class JourneyOut(Schema):
    """What became of a message, at places one may browse."""

    id: str
    steps: list[JourneyStepOut]
    copies: list[CopyOut]
    complete: bool


class Sought(Schema):
    """What is looked for: a message id, a correlation id, or the value of an indexed property (`order:4711`)."""

    q: str = Field(min_length=1, max_length=300)


@operation(router, "GET", "/search", Verb.BROWSE, response=FoundOut)
def search_messages(request: HttpRequest, sought: Annotated[Sought, Query()]) -> Any:
    """Find messages, waiting or recorded."""
    sees, user = visible(request.user, Verb.BROWSE), request.user
    stats = list(mirror().current().stats.values())
    return search(sought.q.strip(), stats, sees, lambda message, place: mask_message(user, message, place))


@operation(router, "GET", "/messages/{name:message_id}/journey", Verb.BROWSE, response=JourneyOut)
def get_journey(request: HttpRequest, message_id: str) -> Any:
    """What became of a message."""
    found, sees = journey_of(message_id, pattern_filter(request.user)), visible(request.user, Verb.BROWSE)
    places = {step.place for step in found.steps if step.place}
    if not found.steps:
        raise Http404("Nothing was recorded of this message.")
    if places and not any(map(sees, places)):
        reason = missing_permission_message(request.user, Verb.BROWSE)
        trail.denied(request, "browse", message_id, reason)
        raise PermissionDenied(reason)
    found = found.seen_by(sees)
    steps = [
        {"time": each.time, "kind": each.kind, "words": each.words, "detail": each.detail,
         "place": str(each.place) if each.place else None}
        for each in found.steps
    ]  # fmt: skip
    copies = [
        {"place": str(each.place), "state": each.state, "since": each.since, "detail": each.detail}
        for each in found.copies
    ]  # fmt: skip
    return {"id": found.id, "steps": steps, "copies": copies, "complete": found.complete}
