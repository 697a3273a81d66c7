"""Runs jobs in a worker, step by step: each step is planned in the database, sent to the broker, then recorded.

A worker may be killed at any point. Messages that were sent and not recorded are `under way`; the next worker repeats
the step, which has no effect twice: a message that is no longer in the queue was removed by that step. A copy, and an
edit that keeps the original, cannot be recognized like this: their outcome becomes unknown, and they are not repeated.
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
from console.messages.jobs.job_service import BATCH_ROWS, Outcome, State, wake_worker
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.permission_checks import refused_messages
from console.ui.formatting.number_format import pluralize_count

logger = logging.getLogger(__name__)

#: Messages of one step.
STEP_SIZE = 200
#: Messages scanned in one step if few of them match.
SCAN = 10_000
#: Seconds after which a worker requeues a job, so that others get their turn.
SLICE_SECONDS = 20.0
#: How long a worker owns a job exclusively; longer than any step may take.
LEASE = timedelta(seconds=150)
#: Details of messages whose step was interrupted before its answer was recorded.
CONFIRMED = "had left the queue when the job resumed after an interruption"
LOST = "interrupted before the result was recorded; check the target before copying again"


def run_slice(job_id: str) -> str:
    """Run a slice of a job and return its state; a job of another worker is skipped."""
    if not _claim(job_id):
        return "not mine"
    job = Job.objects.get(id=job_id)
    try:
        _slice(job)
    except StoreUnavailable as error:
        Job.objects.filter(id=job.id, state=State.RUNNING).update(state=State.QUEUED, note=f"{error}. Retrying soon.")
    except BrokerError as error:
        _end(job, State.FAILED, str(error))
    else:
        if Job.objects.filter(id=job.id, state=State.RUNNING).update(state=State.QUEUED, lease=None):
            job.refresh_from_db()
            wake_worker(job)
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
    until, told = time.monotonic() + SLICE_SECONDS, 0.0
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
            _end(job, State.DONE, _unknown_outcomes(job))
            return
        if time.monotonic() - told > 1:
            notify(str(job.id))
            told = time.monotonic()
        if job.rate:
            time.sleep(max(0.0, count / job.rate - (time.monotonic() - began)))


def _unknown_outcomes(job: Job) -> str:
    """Describe the messages of a finished job with unknown outcome; "" without any."""
    lost = job.outcomes.filter(outcome=Outcome.UNKNOWN).count()
    if not lost:
        return ""
    place = job.target or "their targets"
    return (
        f"{pluralize_count(job.done, 'message')} done. "
        f"The job was interrupted while {pluralize_count(lost, 'message')} "
        f"{'was' if lost == 1 else 'were'} being processed; {'it' if lost == 1 else 'they'} may already be in {place}. "
        "Check there first: a retry may create duplicates."
    )


def _step_size(job: Job) -> int:
    """Return the number of messages of one step: about one second of the rate, fewer for a large new body."""
    most = min(STEP_SIZE, job.rate or STEP_SIZE)
    return job.change.batch_size(most) if job.change is not None else most


def _plan(job: Job) -> bool:
    """Find and record the next matching messages; return whether there may be more."""
    if job.is_selection or job.after >= job.upto:
        return False
    page = gateway().browse(job.source, job.after, STEP_SIZE, job.selector or None, SCAN)
    found = [each for each in page.messages if each.seq <= job.upto]
    after = page.next if page.next is not None and page.next < job.upto else job.upto
    with transaction.atomic():
        rows = [JobOutcome(job=job, seq=each.seq, message_id=each.id) for each in found]
        JobOutcome.objects.bulk_create(rows, BATCH_ROWS, ignore_conflicts=True)
        Job.objects.filter(id=job.id).update(
            after=after, scanned=F("scanned") + page.scanned, lease=timezone.now() + LEASE
        )
    return True


def _step(job: Job, rows: Sequence[JobOutcome]) -> int:
    """Run one step in the broker and record the outcome of each message; return their number."""
    denied = refused_messages(job, rows)
    rest = [row for row in rows if row.seq not in denied]
    JobOutcome.objects.filter(pk__in=[row.pk for row in rest]).update(outcome=Outcome.UNDER_WAY)
    _record_outcomes(job, rows, denied | (_execute(job, rest) if rest else {}))
    return len(rows)


def _execute(job: Job, rows: Sequence[JobOutcome]) -> dict[int, MessageOperationOutcome]:
    seqs = [row.seq for row in rows]
    found = gateway().step(job.action, job.source, seqs, job.goal, job.asked_by, job.edit)
    return {each.seq: each for each in found}


def _reconcile(job: Job) -> None:
    """Resolve the messages that were under way when a previous worker stopped."""
    rows = list(job.outcomes.filter(outcome=Outcome.UNDER_WAY))
    if not rows:
        return
    logger.info("job %s resumes after an interruption: %d messages were being processed", job.id, len(rows))
    if job.leaves_no_trace:
        _record_outcomes(job, rows, {row.seq: MessageOperationOutcome(row.seq, Outcome.UNKNOWN, LOST) for row in rows})
        return
    found = _execute(job, rows)
    for seq, each in found.items():
        if each.outcome == Outcome.GONE:
            found[seq] = replace(each, outcome=Outcome.DONE, detail=CONFIRMED)
    _record_outcomes(job, rows, found)


def _record_outcomes(job: Job, rows: Sequence[JobOutcome], found: dict[int, MessageOperationOutcome]) -> None:
    now, alike, named = timezone.now(), defaultdict(list), []
    for row in rows:
        each = found.get(row.seq, MessageOperationOutcome(row.seq, Outcome.UNKNOWN, "the broker reported no outcome"))
        alike[each.outcome, each.detail].append(row.pk)
        if (each.id and each.id != row.message_id) or each.new_id:
            row.message_id, row.new_id = each.id or row.message_id, each.new_id
            named.append(row)
    done = sum(len(pks) for (outcome, _), pks in alike.items() if outcome == Outcome.DONE)
    with transaction.atomic():
        for (outcome, detail), pks in alike.items():  # most have the same outcome: one statement each
            JobOutcome.objects.filter(pk__in=pks).update(outcome=outcome, detail=detail, time=now)
        JobOutcome.objects.bulk_update(named, ["message_id", "new_id"], BATCH_ROWS // 2)
        Job.objects.filter(id=job.id).update(
            done=F("done") + done, failed=F("failed") + len(rows) - done, lease=now + LEASE
        )


def _end(job: Job, state: str, note: str) -> None:
    Job.objects.filter(id=job.id, state=State.RUNNING).update(
        state=state, note=note, finished=timezone.now(), lease=None
    )


def wake_lost_jobs() -> int:
    """Queue tasks for jobs that wait for a worker or whose worker stopped; return their number."""
    now = timezone.now()
    lost = Job.objects.filter(Q(lease=None) | Q(lease__lt=now), state__in=(State.QUEUED, State.RUNNING))
    for job in lost:
        Job.objects.filter(id=job.id, state=State.RUNNING).update(state=State.QUEUED)
        job.refresh_from_db()
        wake_worker(job)
    return len(lost)
