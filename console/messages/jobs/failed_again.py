"""Counts resubmitted messages of a job that failed again and returned to their dead-letter queue."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from brokerapp.errors import BrokerError
from brokerapp.model.stats_records import MatchCount
from console.broker.gateway import SCAN, gateway
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.spec import RESENDING

#: Messages read at once: the limit of ids in one database statement.
PAGE = 500
#: Selector of resubmitted messages.
RESUBMITTED = "resubmitCount IS NOT NULL"
#: How long after its end a job's open pages are updated: messages that fail again do so soon, and a count reads whole
#: messages, also those of other jobs.
FOLLOW_PERIOD = timedelta(minutes=10)
#: Seconds between two counts for open pages: a minimum, and a multiple of the duration of the last count.
MIN_INTERVAL, INTERVAL_FACTOR = 5.0, 100
#: Jobs whose last count a process caches.
MAX_CACHED = 200


@dataclass(frozen=True, slots=True)
class _CachedCount:
    """A count for open pages: when (monotonic clock), how long it took, and the state of queue and job at that time."""

    at: float
    took: float
    newest: int
    done: int
    found: MatchCount


_cache: OrderedDict[UUID, _CachedCount] = OrderedDict()


def count_failed_again(job: Job) -> MatchCount | None:
    """Count the messages that failed again among SCAN messages; None if not applicable or no node responds.

    They are at the end of the queue, after everything that was there when the job was created.
    """
    if not _is_applicable(job):
        return None
    try:
        return _save_if_higher(job, _count(job))
    except BrokerError:  # no node responds, or the queue was deleted
        return None


def highest_count(job: Job) -> int:
    """Return the highest number of messages of a job seen to have failed again, for notifications.

    Messages that failed again may leave the queue later, so the current number may be lower.
    """
    if not _is_applicable(job):
        return 0
    if job.returned is None:
        count_failed_again(job)
    elif not _is_over(job):
        with contextlib.suppress(BrokerError):
            _recent_count(job)
    return job.returned or 0


def _save_if_higher(job: Job, found: MatchCount) -> MatchCount:
    """Store a count with the job if it is the highest so far."""
    if job.returned is None or found.count > job.returned:
        job.returned = found.count
        Job.objects.filter(pk=job.pk).update(returned=found.count)
    return found


def _is_applicable(job: Job) -> bool:
    return job.action in RESENDING and job.done > 0


def _count(job: Job) -> MatchCount:
    name = "new_id__in" if job.action == Job.Action.EDIT else "message_id__in"
    done = job.outcomes.filter(outcome=JobOutcome.Outcome.DONE)
    count, after, left = 0, job.upto, SCAN
    while left > 0:
        page = gateway().browse(job.source, after, PAGE, RESUBMITTED, left)
        count += done.filter(**{name: [each.id for each in page.messages]}).count()
        left -= page.scanned
        if page.next is None:
            return MatchCount(count)
        after = page.next
    return MatchCount(count, is_whole=False)


def cells_of(job: Job) -> dict[str, Any]:
    """Return the count as cells of the job's page."""
    return _cells(job, count_failed_again(job))


def live_cells(job: Job) -> dict[str, Any]:
    """Return the cells for open pages, some seconds old; empty if nothing changes."""
    if not _is_applicable(job):
        return {}
    if _is_over(job):
        last = _cache.get(job.id)
        return _cells(job, last.found) if last is not None else {}
    try:
        return _cells(job, _recent_count(job))
    except BrokerError:
        return {}


def _is_over(job: Job) -> bool:
    """Return whether the period in which failures count for this job is over."""
    return job.finished is not None and timezone.now() - job.finished > FOLLOW_PERIOD


def _recent_count(job: Job) -> MatchCount:
    """Return the cached count; count again after the interval if queue or job changed."""
    last, began = _cache.get(job.id), time.monotonic()
    if last is not None and began - last.at < max(MIN_INTERVAL, INTERVAL_FACTOR * last.took):
        return last.found
    newest = gateway().last(job.source)
    is_as_it_was = last is not None and (last.newest, last.done) == (newest, job.done)
    found = last.found if is_as_it_was else _save_if_higher(job, _count(job))
    _cache[job.id] = _CachedCount(began, time.monotonic() - began, newest, job.done, found)
    _cache.move_to_end(job.id)
    while len(_cache) > MAX_CACHED:
        _cache.popitem(last=False)
    return found


def _cells(job: Job, found: MatchCount | None) -> dict[str, Any]:
    if found is None or not found.count:
        return {"back": "", "has_back": False}
    is_settled = _is_over(job) or (job.finished is not None and found.count >= job.done)
    return {"back": f"{found} failed again{'' if is_settled else ' so far'}", "has_back": True}
