"""A worker's part of a job: step after step, each planned in the database before the broker is asked and noted after.

A worker may be killed anywhere. What it had planned and not noted stands as `under way`; who goes on asks the broker
again, which does nothing twice: a message that is no longer there was taken by that very step. A copy, and an edit that
keeps the original, leave no such trace: their outcome is then said to be unknown, and they are not repeated.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.model.stats_records import MessageOperationOutcome
from console.analyses.run_service import notify
from console.broker.gateway import gateway
from console.messages.jobs.job_service import ROWS, Outcome, State, rouse
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.permission_checks import refused_for
from console.ui.formatting.number_format import pluralize_count

logger = logging.getLogger(__name__)

#: Messages of one step.
STEP = 200
#: Messages looked at in one step, when few of them match.
SCAN = 10_000
#: Seconds after which a worker gives a job back, so that others have their turn.
SLICE = 20.0
#: For so long a job belongs to the worker that took it: longer than any step may take.
LEASE = timedelta(seconds=150)
#: How a message that was under way is told to have gone, after its step's answer was lost.
CONFIRMED = "it had left the queue when the job went on after an interruption"
LOST = "the answer was lost, and a copy leaves no trace in its queue: look at the target before it is copied again"


def work(job_id: str) -> str:
    """Do a slice of a job's work; its state then. Somebody else's job is left alone."""
    if not _claim(job_id):
        return "not mine"
    job = Job.objects.get(id=job_id)
    try:
        _slice(job)
    except StoreUnavailable as error:
        Job.objects.filter(id=job.id, state=State.RUNNING).update(state=State.QUEUED, note=f"{error}: tried again soon")
    except BrokerError as error:
        _end(job, State.FAILED, str(error))
    else:
        if Job.objects.filter(id=job.id, state=State.RUNNING).update(state=State.QUEUED, lease=None):
            job.refresh_from_db()
            rouse(job)
    Job.objects.filter(id=job.id).update(lease=None)
    notify(str(job.id))
    return Job.objects.get(id=job.id).state


def _claim(job_id: str) -> bool:
    now = timezone.now()
    free = Job.objects.filter(Q(lease=None) | Q(lease__lt=now), id=job_id, state__in=(State.QUEUED, State.RUNNING))
    if not free.update(state=State.RUNNING, lease=now + LEASE, note=""):
        return False
    Job.objects.filter(id=job_id, started=None).update(started=now)
    notify(job_id)
    return True


def _slice(job: Job) -> None:
    _reconcile(job)
    until, told = time.monotonic() + SLICE, 0.0
    while time.monotonic() < until:
        job.refresh_from_db()
        if job.state != State.RUNNING:
            return
        began, count = time.monotonic(), 0
        rows = list(job.outcomes.filter(outcome=Outcome.PLANNED)[: _step_size(job)])
        if rows:
            count = _step(job, rows)
        elif not _plan(job):
            job.refresh_from_db()
            _end(job, State.DONE, _doubts(job))
            return
        if time.monotonic() - told > 1:
            notify(str(job.id))
            told = time.monotonic()
        if job.rate:
            time.sleep(max(0.0, count / job.rate - (time.monotonic() - began)))


def _doubts(job: Job) -> str:
    """What of a job that is through is not known for certain, in words; "" when all is."""
    lost = job.outcomes.filter(outcome=Outcome.UNKNOWN).count()
    if not lost:
        return ""
    place = job.target or "where each goes"
    return (
        f"{pluralize_count(job.done, 'message')} done for certain. "
        f"A worker was lost while {pluralize_count(lost, 'message')} "
        f"{'was' if lost == 1 else 'were'} under way: {'it' if lost == 1 else 'they'} may be at {place} already. "
        "Look there first: to try them again may copy them a second time."
    )


def _step_size(job: Job) -> int:
    """About a second's worth of a rate, so that it flows evenly; few of what gets a large body."""
    most = min(STEP, job.rate or STEP)
    return job.change.portion(most) if job.change is not None else most


def _plan(job: Job) -> bool:
    """Find the next messages that match, and note them; whether there may be more."""
    if job.is_selection or job.after >= job.upto:
        return False
    page = gateway().browse(job.source, job.after, STEP, job.selector or None, SCAN)
    found = [each for each in page.messages if each.seq <= job.upto]
    after = page.next if page.next is not None and page.next < job.upto else job.upto
    with transaction.atomic():
        rows = [JobOutcome(job=job, seq=each.seq, message_id=each.id) for each in found]
        JobOutcome.objects.bulk_create(rows, ROWS, ignore_conflicts=True)
        Job.objects.filter(id=job.id).update(
            after=after, scanned=F("scanned") + page.scanned, lease=timezone.now() + LEASE
        )
    return True


def _step(job: Job, rows: Sequence[JobOutcome]) -> int:
    """Have the broker do it, and note how it ended for each message; how many."""
    denied = refused_for(job, rows)
    rest = [row for row in rows if row.seq not in denied]
    JobOutcome.objects.filter(pk__in=[row.pk for row in rest]).update(outcome=Outcome.UNDER_WAY)
    _note(job, rows, denied | (_ask(job, rest) if rest else {}))
    return len(rows)


def _ask(job: Job, rows: Sequence[JobOutcome]) -> dict[int, MessageOperationOutcome]:
    seqs = [row.seq for row in rows]
    found = gateway().step(job.action, job.source, seqs, job.goal, job.asked_by, job.edit)
    return {each.seq: each for each in found}


def _reconcile(job: Job) -> None:
    """What a worker that is gone had under way."""
    rows = list(job.outcomes.filter(outcome=Outcome.UNDER_WAY))
    if not rows:
        return
    logger.info("job %s goes on after an interruption: %d messages were under way", job.id, len(rows))
    if job.leaves_no_trace:
        _note(job, rows, {row.seq: MessageOperationOutcome(row.seq, Outcome.UNKNOWN, LOST) for row in rows})
        return
    found = _ask(job, rows)
    for seq, each in found.items():
        if each.outcome == Outcome.GONE:
            found[seq] = replace(each, outcome=Outcome.DONE, detail=CONFIRMED)
    _note(job, rows, found)


def _note(job: Job, rows: Sequence[JobOutcome], found: dict[int, MessageOperationOutcome]) -> None:
    now, alike, named = timezone.now(), defaultdict(list), []
    for row in rows:
        each = found.get(row.seq, MessageOperationOutcome(row.seq, Outcome.UNKNOWN, "the broker said nothing of it"))
        alike[each.outcome, each.detail].append(row.pk)
        if (each.id and each.id != row.message_id) or each.new_id:
            row.message_id, row.new_id = each.id or row.message_id, each.new_id
            named.append(row)
    done = sum(len(pks) for (outcome, _), pks in alike.items() if outcome == Outcome.DONE)
    with transaction.atomic():
        for (outcome, detail), pks in alike.items():  # most end alike: one statement for all of them
            JobOutcome.objects.filter(pk__in=pks).update(outcome=outcome, detail=detail, time=now)
        JobOutcome.objects.bulk_update(named, ["message_id", "new_id"], ROWS // 2)
        Job.objects.filter(id=job.id).update(
            done=F("done") + done, failed=F("failed") + len(rows) - done, lease=now + LEASE
        )


def _end(job: Job, state: str, note: str) -> None:
    Job.objects.filter(id=job.id, state=State.RUNNING).update(
        state=state, note=note, finished=timezone.now(), lease=None
    )


def rouse_lost() -> int:
    """Call workers to jobs that wait for one, or whose worker is gone; how many."""
    now = timezone.now()
    lost = Job.objects.filter(Q(lease=None) | Q(lease__lt=now), state__in=(State.QUEUED, State.RUNNING))
    for job in lost:
        Job.objects.filter(id=job.id, state=State.RUNNING).update(state=State.QUEUED)
        job.refresh_from_db()
        rouse(job)
    return len(lost)
