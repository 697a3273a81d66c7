"""Creates and controls jobs for pages and the REST API, with permission checks and audit entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage, MatchCount
from brokerapp.selectors import compile_selector
from console.access.masking import check_selector, mask_headers_of, mask_message
from console.access.permissions import Permission, has_permission, is_restricted, require, visible
from console.access.roles import everything
from console.audit import trail
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages import trace_reader
from console.messages.jobs import job_service
from console.messages.jobs.impact import MAX_ROUTED, ImpactReport, PlannedSend, assess_impact
from console.messages.jobs.models import Job
from console.messages.jobs.preview import EditPreview, planned_send, preview_edit, routed_headers
from console.messages.jobs.spec import SMALL_JOB, SMALL_JOB_PERMISSIONS, JobSpec
from console.messages.jobs.worker import run_slice
from console.ui.formatting.number_format import pluralize_count

Action = Job.Action


@dataclass(frozen=True, slots=True)
class ChosenMessages:
    """The messages of a job: a sample and their number."""

    sample: list[BrowsedMessage]
    tally: MatchCount
    upto: int = 0  #: number of the queue's newest message when they were counted

    @property
    def count(self) -> int:
        """Return the number of messages, or a lower bound."""
        return self.tally.count


def get_job_or_404(request: HttpRequest, job_id: UUID | str) -> Job:
    """Return a job on a queue that the user may browse. Raises Http404."""
    job = get_object_or_404(Job, id=job_id)
    if not has_permission(request.user, Permission.BROWSE, job.source):
        raise Http404("Job not found. It may have been deleted.")
    return job


def check_request(request: HttpRequest, spec: JobSpec) -> None:
    """Raise if the selector or the edit would reveal content that the user may not see."""
    _require_read(request, spec.action, spec.queue)
    if spec.selector:
        check_selector(request.user, compile_selector(spec.selector), spec.queue)


def _require_read(request: HttpRequest, action: str, queue: Destination) -> None:
    """Require read permission for edits: an edited message loses the history that masking rules depend on."""
    if action == Action.EDIT:
        require(request, Permission.READ, queue)


def runs_immediately(request: HttpRequest, spec: JobSpec) -> bool:
    """Return whether a job runs without approval. Raises PermissionDenied if not even a small job is allowed."""
    lacked = [permission for permission in spec.permissions if not has_permission(request.user, permission, spec.queue)]
    enough = SMALL_JOB_PERMISSIONS.get(spec.action)
    if lacked and enough is not None:
        require(request, enough, spec.queue)
        return False
    for permission in spec.permissions:
        require(request, permission, spec.queue)
    return True


def submit(request: HttpRequest, spec: JobSpec) -> Job:
    """Create a job and write an audit entry. A small job runs now, a larger one in a worker, others after approval."""
    is_allowed = runs_immediately(request, spec)
    some = is_allowed and is_restricted(request.user) and visible(request.user, spec.permission) is not everything
    if some and spec.varies_by_message and not 0 < len(spec.seqs) <= job_service.MAX_CHECKED:
        raise RequestRefused(
            f"a token limited to some destinations resubmits at most {job_service.MAX_CHECKED} selected messages,"
            " because the targets of others are not known in advance"
        )
    if is_allowed:
        for target in job_service.selected_targets(spec):
            for permission in spec.permissions:
                require(request, permission, target)
        refuse_paused_targets(impact_of(request, spec, choose_messages(spec)) if spec.action == Action.RETRY else None)
    about: dict[str, Any] = {
        "target": str(spec.target or ""), "selector": spec.selector, "messages": list(spec.seqs)[:100],
    }  # fmt: skip
    if spec.edit is not None:
        about["edit"] = "; ".join(f"{name}: {value}" for name, value in spec.edit.told())
    with trail.recording(request, spec.action, spec.queue, before=about) as change:
        is_few = is_allowed and 0 < len(spec.seqs) <= SMALL_JOB
        job = job_service.start(spec, request.user.get_username(), needs_approval=not is_allowed, wake=not is_few)
        if is_few:  # a few messages do not wait for a worker
            run_slice(str(job.id))
            job.refresh_from_db()
        change.after = {"job": str(job.id), "state": job.state, "done": job.done, "reason": spec.reason}
        if job.state == Job.State.ASKED:
            change.outcome = AuditEntry.Outcome.ASKED
    return job


def choose_messages(spec: JobSpec) -> ChosenMessages:
    """Read a sample of a job's messages and count them; an invalid selector matches none."""
    broker = gateway()
    if spec.seqs:
        return ChosenMessages(_selected_messages(spec), MatchCount(len(spec.seqs)))
    upto = broker.last(spec.queue)
    try:
        page = broker.browse(spec.queue, 0, MAX_ROUTED, spec.selector or None)
    except RequestRefused:
        return ChosenMessages([], MatchCount(0))
    return ChosenMessages(page.messages, broker.count(spec.queue, spec.selector or None, page), upto)


def impact_of(request: HttpRequest, spec: JobSpec, found: ChosenMessages) -> ImpactReport | None:
    """Assess where a job's messages would go, limited to what the user may see; None without a target."""
    if spec.action == Action.REMOVE or not (spec.varies_by_message or spec.target):
        return None
    sends = [planned_send(message, spec) for message in found.sample]
    report = _impact(request, spec.queue, found.sample, sends, found.count)
    if spec.varies_by_message and report.checked < report.total:
        report.notes.append(
            f"Each message has its own target. Messages after the first {report.checked} may go elsewhere."
        )
    return report


def impact_of_edit(
    request: HttpRequest, queue: Destination, message: BrowsedMessage, changed: OperatorMessage
) -> ImpactReport:
    """Assess where `changed` would go if it replaced this message now. Raises InvalidDestination."""
    sends = [(each, routed_headers(changed)) for each in Destination.parse_list(changed.destination)]
    return _impact(request, queue, [message] * len(sends), sends, len(sends))


def _impact(
    request: HttpRequest, queue: Destination, found: Sequence[BrowsedMessage], sends: Sequence[PlannedSend], of: int
) -> ImpactReport:
    return assess_impact(
        found, sends, of, gateway().routes, trace_reader.acknowledged_in, mirror().current().stats.get,
        visible(request.user),
        lambda message: mask_headers_of(request.user, message, queue),
    )  # fmt: skip


def first_preview(request: HttpRequest, spec: JobSpec, found: ChosenMessages) -> EditPreview | None:
    """Return the first message before and after an edit, hidden if masked; None without a message."""
    if spec.edit is None or not found.sample:
        return None
    shown = mask_message(request.user, first := found.sample[0], spec.queue)
    return preview_edit(first, spec, is_hidden=not shown.is_unmasked)


def refuse_paused_targets(found: ImpactReport | None) -> None:
    """Raise RequestRefused if messages would be resubmitted to a paused queue, where nothing would consume them.

    Moving them there is possible.
    """
    paused = [each for group in (found.groups if found else ()) for each in group.targets if each.is_paused]
    if paused:
        place = str(paused[0].destination) if paused[0].is_visible else "a queue that you may not see"
        stored = pluralize_count(paused[0].stats.QueueSize if paused[0].stats else 0, "message")
        raise RequestRefused(f"{place} is paused ({stored} stored). Resume it first, or move the messages there")


def spec_of(job: Job) -> JobSpec:
    """Return the specification of a job with a sample of its messages, for the approver."""
    seqs = tuple(job.outcomes.values_list("seq", flat=True)[:MAX_ROUTED]) if job.is_selection else ()
    return JobSpec(job.action, job.source, job.goal, seqs, job.selector, edit=job.change)


def impact_of_job(request: HttpRequest, job: Job) -> ImpactReport | None:
    """Assess where the remaining messages of a job would go."""
    spec = spec_of(job)
    return impact_of(request, spec, choose_messages(spec))


def _selected_messages(spec: JobSpec) -> list[BrowsedMessage]:
    broker = gateway()
    return [message for seq in spec.seqs[:MAX_ROUTED] for message in broker.message(spec.queue, seq).messages]


def control(request: HttpRequest, job: Job, action: str, rate: int = 0) -> tuple[Job, bool]:
    """Approve, pause, resume, throttle or cancel a job, or retry its failed messages in a new job.

    Returns the job and whether anything changed; a finished job does not change. Raises Http404 for another action.
    """
    for place in job_service.affected_destinations(job):
        for permission in job_service.permissions_to(action, job):
            require(request, permission, place)
    if action in ("approve", "retry"):
        _require_read(request, job.action, job.source)
    by, before = request.user.get_username(), {"job": str(job.id), "state": job.state}
    with trail.recording(request, f"{action} job", job.queue, before=before) as change:
        is_done = True
        match action:
            case "approve":
                refuse_paused_targets(impact_of_job(request, job) if job.action == Action.RETRY else None)
                is_done = job_service.approve(job, by)
            case "pause":
                is_done = job_service.pause(job, by)
            case "resume":
                is_done = job_service.resume(job)
            case "cancel":
                is_done = job_service.cancel(job, by)
            case "rate":
                is_done = job_service.set_rate(job, rate)
            case "retry":
                job = job_service.retry_failed(job, by)
            case _:
                raise Http404(f"Unknown action {action!r}.")
        change.after = {"job": str(job.id), "state": job.state}
    return job, is_done
