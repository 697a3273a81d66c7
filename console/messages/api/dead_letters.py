"""REST operations on dead letters, grouped by cause, and on the impact of resubmitting them.

A group is resubmitted by a job with its queue and its selector.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from brokerapp.model.destination import Destination
from console.access.roles import Permission
from console.api.common.inputs import Count
from console.api.common.operations import operation
from console.api.common.paging import Page, PageQuery, Text, page_of
from console.destinations.api import addressed_destination
from console.messages.dead_letter_survey import survey_visible
from console.messages.jobs import requests
from console.messages.jobs.spec import JobSpec

router = Router(tags=["messages"])


class DeadLetterGroupOut(Schema):
    """Dead letters with the same cause and original destination. Times are of those with a recorded failure time."""

    cause: str = Field(validation_alias="pattern")
    origin: str = Field(description="Original destination")
    queue: Text
    count: int
    first: datetime | None
    last: datetime | None
    resubmitted: int = Field(description="Number of messages that were resubmitted before")
    claimed: int = Field(description="Number of messages whose failure was reported by their sender")
    selector: str = Field(description="Selector that matches them in their queue")


class DeadLetterGroupPage(Page[DeadLetterGroupOut]):
    """A page of groups, the latest failure first. `read` of `dead` messages were scanned."""

    read: int
    dead: int


class DeadLetterQuery(PageQuery):
    """Filter by text in cause, original destination or queue."""

    q: str = ""


class ImpactTargetOut(Schema):
    """A queue that messages would reach, and how many of them were processed there before."""

    queue: Text = Field(validation_alias="destination")
    processed: int
    warning: str


class ImpactGroupOut(Schema):
    """Messages that would reach the same targets."""

    target: Text | None = Field(description="Destination of the messages; null: not recorded, or no permission")
    count: int
    sentence: str
    is_safe: bool
    reaches: list[ImpactTargetOut] = Field(validation_alias="visible_queues")
    unnamed: int = Field(
        validation_alias="hidden_count", description="Number of queues and topics hidden by missing permission"
    )


class ImpactOut(Schema):
    """Impact of the selected messages. `looked_at` of `of` messages were routed."""

    blasts: list[ImpactGroupOut] = Field(validation_alias="groups")
    looked_at: int = Field(validation_alias="checked")
    of: int = Field(validation_alias="total")
    notes: list[str]
    is_safe: bool
    traced: bool = Field(description="Whether the trace has where they were processed")


class ImpactQuery(Schema):
    """Action and messages: those of `seq`, else those that match `selector`, else all."""

    action: Literal["retry", "move", "copy"] = "retry"
    target: str = ""
    seq: Annotated[list[Count], Field(max_length=500)] = []
    selector: str = ""


@operation(router, "GET", "", Permission.BROWSE, response=DeadLetterGroupPage)
def list_dead_letters(request: HttpRequest, query: Annotated[DeadLetterQuery, Query()]) -> Any:
    """List dead letters grouped by cause and original destination."""
    found = survey_visible(request.user)
    return page_of(found.matching(query.q), query) | {"read": found.read, "dead": found.total}


@operation(router, "GET", "/{name:name}/radius", Permission.BROWSE, addressed_destination, response=ImpactOut)
def get_radius(request: HttpRequest, name: str, query: Annotated[ImpactQuery, Query()]) -> Any:
    """Assess which destinations messages of a queue would reach if sent now. Nothing is sent."""
    target = Destination.parse(query.target) if query.target else None
    spec = JobSpec(query.action, Destination.queue(name), target, tuple(query.seq), query.selector, 0, "asked", "")
    spec.check()
    requests.check_request(request, spec)
    return requests.impact_of(request, spec, requests.choose_messages(spec))
