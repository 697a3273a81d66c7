"""Dead letters: all that one may browse, in groups that failed alike, and how far sending them again would reach.

A group is sent again by a job with its queue and its selector.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from brokerapp.model.destination import Destination
from console.access.roles import Verb
from console.api.common.inputs import Count
from console.api.common.operations import operation
from console.api.common.paging import PageQuery, page_of
from console.destinations.api import of_address
from console.messages.dead_letter_survey import survey_for
from console.messages.jobs import requests
from console.messages.jobs.spec import Wish

router = Router(tags=["messages"])


class GroupOut(Schema):
    """Messages that failed alike. The times are of those that say when they failed."""

    cause: str
    origin: str = Field(description="Where they failed")
    queue: str
    count: int
    first: datetime | None
    last: datetime | None
    resubmitted: int = Field(description="How many of them were sent again before")
    claimed: int = Field(description="How many came there as they are: they say themselves why they failed")
    selector: str = Field(description="Finds them in their queue")


class GroupPage(Schema):
    """A page of groups, the latest failure first. `read` of `dead` messages were looked at."""

    items: list[GroupOut]
    total: int
    page: int
    pages: int
    read: int
    dead: int


class GroupQuery(PageQuery):
    """Which ones: those whose cause, origin or queue has this in it."""

    q: str = ""


class ReachOut(Schema):
    """A queue that messages would come to, and how many of them were processed there before."""

    queue: str
    processed: int
    warning: str


class BlastOut(Schema):
    """Messages that would take the same way."""

    target: str | None
    count: int
    sentence: str
    is_safe: bool
    reaches: list[ReachOut]
    unnamed: int = Field(description="Queues and topics beside these, which you may not see")


class RadiusOut(Schema):
    """All ways of the messages that were chosen. `looked_at` of `of` were followed."""

    blasts: list[BlastOut]
    looked_at: int
    of: int
    notes: list[str]
    is_safe: bool
    traced: bool = Field(description="Whether the trace says where they were processed")


class RadiusQuery(Schema):
    """What would be done to which messages: those of `seq`, else those that match `selector`, else all."""

    action: Literal["retry", "move", "copy"] = "retry"
    target: str = ""
    seq: Annotated[list[Count], Field(max_length=500)] = []
    selector: str = ""


@operation(router, "GET", "", Verb.BROWSE, response=GroupPage)
def list_dead_letters(request: HttpRequest, query: Annotated[GroupQuery, Query()]) -> Any:
    """List dead letters in groups that failed alike."""
    found = survey_for(request.user)
    groups = [_shown(each) for each in found.matching(query.q)]
    return page_of(groups, query) | {"read": found.read, "dead": found.total}


@operation(router, "GET", "/{name:name}/radius", Verb.BROWSE, of_address, response=RadiusOut)
def get_radius(request: HttpRequest, name: str, query: Annotated[RadiusQuery, Query()]) -> Any:
    """Where messages of a queue would come if they were sent again now; nothing is sent."""
    target = Destination.parse(query.target) if query.target else None
    wish = Wish(query.action, Destination.queue(name), target, tuple(query.seq), query.selector, 0, "asked", "")
    wish.check()
    requests.check(request, wish)
    found = requests.blast_radius(request, wish, requests.chosen(wish))
    return {
        "blasts": [_blast(each) for each in found.blasts], "looked_at": found.looked_at, "of": found.of,
        "notes": found.notes, "is_safe": found.is_safe, "traced": found.traced,
    }  # fmt: skip


def _shown(cluster: Any) -> dict[str, Any]:
    return {
        "cause": cluster.pattern, "origin": cluster.origin, "queue": str(cluster.queue), "count": cluster.count,
        "first": cluster.first, "last": cluster.last, "resubmitted": cluster.resubmitted, "claimed": cluster.claimed,
        "selector": cluster.selector,
    }  # fmt: skip


def _blast(blast: Any) -> dict[str, Any]:
    reaches = [{"queue": str(e.destination), "processed": e.processed, "warning": e.warning} for e in blast.named]
    return {
        "target": str(blast.target) if blast.target else None, "count": blast.count, "sentence": blast.sentence,
        "is_safe": blast.is_safe, "reaches": reaches, "unnamed": blast.unnamed,
    }  # fmt: skip
