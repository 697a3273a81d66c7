"""Refuses single messages of a job whose own target or masked content its user has no permission for."""

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
from console.messages.jobs.spec import RESENDING


def refused_messages(job: Job, rows: Sequence[JobOutcome]) -> dict[int, MessageOperationOutcome]:
    """Return refused outcomes for messages with a forbidden target, or that the user must not edit."""
    if job.action not in RESENDING:
        return {}
    is_edit = job.action == Action.EDIT
    if job.goal and not is_edit:  # the permission was checked when the job was created
        return {}
    name = job.approved_by or job.asked_by
    by = get_user_model().objects.filter(username=name, is_active=True).first()
    if by is None:
        gone = f"account {name}, which requested the job, was deleted or disabled. Create the job again"
        return {row.seq: MessageOperationOutcome(row.seq, Outcome.REFUSED, gone, row.message_id) for row in rows}
    sees = everything if job.goal else visible(by, job_service.job_permissions(job)[0])
    if sees is everything and (not is_edit or is_unmasked(by, job.source)):
        return {}
    found = {}
    for row in rows:
        for message in gateway().message(job.source, row.seq).messages:
            if why := _refusal(job, by, sees, message):
                found[row.seq] = MessageOperationOutcome(row.seq, Outcome.REFUSED, why, message.id)
    return found


def _refusal(job: Job, by: AbstractBaseUser, sees: Sees, message: BrowsedMessage) -> str:
    name = by.get_username()
    try:
        home = job_service.target_of(job.action, message, job.source)
        if job.action == Action.EDIT:
            mask_message(by, message, job.source).require_unmasked(name)
    except RequestRefused as refused:  # an invalid destination cannot be sent to
        return str(refused)
    return (
        ""
        if home is None or sees(home)
        else f"{name} requires permission for {home}: {job_service.job_permissions(job)[0]}"
    )
