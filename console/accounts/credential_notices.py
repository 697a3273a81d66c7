"""Mail users when somebody changes what they sign in with.

The audit log has each such change, whichever way it was made, so that its entries are what is told. Users without an
email address are told nothing.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.signals import post_save

from brokerapp.errors import StoreUnavailable
from console.audit.models import AuditEntry
from console.broker.task_queue import enqueue
from console.ui.formatting import time_format
from console.ui.formatting.absolute_urls import absolute_url
from console.ui.preferences import timezones

logger = logging.getLogger(__name__)

#: The task that sends a notice.
TASK = "console.mail_credential_notice"
#: Actions of the audit log that users are told of, in words.
NOTICES = {
    "change password": "your password was changed",
    "set password": "your password was set with a link",
    "reset password": "your password was reset, or a link to set it was created",
    "add second factor": "two-factor authentication was set up",
    "remove second factor": "two-factor authentication was removed",
    "renew second factor": "your recovery codes were replaced",
    "reset second factor": "your two-factor authentication was reset",
    "make token": "an API token was created for you",
}
_OBJECT = "user "


def connect_signal() -> None:
    """Connect the handler of new audit entries."""
    post_save.connect(on_entry, sender=AuditEntry, dispatch_uid="credential notices")


def on_entry(sender: type, instance: AuditEntry, created: bool, **_: Any) -> None:
    """Queue the notice for an entry about credentials once it is committed."""
    if created and _recipient(instance) is not None:
        transaction.on_commit(partial(_queue, instance.pk))


def send_notice(entry_id: int) -> str:
    """Mail the user whom an entry is about; return the address, "" if there is none any more."""
    entry = AuditEntry.objects.get(pk=entry_id)
    user = _recipient(entry)
    if user is None:
        return ""
    when = time_format.format_exact_time(entry.time, timezones.UTC)
    by = f"by {entry.who}" if entry.who != user.get_username() else "by you"
    lines = [
        f"On {when} {NOTICES[entry.action]}, {by}{f' from {entry.address}' if entry.address else ''}.",
        "",
        f"User name: {user.get_username()}",
        f"Console: {absolute_url('/account/')}",
        "",
        "If you did not expect this, tell an administrator.",
    ]
    subject = f"[{settings.SLUICE.broker_name}] Account {user.get_username()}: {NOTICES[entry.action]}"
    headers = {"Auto-Submitted": "auto-generated"}
    EmailMessage(subject, "\n".join(lines), to=[user.email], headers=headers).send()
    return user.email


def _recipient(entry: AuditEntry) -> User | None:
    """Return the user to be told of an entry, if it is about their credentials and they have an address."""
    if entry.action not in NOTICES or entry.outcome != AuditEntry.Outcome.DONE or not entry.object.startswith(_OBJECT):
        return None
    user = User.objects.filter(username=entry.object.removeprefix(_OBJECT)).first()
    return user if user is not None and user.email else None


def _queue(entry_id: int) -> None:
    try:
        enqueue(TASK, entry_id)
    except StoreUnavailable as error:  # the change is made and recorded
        logger.warning("the notice of audit entry %d was not sent: %s", entry_id, error)
