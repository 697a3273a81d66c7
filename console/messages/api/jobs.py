"""REST operations on jobs, which move, copy, resubmit, edit and delete messages in the background."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field, StrictBool, StrictFloat, StrictInt

from brokerapp.engine.editing.message_edit import MAX_LIFE, MAX_PRIORITY, MessageEdit, body_of
from brokerapp.engine.editing.message_properties import EDITABLE, check_type
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.jms.typed_text import PROPERTY_TYPE_NAMES
from console.access.permissions import visible
from console.access.roles import Permission
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, Paged, PageQuery, page_of
from console.broker.gateway import gateway
from console.messages.jobs import failed_again, job_service, requests
from console.messages.jobs.edit_input import to_stomp_values
from console.messages.jobs.models import Job
from console.messages.jobs.spec import MAX_RATE, MAX_SELECTION, JobSpec

router = Router(tags=["jobs"])


class JobEditIn(RequestBody):
    """Changes to each message; everything else is kept."""

    set: dict[str, StrictBool | StrictInt | StrictFloat | str] = Field(
        {}, description=f"Properties, and of the headers {', '.join(EDITABLE)}, with their values"
    )
    types: dict[str, Literal[PROPERTY_TYPE_NAMES]] = Field(
        {}, description="JMS types of properties of `set`, in messages of JMS clients; others keep their types"
    )
    remove: list[str] = Field([], description="Properties and headers to remove")
    persistent: bool | None = None
    priority: Annotated[int, Field(ge=0, le=MAX_PRIORITY)] | None = None
    lives: Annotated[int, Field(ge=0, le=MAX_LIFE, description="Time to live in seconds; 0 = never expires")] | None = (
        None
    )
    body: str | None = Field(None, description="New body of each message; null = unchanged")
    encoding: Literal["text", "base64", "hex"] = "text"
    keeps: bool = Field(False, description="Whether the originals are kept")

    def to_edit(self) -> MessageEdit:
        """Convert to an edit. Raises RequestRefused."""
        body = None if self.body is None else body_of(self.body, self.encoding)
        found = MessageEdit(
            self._values(), tuple(self.remove), self.persistent, self.priority, self.lives, body,
            self.encoding != "text", self.keeps, dict(self.types),
        )  # fmt: skip
        found.check()
        return found

    def _values(self) -> dict[str, str]:
        """Return the values of `set` as text, those of a type as Java writes them."""
        values = to_stomp_values(self.set)
        return values | {name: check_type(name, self.types[name], values[name]) for name in self.types.keys() & values}


class JobIn(RequestBody):
    """Action on the messages `seqs`, or on all that match `selector` (empty: all)."""

    action: Literal["move", "copy", "retry", "remove", "edit"]
    queue: str
    target: str = Field(
        "",
        description="Of a move, copy or edit. Default of an edit: original destination of a dead letter, or same queue",
    )
    edit: JobEditIn | None = Field(None, description="Changes of an edit")
    seqs: Annotated[list[Count], Field(max_length=MAX_SELECTION)] = []
    selector: str = ""
    rate: Annotated[int, Field(ge=0, le=MAX_RATE, description="Messages/s; 0 = no limit")] = 0
    reason: str = Field("", description="Required for a retry and an edit")
    name: str = ""

    def to_spec(self) -> JobSpec:
        """Convert to a job specification. Raises RequestRefused, SelectorSyntaxError."""
        if self.edit is not None and self.action != "edit":
            raise RequestRefused(f"edit: not allowed for action {self.action}")
        fields = self.model_dump(include={"action", "selector", "rate", "reason", "name"})
        return JobSpec(
            queue=Destination.queue(Destination.parse(self.queue).name),
            target=Destination.parse(self.target) if self.target else None,
            seqs=tuple(self.seqs),
            edit=self.edit.to_edit() if self.edit is not None else None,
            **fields,
        )


class EditChangeOut(Schema):
    """A header or body before and after an edit; null = absent."""

    name: str
    before: str | None
    after: str | None


class EditPreviewOut(Schema):
    """Number of matching messages, and the first of them before and after the edit."""

    count: int
    is_whole: bool = Field(description="Whether the count is exact (otherwise a lower bound)")
    looked_at: int = Field(0, description="Messages scanned, if the count is not exact")
    of: int = Field(0, description="Messages in the queue, if the count is not exact")
    seq: int | None = None
    id: str = ""
    is_hidden: bool = Field(False, description="Whether it is masked for the caller; such messages are not edited")
    changes: list[EditChangeOut] = []


class JobEditOut(Schema):
    """A change to each message, masked for the caller; of a body, its size."""

    name: str
    value: str


class JobOut(Schema):
    """State and progress of a job."""

    id: UUID
    name: str
    action: str
    queue: str
    target: str
    selector: str
    edit: list[JobEditOut]
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
        None, description="Resubmitted messages that failed again so far, or a lower bound; only for a single job"
    )

    @staticmethod
    def resolve_edit(job: Job, context: Any) -> list[dict[str, str]]:
        """Return the changes of an edit, masked for the caller."""
        changes = job_service.describe_edit(job, context["request"].user)
        return [{"name": name, "value": value} for name, value in changes]


class JobRateIn(RequestBody):
    """Rate in messages/s; 0 = no limit."""

    rate: Annotated[int, Field(ge=0, le=MAX_RATE)]


class OutcomeOut(Schema):
    """Outcome of a job for one message."""

    seq: int
    message_id: str
    new_id: str = Field(description="Id of the message that replaced it in an edit")
    outcome: str
    detail: str


class OutcomeQuery(PageQuery):
    """Filter of outcomes by state."""

    outcome: str = ""


@operation(router, "GET", "", Permission.BROWSE, response=Page[JobOut])
def list_jobs(request: HttpRequest, query: Paged) -> Any:
    """List jobs, newest first."""
    sees = visible(request.user, Permission.BROWSE)
    return page_of([job for job in job_service.without_edits(Job.objects.all())[:10_000] if sees(job.source)], query)


@operation(router, "POST", "", Permission.RESUBMIT, response={201: JobOut})
def start_job(request: HttpRequest, wanted: JobIn) -> Any:
    """Start a job, or request approval if the caller's limit is exceeded."""
    spec = wanted.to_spec()
    spec.check()
    gateway().depth(spec.queue)
    requests.check_request(request, spec)
    return Status(201, requests.submit(request, spec))


@operation(router, "POST", "/preview", Permission.EDIT, response=EditPreviewOut)
def preview_edit(request: HttpRequest, wanted: JobIn) -> Any:
    """Preview an edit: the first message before and after, and the number of messages. Nothing is sent."""
    spec = replace(wanted.to_spec(), reason="asked")
    if spec.edit is None:
        raise RequestRefused("edit: enter at least one change")
    spec.check()
    gateway().depth(spec.queue)
    requests.check_request(request, spec)
    requests.runs_immediately(request, spec)
    chosen = requests.choose_messages(spec)
    shown = asdict(chosen.tally)
    if (first := requests.first_preview(request, spec, chosen)) is None:
        return shown
    changed = [*first.rows, *([first.body] if first.body else [])]
    return shown | {
        "seq": first.seq, "id": first.id, "is_hidden": first.is_hidden,
        "changes": [each for each in changed if each.kind != "same"],
    }  # fmt: skip


@operation(router, "GET", "/{uuid:job_id}", Permission.BROWSE, response=JobOut)
def get_job(request: HttpRequest, job_id: UUID) -> Any:
    """Return one job."""
    job = requests.get_job_or_404(request, job_id)
    found = failed_again.count_failed_again(job)
    job.came_back = found and found.count
    return job


@operation(router, "GET", "/{uuid:job_id}/outcomes", Permission.BROWSE, response=Page[OutcomeOut])
def list_outcomes(request: HttpRequest, job_id: UUID, query: Annotated[OutcomeQuery, Query()]) -> Any:
    """List the outcome of each message of a job."""
    found, sees = requests.get_job_or_404(request, job_id).outcomes.all(), visible(request.user)
    page = page_of(found.filter(outcome=query.outcome) if query.outcome else found, query)
    for row in page["items"]:
        row.detail = job_service.visible_detail(row, sees)
    return page


@operation(router, "PUT", "/{uuid:job_id}/rate", Permission.RESUBMIT, response=JobOut)
def set_job_rate(request: HttpRequest, job_id: UUID, wanted: JobRateIn) -> Any:
    """Set the rate of a job from its next step on."""
    return requests.control(request, requests.get_job_or_404(request, job_id), "rate", wanted.rate)[0]


@operation(router, "POST", "/{uuid:job_id}/{action}", Permission.RESUBMIT, response=JobOut)
def control_job(
    request: HttpRequest, job_id: UUID, action: Literal["approve", "pause", "resume", "cancel", "retry-failed"]
) -> Any:
    """Approve, pause, resume or cancel a job, or retry its failed messages in a new job."""
    step = "retry" if action == "retry-failed" else action
    return requests.control(request, requests.get_job_or_404(request, job_id), step)[0]
