"""What of a job is refused message by message, because only the message tells that its user has no right to it."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from brokerapp.errors import RequestRefused
from brokerapp.model.stats_records import BrowsedMessage, MessageOperationOutcome
from console.access.masking import is_unmasked, mask_message
from console.access.permissions import visible
from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.messages.jobs import job_service
from console.messages.jobs.job_service import Action, Outcome
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.spec import SENDING_AGAIN


def refused_for(job: Job, rows: Sequence[JobOutcome]) -> dict[int, MessageOperationOutcome]:
    """The messages among these that go to where whoever wanted it has no right, or that they must not edit."""
    if job.action not in SENDING_AGAIN:
        return {}
    is_edit = job.action == Action.EDIT
    if job.goal and not is_edit:  # the right was asked for when it was wanted
        return {}
    name = job.approved_by or job.asked_by
    by = get_user_model().objects.filter(username=name, is_active=True).first()
    if by is None:
        gone = f"the account {name} is gone or closed, whose rights say where this may go: ask for it anew"
        return {row.seq: MessageOperationOutcome(row.seq, Outcome.REFUSED, gone, row.message_id) for row in rows}
    sees = everything if job.goal else visible(by, job_service.verbs_of(job)[0])
    if sees is everything and (not is_edit or is_unmasked(by, job.source)):
        return {}
    found = {}
    for row in rows:
        for message in gateway().message(job.source, row.seq).messages:
            if why := _why_not(job, by, sees, message):
                found[row.seq] = MessageOperationOutcome(row.seq, Outcome.REFUSED, why, message.id)
    return found


def _why_not(job: Job, by: AbstractBaseUser, sees: Sees, message: BrowsedMessage) -> str:
    name = by.get_username()
    try:
        home = job_service.home(job.action, message, job.source)
        if job.action == Action.EDIT:
            mask_message(by, message, job.source).require_unmasked(name)
    except RequestRefused as refused:  # what names no destination goes nowhere
        return str(refused)
    return "" if home is None or sees(home) else f"{name} lacks the right to {job_service.verbs_of(job)[0]} for {home}"
