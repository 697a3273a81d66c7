"""Jobs: messages moved, copied, retried and deleted in the background, with an outcome for each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.destination import Destination
from console.access import may, visible
from console.api.operations import operation
from console.api.paging import Paged, PageQuery, page_of
from console.gateway import gateway
from console.repair import asking, jobs
from console.repair.models import Job
from console.rights import Verb

router = Router(tags=["jobs"])


class NewJob(Schema):
    """What shall be done to the messages `seqs`, or to all that match `selector` (empty: all)."""

    action: Literal["move", "copy", "retry", "remove"]
    queue: str
    target: str = Field("", description="Of a move or copy")
    seqs: Annotated[list[int], Field(max_length=jobs.MAX_SELECTION)] = []
    selector: str = ""
    rate: Annotated[int, Field(ge=0, le=jobs.MAX_RATE, description="Messages a second; 0: as fast as it goes")] = 0
    reason: str = Field("", description="Needed for a retry")
    name: str = ""


class JobOut(Schema):
    """How a job stands."""

    id: UUID
    name: str
    action: str
    queue: str
    target: str
    selector: str
    reason: str
    asked_by: str
    approved_by: str
    state: str
    note: str
    rate: int
    expected: int
    scanned: int
    done: int
    failed: int
    created: datetime
    started: datetime | None
    finished: datetime | None


class JobPage(Schema):
    """A page of jobs, newest first."""

    items: list[JobOut]
    total: int
    page: int
    pages: int


class JobRate(Schema):
    """Messages a second; 0: as fast as it goes."""

    rate: Annotated[int, Field(ge=0, le=jobs.MAX_RATE)]


class OutcomeOut(Schema):
    """What became of one message."""

    seq: int
    message_id: str
    outcome: str
    detail: str


class OutcomePage(Schema):
    """A page of outcomes."""

    items: list[OutcomeOut]
    total: int
    page: int
    pages: int


class OutcomeQuery(PageQuery):
    """Which outcomes."""

    outcome: str = ""


@operation(router, "GET", "", Verb.BROWSE, response=JobPage)
def list_jobs(request: HttpRequest, query: Paged) -> Any:
    """List jobs, newest first."""
    sees = visible(request.user, Verb.BROWSE)
    return page_of([job for job in Job.objects.all()[:10_000] if sees(job.source)], query)


@operation(router, "POST", "", Verb.RESUBMIT, response={201: JobOut})
def start_job(request: HttpRequest, wanted: NewJob) -> Any:
    """Start a job, or ask for approval of it where the right to do it is missing."""
    target = Destination.parse(wanted.target) if wanted.target else None
    queue = Destination.queue(Destination.parse(wanted.queue).name)
    fields = wanted.dict(include={"action", "selector", "rate", "reason", "name"})
    wish = jobs.Wish(queue=queue, target=target, seqs=tuple(wanted.seqs), **fields)
    wish.check()
    gateway().depth(queue)
    asking.check(request, wish)
    return Status(201, asking.ask(request, wish))


@operation(router, "GET", "/{uuid:job_id}", Verb.BROWSE, response=JobOut)
def get_job(request: HttpRequest, job_id: UUID) -> Any:
    """One job."""
    return _existing(request, job_id)


@operation(router, "GET", "/{uuid:job_id}/outcomes", Verb.BROWSE, response=OutcomePage)
def list_outcomes(request: HttpRequest, job_id: UUID, query: Annotated[OutcomeQuery, Query()]) -> Any:
    """What became of each message of a job."""
    found, sees = _existing(request, job_id).outcomes.all(), visible(request.user)
    page = page_of(found.filter(outcome=query.outcome) if query.outcome else found, query)
    for row in page["items"]:
        row.detail = jobs.detail_of(row, sees)
    return page


@operation(router, "PUT", "/{uuid:job_id}/rate", Verb.RESUBMIT, response=JobOut)
def set_job_rate(request: HttpRequest, job_id: UUID, wanted: JobRate) -> Any:
    """Have a job go slower, or faster, from its next step on."""
    return asking.control(request, _existing(request, job_id), "rate", wanted.rate)[0]


@operation(router, "POST", "/{uuid:job_id}/{action}", Verb.RESUBMIT, response=JobOut)
def control_job(
    request: HttpRequest, job_id: UUID, action: Literal["approve", "pause", "resume", "cancel", "retry-failed"]
) -> Any:
    """Approve, pause, resume or cancel a job, or start another one for what failed in it."""
    return asking.control(request, _existing(request, job_id), "retry" if action == "retry-failed" else action)[0]


def _existing(request: HttpRequest, job_id: UUID) -> Job:
    job = get_object_or_404(Job, id=job_id)
    if not may(request.user, Verb.BROWSE, job.source):
        raise Http404("There is no such job.")
    return job
