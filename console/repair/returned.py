"""Returned: of the messages that a job sent again, those that failed again and are back where it took them from."""

from __future__ import annotations

from typing import Any

from brokerapp.errors import BrokerError
from brokerapp.snapshot import Tally
from console.gateway import SCAN, gateway
from console.repair.models import Job, JobOutcome
from console.repair.wish import SENDING_AGAIN

#: Messages asked for at once: the database takes so many ids in one statement.
PAGE = 500
#: What was sent again says so as long as it lives.
SENT_AGAIN = "resubmitCount IS NOT NULL"


def came_back(job: Job) -> Tally | None:
    """How many failed again, as far as a look at SCAN messages tells; None where that is no question, or nobody says.

    What comes back is at the end of its queue, behind all that was there when the job was asked for.
    """
    if job.action not in SENDING_AGAIN or not job.done:
        return None
    try:
        return _counted(job)
    except BrokerError:  # no node answers, or the queue is gone by now
        return None


def _counted(job: Job) -> Tally:
    name = "new_id__in" if job.action == Job.Action.EDIT else "message_id__in"
    done = job.outcomes.filter(outcome=JobOutcome.Outcome.DONE)
    count, after, left = 0, job.upto, SCAN
    while left > 0:
        page = gateway().browse(job.source, after, PAGE, SENT_AGAIN, left)
        count += done.filter(**{name: [each.id for each in page.messages]}).count()
        left -= page.scanned
        if page.next is None:
            return Tally(count)
        after = page.next
    return Tally(count, is_whole=False)


def cells_of(job: Job) -> dict[str, Any]:
    """The same in texts, for the page of the job."""
    found = came_back(job)
    has_some = found is not None and found.count > 0
    return {"back": f"{found} came back" if has_some else "", "has_back": has_some}
