"""Returned: of the messages that a job sent again, those that failed again and are back where it took them from."""

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
from console.messages.jobs.spec import SENDING_AGAIN

#: Messages asked for at once: the database takes so many ids in one statement.
PAGE = 500
#: What was sent again says so as long as it lives.
SENT_AGAIN = "resubmitCount IS NOT NULL"
#: How long after its end open pages of a job follow what comes back: what fails again does so soon, and a look reads
#: whole messages, of which a dead-letter queue may have many that are not the job's.
FOLLOWED = timedelta(minutes=10)
#: Seconds between two looks for open pages, however many there are: at least, and so many times what a look takes.
RECOUNT, SPARING = 5.0, 100
#: Jobs of which a process remembers its last look.
MAX_LOOKS = 200


@dataclass(frozen=True, slots=True)
class _Look:
    """What a look for open pages found, when by the monotonic clock, and how long it took; of the queue and the job as
    they were then."""

    at: float
    took: float
    newest: int
    done: int
    found: MatchCount


_looks: OrderedDict[UUID, _Look] = OrderedDict()


def came_back(job: Job) -> MatchCount | None:
    """How many failed again, as far as a look at SCAN messages tells; None where that is no question, or nobody says.

    What comes back is at the end of its queue, behind all that was there when the job was asked for.
    """
    if not _is_asked(job):
        return None
    try:
        return _noted(job, _counted(job))
    except BrokerError:  # no node answers, or the queue is gone by now
        return None


def failed_again(job: Job) -> int:
    """Return how many resubmitted messages of a job were seen to have failed again, for the list of notifications.

    Messages that failed again leave their queue later, so the highest number that was seen counts.
    """
    if not _is_asked(job):
        return 0
    if job.returned is None:
        came_back(job)
    elif not _is_over(job):
        with contextlib.suppress(BrokerError):
            _followed(job)
    return job.returned or 0


def _noted(job: Job, found: MatchCount) -> MatchCount:
    """Keep the number with the job, if it is the highest so far."""
    if job.returned is None or found.count > job.returned:
        job.returned = found.count
        Job.objects.filter(pk=job.pk).update(returned=found.count)
    return found


def _is_asked(job: Job) -> bool:
    return job.action in SENDING_AGAIN and job.done > 0


def _counted(job: Job) -> MatchCount:
    name = "new_id__in" if job.action == Job.Action.EDIT else "message_id__in"
    done = job.outcomes.filter(outcome=JobOutcome.Outcome.DONE)
    count, after, left = 0, job.upto, SCAN
    while left > 0:
        page = gateway().browse(job.source, after, PAGE, SENT_AGAIN, left)
        count += done.filter(**{name: [each.id for each in page.messages]}).count()
        left -= page.scanned
        if page.next is None:
            return MatchCount(count)
        after = page.next
    return MatchCount(count, is_whole=False)


def cells_of(job: Job) -> dict[str, Any]:
    """The same in texts, for the page of the job."""
    return _told(job, came_back(job))


def live_cells(job: Job) -> dict[str, Any]:
    """The same for pages that are open, as of some seconds ago; nothing when what they say need not change."""
    if not _is_asked(job):
        return {}
    if _is_over(job):
        last = _looks.get(job.id)
        return _told(job, last.found) if last is not None else {}
    try:
        return _told(job, _followed(job))
    except BrokerError:
        return {}


def _is_over(job: Job) -> bool:
    """Whether what comes back now is no more put down to it."""
    return job.finished is not None and timezone.now() - job.finished > FOLLOWED


def _followed(job: Job) -> MatchCount:
    """What the last look found; another one is taken when it is time, and something came or was done since."""
    last, began = _looks.get(job.id), time.monotonic()
    if last is not None and began - last.at < max(RECOUNT, SPARING * last.took):
        return last.found
    newest = gateway().last(job.source)
    is_as_it_was = last is not None and (last.newest, last.done) == (newest, job.done)
    found = last.found if is_as_it_was else _noted(job, _counted(job))
    _looks[job.id] = _Look(began, time.monotonic() - began, newest, job.done, found)
    _looks.move_to_end(job.id)
    while len(_looks) > MAX_LOOKS:
        _looks.popitem(last=False)
    return found


def _told(job: Job, found: MatchCount | None) -> dict[str, Any]:
    if found is None or not found.count:
        return {"back": "", "has_back": False}
    is_settled = _is_over(job) or (job.finished is not None and found.count >= job.done)
    return {"back": f"{found} came back{'' if is_settled else ' so far'}", "has_back": True}
