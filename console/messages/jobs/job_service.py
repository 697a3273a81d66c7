"""Creates, approves, pauses, resumes and cancels jobs on messages, and reports their progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from brokerapp.engine.editing.resubmit_target import edit_target, origin_destination
from brokerapp.errors import RequestRefused, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.access import redaction
from console.access.masking import mask_values
from console.access.permissions import AnyUser
from console.access.roles import Permission, Sees
from console.analyses.run_service import notify
from console.broker.gateway import gateway
from console.broker.task_queue import enqueue
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.spec import MAX_RATE, PERMISSIONS, SMALL_JOB, JobSpec, permissions_for
from console.ui.formatting import number_format
from console.ui.formatting.uuids import valid_ids

State, Action, Outcome = Job.State, Job.Action, JobOutcome.Outcome

#: Individually selected messages that are read to find their targets.
MAX_CHECKED = 200
#: Rows written at once: the limit of values in one SQLite statement.
BATCH_ROWS = 500
#: How long finished jobs and their outcomes are kept.
RETENTION = timedelta(days=30)

#: Actions that remove messages from their queue, with their participles.
REMOVING: dict[str, str] = {
    Action.MOVE: "moved", Action.RETRY: "resubmitted", Action.REMOVE: "deleted", Action.EDIT: "edited",
}  # fmt: skip


def start(spec: JobSpec, asked_by: str, needs_approval: bool = False, wake: bool = True) -> Job:
    """Create a job, queued or awaiting approval. Raises RequestRefused, SelectorSyntaxError.

    Without `wake` no worker is called: the caller runs the job itself.
    """
    spec.check()
    newest, depth = gateway().last(spec.queue), len(spec.seqs) or gateway().depth(spec.queue)
    job = Job(
        name=spec.name.strip()[:200] or spec.default_name, action=spec.action, queue=str(spec.queue),
        target=str(spec.target) if spec.target else "", selector=spec.selector, is_selection=bool(spec.seqs),
        upto=min(spec.upto or newest, newest), rate=spec.rate, reason=spec.reason.strip(), asked_by=asked_by,
        expected=depth,
        state=State.ASKED if needs_approval else State.QUEUED,
        edit=spec.edit.to_json() if spec.edit else None,
    )  # fmt: skip
    with transaction.atomic():
        job.save(force_insert=True)
        JobOutcome.objects.bulk_create([JobOutcome(job=job, seq=seq) for seq in sorted(set(spec.seqs))], BATCH_ROWS)
    if wake and not needs_approval:
        wake_worker(job)
    return job


def job_permissions(job: Job) -> tuple[Permission, ...]:
    """Return the permissions that a job requires, the most specific first."""
    return permissions_for(job.action, job.is_selection and job.expected <= SMALL_JOB)


def permissions_to(action: str, job: Job) -> tuple[Permission, ...]:
    """Return the permissions required to control a job by this action."""
    return PERMISSIONS[job.action] if action == "approve" else job_permissions(job)


def affected_destinations(job: Job) -> list[Destination]:
    """Return the destinations for which permission is required: source and target of a job."""
    return [job.source, *([job.goal] if job.goal else [])]


def selected_targets(spec: JobSpec) -> set[Destination]:
    """Return the targets of individually selected messages; the permission is required there, too."""
    if spec.target is not None:
        return {spec.target}
    if not spec.varies_by_message:
        return set()
    chosen = (gateway().message(spec.queue, seq).messages for seq in spec.seqs[:MAX_CHECKED])
    homes = (target_of(spec.action, message, spec.queue) for found in chosen for message in found)
    return {each for each in homes if each is not None}


def target_of(action: str, message: BrowsedMessage, queue: Destination) -> Destination | None:
    """Return the target of a resubmitted or edited message, as the node decides it; None: not recorded.

    Raises InvalidDestination.
    """
    if action == Action.EDIT:
        return edit_target(message.headers, message.came_from, queue)
    return origin_destination(message.came_from)


def approve(job: Job, by: str) -> bool:
    """Approve a job; return whether it was still awaiting approval."""
    return _change(job, {State.ASKED}, state=State.QUEUED, approved_by=by)


def pause(job: Job, by: str) -> bool:
    """Pause a job after its current step; return whether it was running."""
    return _change(job, {State.QUEUED, State.RUNNING}, state=State.PAUSED, note=f"Paused by {by}.")


def resume(job: Job) -> bool:
    """Resume a paused job where it stopped; return whether it was paused."""
    return _change(job, {State.PAUSED}, state=State.QUEUED, note="")


def cancel(job: Job, by: str) -> bool:
    """Cancel a job after its current step; finished messages are not reverted."""
    unfinished = frozenset(State) - Job.FINAL
    return _change(job, unfinished, state=State.CANCELLED, note=f"Cancelled by {by}.", finished=timezone.now())


def set_rate(job: Job, rate: int) -> bool:
    """Set the rate of a job in messages/s from its next step on; 0: no limit."""
    if not 0 <= rate <= MAX_RATE:
        raise RequestRefused(f"rate must be a whole number from 0 (no limit) to {MAX_RATE} messages/s")
    return _change(job, frozenset(State) - Job.FINAL, rate=rate)


def _change(job: Job, before: frozenset[str] | set[str], **fields: Any) -> bool:
    """Update a job if it is in one of these states; one statement, because a worker may finish it meanwhile."""
    changed = Job.objects.filter(id=job.id, state__in=before).update(**fields) == 1
    job.refresh_from_db()
    if changed:
        wake_worker(job)
    return changed


def wake_worker(job: Job) -> None:
    """Queue a task for a job and update its open pages. A worker that starts later finds queued jobs itself."""
    notify(str(job.id))
    if job.state == State.QUEUED:
        try:
            enqueue("console.work", str(job.id))
        except StoreUnavailable as error:
            Job.objects.filter(id=job.id).update(note=str(error))


def retry_failed(job: Job, by: str) -> Job:
    """Create a new job for the failed messages of a job."""
    failed = JobOutcome.objects.filter(job=job, outcome__in=JobOutcome.FAILED)
    again = Job(
        name=f"{job.name} (failed messages)"[:200], action=job.action, queue=job.queue, target=job.target,
        is_selection=True, upto=job.upto, rate=job.rate, reason=job.reason, asked_by=by, part_of=job,
        expected=failed.count(), edit=job.edit,
    )  # fmt: skip
    with transaction.atomic():
        again.save(force_insert=True)
        rows = failed.values_list("seq", "message_id").iterator(BATCH_ROWS)
        JobOutcome.objects.bulk_create((JobOutcome(job=again, seq=seq, message_id=id) for seq, id in rows), BATCH_ROWS)
    wake_worker(again)
    return again


def purge_old() -> int:
    """Delete jobs that finished before the retention period; return how many."""
    old = Job.objects.filter(state__in=Job.FINAL, finished__lt=timezone.now() - RETENTION)
    return old.delete()[1].get("console.Job", 0)


# -- progress and outcomes


def describe_edit(job: Job, user: AnyUser) -> list[tuple[str, str]]:
    """Return the changes of an edit job, with values masked for the user."""
    edit = job.change
    return edit.told(mask_values(user, edit.set, job.source)) if edit is not None else []


def removed_by(queue: Destination, seq: int) -> str:
    """Describe which operator's job removed a message from its queue; "" if none did."""
    found = JobOutcome.objects.filter(job__queue=str(queue), job__action__in=REMOVING, seq=seq, outcome=Outcome.DONE)
    found = found.exclude(job__edit__keeps=True)
    row = found.select_related("job").order_by("-time").first()
    if row is None:
        return ""
    return f"{REMOVING[row.job.action].capitalize()} by {row.job.asked_by} {number_format.format_relative(row.time)}"


def not_found_text(queue: Destination, seq: int) -> str:
    """Return the text for a message that is no longer in its queue."""
    who = removed_by(queue, seq)
    return f"Message not found. {who or 'It was consumed, deleted or has expired'}."


def visible_detail(row: JobOutcome, sees: Sees) -> str:
    """Return the target of a message or the error, without hidden names."""
    if row.outcome == Outcome.GONE:
        return removed_by(row.job.source, row.seq) or "consumed or expired"
    return (
        redaction.redact_list(row.detail, sees)
        if row.outcome == Outcome.DONE
        else redaction.redact_sentence(row.detail, sees)
    )


def find_jobs(ids: Sequence[str]) -> QuerySet[Job]:
    """Return the jobs with these ids; invalid ids are ignored."""
    return without_edits(Job.objects.filter(id__in=valid_ids(ids)))


def without_edits(found: QuerySet[Job]) -> QuerySet[Job]:
    """Defer the edit of each job, which may have a megabyte and is not needed in lists."""
    return found.defer("edit")


def live_cells(argument: str, rows: Sequence[str], sees: Callable[[Destination], bool]) -> dict[str, Any]:
    """Return the live cells of one job, or of the rows of the job list, for visible queues."""
    found = [job for job in find_jobs([argument] if argument else rows) if sees(job.source)]
    if argument:
        return {name: text for job in found for name, text in job_cells(job).items()}
    return {f"{job.id}#{name}": text for job in found for name, text in job_cells(job).items()}


def _progress(job: Job) -> float:
    """Return the share of messages that are scanned or finished, from 0 to 1."""
    if job.state == State.DONE:
        return 1.0
    if job.is_selection:
        seen = job.done + job.failed
    else:  # at most a step's messages are planned ahead
        seen = job.scanned - job.outcomes.filter(outcome__in=JobOutcome.WAITING).count()
    return max(0.0, min(1.0, seen / job.expected)) if job.expected else 0.0


def job_cells(job: Job) -> dict[str, Any]:
    """Return the state and progress of a job as texts of its cells."""
    dealt, share = job.done + job.failed, _progress(job)
    seconds = ((job.finished or timezone.now()) - job.started).total_seconds() if job.started else 0.0
    is_moving = job.state in (State.QUEUED, State.RUNNING) and seconds >= 1 and 0 < share < 1
    return {
        "state": job.state,
        "label": State(job.state).label,
        "progress": round(share, 3),
        "percent": f"{share:.0%}",
        "scanned": number_format.format_integer(max(job.scanned, dealt)),
        "done": number_format.format_integer(job.done),
        "failed": number_format.format_integer(job.failed),
        "has_failed": bool(job.failed),
        "speed": number_format.format_rate(dealt / seconds) if seconds >= 1 and not job.is_final else "–",
        "took": number_format.format_duration(seconds),
        "left": f"about {number_format.format_duration(seconds / share * (1 - share))} left" if is_moving else "",
        "note": job.note,
        "final": job.is_final,
    }
