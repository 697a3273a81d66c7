"""What of a job is refused message by message, because only the message tells that its user has no right to it."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser

from brokerapp.destination import Destination
from brokerapp.snapshot import BrowsedMessage, StepOutcome
from console.access import AnyUser, visible
from console.gateway import gateway
from console.masking import masked, sees_all
from console.repair import jobs
from console.repair.jobs import Action, Outcome
from console.repair.models import Job, JobOutcome
from console.repair.wish import SENDING_AGAIN
from console.rights import Sees, everything

#: Why a message is left alone that is masked for whoever edits: the edited one would be without its past, and open.
MASKED = "parts of this message are masked for {}: whoever edits one must see all of it"


def refused_for(job: Job, rows: Sequence[JobOutcome]) -> dict[int, StepOutcome]:
    """The messages among these that go to where whoever wanted it has no right, or that they must not edit."""
    if job.action not in SENDING_AGAIN:
        return {}
    name = job.approved_by or job.asked_by
    by = get_user_model().objects.filter(username=name).first()
    is_edit = job.action == Action.EDIT
    if by is None and not is_edit:  # the account went after it was allowed
        return {}
    by = by or AnonymousUser()  # sees nothing
    sees = everything if job.goal and is_edit else visible(by, jobs.verbs_of(job)[0])
    if sees is everything and (not is_edit or sees_all(by, job.source)):
        return {}
    found = {}
    for row in rows:
        for message in gateway().message(job.source, row.seq).messages:
            if why := _why_not(job, by, sees, message, name):
                found[row.seq] = StepOutcome(row.seq, Outcome.REFUSED, why, message.id)
    return found


def _why_not(job: Job, by: AnyUser, sees: Sees, message: BrowsedMessage, name: str) -> str:
    home: Destination | None = jobs.home(job.action, message, job.source)
    if home is not None and not sees(home):
        return f"{name} lacks the right to {jobs.verbs_of(job)[0]} for {home}"
    if job.action == Action.EDIT:
        shown = masked(by, message, job.source)
        if shown.masked or shown.withheld:
            return MASKED.format(name)
    return ""
