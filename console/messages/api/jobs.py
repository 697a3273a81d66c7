"""Jobs: messages moved, copied, retried, edited and deleted in the background, with an outcome for each."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field, StrictBool, StrictFloat, StrictInt

from brokerapp.engine.editing.message_edit import MAX_LIFE, MAX_PRIORITY, MessageEdit, body_of
from brokerapp.engine.editing.message_properties import EDITABLE
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from console.access.permissions import has_permission, visible
from console.access.roles import Verb
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Paged, PageQuery, page_of
from console.broker.gateway import gateway
from console.messages.jobs import failed_again, job_service, requests
from console.messages.jobs.edit_input import as_texts
from console.messages.jobs.models import Job
from console.messages.jobs.spec import MAX_RATE, MAX_SELECTION, Wish

router = Router(tags=["jobs"])


class EditIn(RequestBody):
    """What is changed of each message; all else of it stays as it is."""

    set: dict[str, StrictBool | StrictInt | StrictFloat | str] = Field(
        {}, description=f"Properties, and of the headers {', '.join(EDITABLE)}, with their values"
    )
    remove: list[str] = Field([], description="The same, to be there no more")
    persistent: bool | None = None
    priority: Annotated[int, Field(ge=0, le=MAX_PRIORITY)] | None = None
    lives: Annotated[int, Field(ge=0, le=MAX_LIFE, description="Seconds from when it is sent; 0: for ever")] | None = (
        None
    )
    body: str | None = Field(None, description="In place of each message's own; null: the same bytes")
    encoding: Literal["text", "base64"] = "text"
    keeps: bool = Field(False, description="Whether the originals stay where they are")

    def edit(self) -> MessageEdit:
        """As the broker takes it. Raises RequestRefused."""
        body = None if self.body is None else body_of(self.body, self.encoding)
        found = MessageEdit(
            as_texts(self.set), tuple(self.remove), self.persistent, self.priority, self.lives, body,
            self.encoding == "base64", self.keeps,
        )  # fmt: skip
        found.check()
        return found


class NewJob(RequestBody):
    """What shall be done to the messages `seqs`, or to all that match `selector` (empty: all)."""

    action: Literal["move", "copy", "retry", "remove", "edit"]
    queue: str
    target: str = Field(
        "", description="Of a move or copy; of an edit, else dead letters go to where they failed, others to this queue"
    )
    edit: EditIn | None = Field(None, description="Of an edit")
    seqs: Annotated[list[Count], Field(max_length=MAX_SELECTION)] = []
    selector: str = ""
    rate: Annotated[int, Field(ge=0, le=MAX_RATE, description="Messages a second; 0: as fast as it goes")] = 0
    reason: str = Field("", description="Needed for a retry and an edit")
    name: str = ""

    def wish(self) -> Wish:
        """The same as jobs are asked for. Raises RequestRefused, SelectorSyntaxError."""
        if self.edit is not None and self.action != "edit":
            raise RequestRefused(f"to {self.action} messages takes no edit")
        fields = self.model_dump(include={"action", "selector", "rate", "reason", "name"})
        return Wish(
            queue=Destination.queue(Destination.parse(self.queue).name),
            target=Destination.parse(self.target) if self.target else None,
            seqs=tuple(self.seqs),
            edit=self.edit.edit() if self.edit is not None else None,
            **fields,
        )


class ChangeOut(Schema):
    """One thing a message says, before and after; null: it is not there."""

    name: str
    before: str | None
    after: str | None


class PreviewOut(Schema):
    """How many messages were chosen, and the first of them before and after."""

    count: int
    is_whole: bool = Field(description="Whether these are all; else at least so many")
    looked_at: int = Field(0, description="Messages that were looked at, where these are not all")
    of: int = Field(0, description="Messages in the queue, where these are not all")
    seq: int | None = None
    id: str = ""
    is_hidden: bool = Field(False, description="Parts of it are masked for this caller: it would be left alone")
    changes: list[ChangeOut] = []


class EditOut(Schema):
    """What a job changes of each message, as far as this caller may see it; of a body, its size."""

    name: str
    value: str


class JobOut(Schema):
    """How a job stands."""

    id: UUID
    name: str
    action: str
    queue: str
    target: str
    selector: str
    edit: list[EditOut]
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
    came_back: int | None = Field(
        None, description="Of one job that sends messages again: how many failed again so far, or at least so many"
    )


class JobPage(Schema):
    """A page of jobs, newest first."""

    items: list[JobOut]
    total: int
    page: int
    pages: int


class JobRate(RequestBody):
    """Messages a second; 0: as fast as it goes."""

    rate: Annotated[int, Field(ge=0, le=MAX_RATE)]


class OutcomeOut(Schema):
    """What became of one message."""

    seq: int
    message_id: str
    new_id: str = Field(description="Of the message sent in its place, when it was edited")
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
    page = page_of([job for job in job_service.listed(Job.objects.all())[:10_000] if sees(job.source)], query)
    return page | {"items": [_shown(request, job) for job in page["items"]]}


@operation(router, "POST", "", Verb.RESUBMIT, response={201: JobOut})
def start_job(request: HttpRequest, wanted: NewJob) -> Any:
    """Start a job, or ask for approval of it where the right to do it is missing."""
    wish = wanted.wish()
    wish.check()
    gateway().depth(wish.queue)
    requests.check(request, wish)
    return Status(201, _shown(request, requests.ask(request, wish)))


@operation(router, "POST", "/preview", Verb.EDIT, response=PreviewOut)
def preview_edit(request: HttpRequest, wanted: NewJob) -> Any:
    """What an edit would make of the first message, and of how many; nothing is sent."""
    wish = replace(wanted.wish(), reason="asked")
    if wish.edit is None:
        raise RequestRefused("edit: say what is to be changed")
    wish.check()
    gateway().depth(wish.queue)
    requests.check(request, wish)
    requests.at_once(request, wish)
    chosen = requests.chosen(wish)
    shown = asdict(chosen.tally)
    if (first := requests.preview_of(request, wish, chosen)) is None:
        return shown
    changed = [*first.rows, *([first.body] if first.body else [])]
    return shown | {
        "seq": first.seq, "id": first.id, "is_hidden": first.is_hidden,
        "changes": [each for each in changed if each.mark != "same"],
    }  # fmt: skip


@operation(router, "GET", "/{uuid:job_id}", Verb.BROWSE, response=JobOut)
def get_job(request: HttpRequest, job_id: UUID) -> Any:
    """One job."""
    job = _existing(request, job_id)
    found = failed_again.came_back(job)
    return _shown(request, job) | {"came_back": found and found.count}


@operation(router, "GET", "/{uuid:job_id}/outcomes", Verb.BROWSE, response=OutcomePage)
def list_outcomes(request: HttpRequest, job_id: UUID, query: Annotated[OutcomeQuery, Query()]) -> Any:
    """What became of each message of a job."""
    found, sees = _existing(request, job_id).outcomes.all(), visible(request.user)
    page = page_of(found.filter(outcome=query.outcome) if query.outcome else found, query)
    for row in page["items"]:
        row.detail = job_service.detail_of(row, sees)
    return page


@operation(router, "PUT", "/{uuid:job_id}/rate", Verb.RESUBMIT, response=JobOut)
def set_job_rate(request: HttpRequest, job_id: UUID, wanted: JobRate) -> Any:
    """Have a job go slower, or faster, from its next step on."""
    return _shown(request, requests.control(request, _existing(request, job_id), "rate", wanted.rate)[0])


@operation(router, "POST", "/{uuid:job_id}/{action}", Verb.RESUBMIT, response=JobOut)
def control_job(
    request: HttpRequest, job_id: UUID, action: Literal["approve", "pause", "resume", "cancel", "retry-failed"]
) -> Any:
    """Approve, pause, resume or cancel a job, or start another one for what failed in it."""
    step = "retry" if action == "retry-failed" else action
    return _shown(request, requests.control(request, _existing(request, job_id), step)[0])


def _shown(request: HttpRequest, job: Job) -> dict[str, Any]:
    """The job, with what it changes as far as the caller may see it."""
    told = [{"name": name, "value": value} for name, value in job_service.edit_told(job, request.user)]
    plain = JobOut.model_fields.keys() - {"edit", "came_back"}
    return {name: getattr(job, name) for name in plain} | {"edit": told}


def _existing(request: HttpRequest, job_id: UUID) -> Job:
    job = get_object_or_404(Job, id=job_id)
    if not has_permission(request.user, Verb.BROWSE, job.source):
        raise Http404("There is no such job.")
    return job
