"""Jobs on messages as people handle them: ask, approve, pause, go on, cancel, retry what failed; and how one stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from brokerapp.engine.editing.resubmit_target import came_from, home_of
from brokerapp.errors import RequestRefused, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.access import redaction
from console.access.masking import mask_values
from console.access.permissions import AnyUser
from console.access.roles import Sees, Verb
from console.analyses.run_service import notify
from console.broker.gateway import gateway
from console.broker.task_queue import enqueue
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.spec import FEW, MAX_RATE, NEEDS, Wish, verbs_for
from console.ui.formatting import number_format
from console.ui.formatting.uuids import valid_ids

State, Action, Outcome = Job.State, Job.Action, JobOutcome.Outcome

#: Of messages chosen one by one, how many are looked at to know where they would go.
MAX_LOOKED_AT = 200
#: Rows written at once: SQLite takes so many values in one statement.
ROWS = 500
#: Jobs that are over are kept so long, with their outcomes.
KEPT = timedelta(days=30)

#: Actions by which messages leave their queue, and what somebody did who took one, in words.
LEAVING: dict[str, str] = {
    Action.MOVE: "moved", Action.RETRY: "resubmitted", Action.REMOVE: "deleted", Action.EDIT: "edited",
}  # fmt: skip


def start(wish: Wish, asked_by: str, needs_approval: bool = False, call: bool = True) -> Job:
    """Let a worker do it, or wait for somebody with the right. Raises RequestRefused, SelectorSyntaxError.

    Without a `call` for a worker whoever asks does the work.
    """
    wish.check()
    newest, depth = gateway().last(wish.queue), len(wish.seqs) or gateway().depth(wish.queue)
    job = Job(
        name=wish.name.strip()[:200] or wish.title, action=wish.action, queue=str(wish.queue),
        target=str(wish.target) if wish.target else "", selector=wish.selector, is_selection=bool(wish.seqs),
        upto=min(wish.upto or newest, newest), rate=wish.rate, reason=wish.reason.strip(), asked_by=asked_by,
        expected=depth,
        state=State.ASKED if needs_approval else State.QUEUED,
        edit=wish.edit.to_json() if wish.edit else None,
    )  # fmt: skip
    with transaction.atomic():
        job.save(force_insert=True)
        JobOutcome.objects.bulk_create([JobOutcome(job=job, seq=seq) for seq in sorted(set(wish.seqs))], ROWS)
    if call and not needs_approval:
        rouse(job)
    return job


def verbs_of(job: Job) -> tuple[Verb, ...]:
    """The rights that work like this job's needs, the one that says what it is first."""
    return verbs_for(job.action, job.is_selection and job.expected <= FEW)


def verbs_to(action: str, job: Job) -> tuple[Verb, ...]:
    """The rights it takes to do this to the job."""
    return NEEDS[job.action] if action == "approve" else verbs_of(job)


def places(job: Job) -> list[Destination]:
    """Where the right to do something to a job must be had: where its messages are, and where they go."""
    return [job.source, *([job.goal] if job.goal else [])]


def targets(wish: Wish) -> set[Destination]:
    """Where messages chosen one by one go: who may send them there must have the right there too."""
    if wish.target is not None:
        return {wish.target}
    if not wish.returns:
        return set()
    chosen = (gateway().message(wish.queue, seq).messages for seq in wish.seqs[:MAX_LOOKED_AT])
    homes = (home(wish.action, message, wish.queue) for found in chosen for message in found)
    return {each for each in homes if each is not None}


def home(action: str, message: BrowsedMessage, queue: Destination) -> Destination | None:
    """Where a message goes by itself, resubmitted or edited; None: it does not say. As the node decides it.

    Raises InvalidDestination.
    """
    if action == Action.EDIT:
        return home_of(message.headers, message.came_from, queue)
    return came_from(message.came_from)


def approve(job: Job, by: str) -> bool:
    """Let a job that was asked for be done; whether it still waited for that."""
    return _change(job, {State.ASKED}, state=State.QUEUED, approved_by=by)


def pause(job: Job, by: str) -> bool:
    """Let it rest after the step under way."""
    return _change(job, {State.QUEUED, State.RUNNING}, state=State.PAUSED, note=f"Paused by {by}.")


def go_on(job: Job) -> bool:
    """Go on with a job that paused, at its place."""
    return _change(job, {State.PAUSED}, state=State.QUEUED, note="")


def cancel(job: Job, by: str) -> bool:
    """End it after the step under way. What is done stays done."""
    unfinished = frozenset(State) - Job.FINAL
    return _change(job, unfinished, state=State.CANCELLED, note=f"Cancelled by {by}.", finished=timezone.now())


def slow_down(job: Job, rate: int) -> bool:
    """Choose another rate, from the next step on."""
    if not 0 <= rate <= MAX_RATE:
        raise RequestRefused(f"{rate} messages a second is none of 0 (no limit) to {MAX_RATE}")
    return _change(job, frozenset(State) - Job.FINAL, rate=rate)


def _change(job: Job, before: frozenset[str] | set[str], **fields: Any) -> bool:
    """The condition is in the update itself: a worker may end the job in this very moment."""
    changed = Job.objects.filter(id=job.id, state__in=before).update(**fields) == 1
    job.refresh_from_db()
    if changed:
        rouse(job)
    return changed


def rouse(job: Job) -> None:
    """Call a worker to a job that waits for one. A worker that is not there now finds it when it starts."""
    notify(str(job.id))
    if job.state == State.QUEUED:
        try:
            enqueue("console.work", str(job.id))
        except StoreUnavailable as error:
            Job.objects.filter(id=job.id).update(note=str(error))


def retry_failed(job: Job, by: str) -> Job:
    """A new job for what failed in this one."""
    failed = JobOutcome.objects.filter(job=job, outcome__in=JobOutcome.FAILED)
    again = Job(
        name=f"{job.name}: what failed"[:200], action=job.action, queue=job.queue, target=job.target,
        is_selection=True, upto=job.upto, rate=job.rate, reason=job.reason, asked_by=by, part_of=job,
        expected=failed.count(), edit=job.edit,
    )  # fmt: skip
    with transaction.atomic():
        again.save(force_insert=True)
        rows = failed.values_list("seq", "message_id").iterator(ROWS)
        JobOutcome.objects.bulk_create((JobOutcome(job=again, seq=seq, message_id=id) for seq, id in rows), ROWS)
    rouse(again)
    return again


def forget_old() -> int:
    """Forget jobs that ended long ago; how many."""
    old = Job.objects.filter(state__in=Job.FINAL, finished__lt=timezone.now() - KEPT)
    return old.delete()[1].get("console.Job", 0)


# -- how jobs stand


def edit_told(job: Job, user: AnyUser) -> list[tuple[str, str]]:
    """What a job changes of each message: its values as this user would see them on such a message."""
    edit = job.change
    return edit.told(mask_values(user, edit.set, job.source)) if edit is not None else []


def taken_by(queue: Destination, seq: int) -> str:
    """Who took a message out of its queue, how and when, in words; "" where no operator did by a job."""
    found = JobOutcome.objects.filter(job__queue=str(queue), job__action__in=LEAVING, seq=seq, outcome=Outcome.DONE)
    found = found.exclude(job__edit__keeps=True)
    row = found.select_related("job").order_by("-time").first()
    if row is None:
        return ""
    return f"{row.job.asked_by} {LEAVING[row.job.action]} it {number_format.format_relative(row.time)}"


def gone(queue: Destination, seq: int) -> str:
    """The sentence on a message that is not in its queue any more."""
    who = taken_by(queue, seq)
    return f"This message is gone: {who or 'it was consumed, it expired, or somebody removed it'}."


def detail_of(row: JobOutcome, sees: Sees) -> str:
    """Where a message came to, or why not, as far as somebody may know."""
    if row.outcome == Outcome.GONE:
        return taken_by(row.job.source, row.seq) or "a consumer took it, or it expired"
    return (
        redaction.redact_list(row.detail, sees)
        if row.outcome == Outcome.DONE
        else redaction.redact_sentence(row.detail, sees)
    )


def find(ids: Sequence[str]) -> QuerySet[Job]:
    """The jobs of these ids, those that are ids."""
    return listed(Job.objects.filter(id__in=valid_ids(ids)))


def listed(found: QuerySet[Job]) -> QuerySet[Job]:
    """Jobs for a list: what each changes of messages, a megabyte perhaps, is read where it is asked for."""
    return found.defer("edit")


def cells(argument: str, rows: Sequence[str], sees: Callable[[Destination], bool]) -> dict[str, Any]:
    """The live cells of one job (by id), or of the rows of the list of jobs; those of queues that one sees."""
    found = [job for job in find([argument] if argument else rows) if sees(job.source)]
    if argument:
        return {name: text for job in found for name, text in cells_of(job).items()}
    return {f"{job.id}#{name}": text for job in found for name, text in cells_of(job).items()}


def _share(job: Job) -> float:
    """How much of it is done with, 0 to 1: what was looked at and is not wanted, and what is dealt with."""
    if job.state == State.DONE:
        return 1.0
    if job.is_selection:
        seen = job.done + job.failed
    else:  # at most a step's messages are planned ahead
        seen = job.scanned - job.outcomes.filter(outcome__in=JobOutcome.WAITING).count()
    return max(0.0, min(1.0, seen / job.expected)) if job.expected else 0.0


def cells_of(job: Job) -> dict[str, Any]:
    """How one job stands, in texts."""
    dealt, share = job.done + job.failed, _share(job)
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
        "left": f"about {number_format.format_duration(seconds / share * (1 - share))} to go" if is_moving else "",
        "note": job.note,
        "final": job.is_final,
    }
