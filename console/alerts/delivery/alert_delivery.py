"""Send notifications about alerts by mail and webhook, with retries and limits.

What is to be told is a row in the database first, so that it survives the end of any process. A worker makes one
attempt; the watch asks for what is due again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from brokerapp.errors import RequestRefused
from console.alerts.delivery import retry_schedule, webhook
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.alerts.delivery.subject_pages import subject_page
from console.broker.restored_copy import is_copy
from console.ui.formatting import time_format
from console.ui.formatting.absolute_urls import absolute_url
from console.ui.preferences import timezones

logger = logging.getLogger(__name__)

TASK = "console.deliver_alert"
State = AlertDelivery.State
#: Told within an hour about one rule, at most: what a person can read, and no storm for a program.
MAX_AN_HOUR = 30
#: Seconds until the next attempt, after each that failed; then it has failed for good.
RETRIES = (10, 60, 300, 1800)
#: Seconds after which a worker that took a delivery is taken for lost.
LOST = 120
#: Seconds for which a delivery belongs to the worker that attempts it: longer than any attempt takes.
LEASE = 600
#: Asked for in one step of the watch.
MAX_AT_ONCE = 100
#: Why a copy of another installation sends no notification.
COPY_IS_SILENT = "this installation is a copy, which sends no notifications"
#: Marks what we send: whoever gets it must not make an alert of it.
MARK_HEADER = "X-Sluice-Alert"
SIGNATURE_HEADER = "X-Sluice-Signature"
#: The event of what tells of nothing: see send_test.py.
TEST = "test"


def targets_of(rule: AlertRule) -> list[tuple[str, str]]:
    """Return the recipients of a rule: kind and address."""
    targets = [("mail", each.strip()) for each in rule.mail.split(",") if each.strip()]
    return targets + ([("webhook", rule.webhook)] if rule.webhook else [])


def queue_notifications(rule: AlertRule, firing: AlertFiring, event: str, now: datetime) -> None:
    """Queue notifications to the recipients of a rule, unless it is silenced. Those over the limit are suppressed."""
    if rule.silenced_until and rule.silenced_until > now:
        return
    _plan(targets_of(rule), remaining_quota(rule, now), firing, event, now)


def queue_resolution(firing: AlertFiring, event: str, now: datetime) -> None:
    """Queue notifications to the recipients of the first notification of an alert, because its rule was deleted."""
    told = firing.deliveries.filter(event="fired").exclude(state=State.HELD).order_by("id")
    targets = list(dict.fromkeys(told.values_list("kind", "target")))
    room = _room(AlertDelivery.objects.filter(firing__rule=None, firing__rule_name=firing.rule_name), now)
    _plan(targets, room, firing, event, now)


def _plan(targets: Sequence[tuple[str, str]], room: int, firing: AlertFiring, event: str, now: datetime) -> None:
    for number, (kind, target) in enumerate(targets):
        reason = COPY_IS_SILENT if is_copy() else f"limit of {MAX_AN_HOUR} per hour exceeded" if number >= room else ""
        AlertDelivery.objects.create(
            firing=firing, kind=kind, event=event, target=target, due=now,
            state=State.HELD if reason else State.QUEUED, detail=reason,
        )  # fmt: skip


def remaining_quota(rule: AlertRule, now: datetime) -> int:
    """Return how many more notifications the rule may send within this hour."""
    return _room(AlertDelivery.objects.filter(firing__rule=rule), now)


def _room(told: QuerySet[AlertDelivery], now: datetime) -> int:
    return MAX_AN_HOUR - told.filter(created__gt=now - timedelta(hours=1)).exclude(state=State.HELD).count()


def enqueue_due(now: datetime) -> None:
    """Queue tasks for the notifications that are due. A copy of another installation sends none."""
    if is_copy():
        return
    retry_schedule.enqueue_due(AlertDelivery.objects.filter(state=State.QUEUED), "due", TASK, now, LOST, MAX_AT_ONCE)


def deliver(delivery_id: int) -> str:
    """Try to send a notification once; return its new state."""
    delivery = _claim(delivery_id)
    if delivery is None:
        return "nothing to do"
    if reason := attempt(delivery):
        _failed(delivery, reason)
    else:
        delivery.state, delivery.detail = State.SENT, ""
    _save_outcome(delivery)
    return delivery.state


def attempt(delivery: AlertDelivery) -> str:
    """Send a notification; return why that failed, or "". Raises nothing."""
    try:
        _SENDERS[delivery.kind](delivery)
    except (OSError, RequestRefused, ValueError) as error:
        return str(error) or type(error).__name__
    except Exception:  # ours: all the same it was not sent, and others are told, and it is tried again
        logger.exception("an attempt to tell of “%s” broke", delivery.firing.rule_name)
        return "internal error; details are in the log"
    return ""


def _claim(delivery_id: int) -> AlertDelivery | None:
    """Claim a notification for this worker; None if it is final, or another worker has it."""
    delivery = AlertDelivery.objects.select_related("firing__rule").filter(pk=delivery_id).first()
    now = timezone.now()
    # Whoever asks puts it off by LOST seconds: what is due later than that is another worker's.
    if delivery is None or delivery.state != State.QUEUED or delivery.due > now + timedelta(seconds=LOST):
        return None
    before = AlertDelivery.objects.filter(pk=delivery_id, state=State.QUEUED, attempts=delivery.attempts)
    delivery.attempts, delivery.due = delivery.attempts + 1, now + timedelta(seconds=LEASE)
    return delivery if before.update(attempts=delivery.attempts, due=delivery.due) else None


def _save_outcome(delivery: AlertDelivery) -> None:
    """Keep what came of the attempt, unless the worker took so long that another one attempts it by now."""
    mine = AlertDelivery.objects.filter(pk=delivery.pk, state=State.QUEUED, attempts=delivery.attempts)
    if not mine.update(state=delivery.state, detail=delivery.detail, due=delivery.due):
        logger.warning("the attempt %d at the alert %d ended after its lease", delivery.attempts, delivery.pk)


def _failed(delivery: AlertDelivery, reason: str) -> None:
    delivery.detail = reason[:500]
    next_due = retry_schedule.next_attempt_at(delivery.attempts, RETRIES, timezone.now())
    if next_due is None:
        delivery.state = State.FAILED
    else:
        delivery.due = next_due


def document_of(delivery: AlertDelivery) -> dict[str, Any]:
    """Build the JSON document of a webhook notification."""
    firing = delivery.firing
    return {
        "id": delivery.pk,
        "event": "ended" if delivery.reason else delivery.event,
        "reason": delivery.reason or None,
        "broker": settings.SLUICE.broker_name,
        "rule": firing.rule_name,
        "metric": firing.rule.metric if firing.rule else None,
        "subject": firing.subject,
        "sentence": firing.sentence,
        "value": firing.value if firing.pk else None,  # a test measured nothing
        "worst": firing.worst if firing.pk else None,
        "since": firing.since.isoformat(),
        "fired": firing.fired.isoformat() if firing.fired else None,
        "ended": firing.ended.isoformat() if firing.ended else None,
        "url": _page(firing),
    }


def _page(firing: AlertFiring) -> str:
    """Where it is shown; of one that is none, but a test: its rule."""
    return absolute_url(
        reverse("firing", args=[firing.pk]) if firing.pk else reverse("edit-alert", args=[firing.rule_id])
    )


#: What a mail begins with, by the event it tells of.
_WORDS = {"fired": "Alert", "ended": "Resolved", TEST: "Test", **dict.fromkeys(AlertDelivery.REASONS, "Resolved")}


def _one_line(text: str) -> str:
    """Replace line breaks, so that a name of a rule or destination cannot break a mail header."""
    return " ".join(text.split())


def _mail(delivery: AlertDelivery) -> None:
    firing = delivery.firing
    subject = _one_line(
        f"[{settings.SLUICE.broker_name}] {_WORDS[delivery.event]}: {firing.rule_name}: {firing.subject}"
    )
    lines = [firing.sentence, "", f"Active since {time_format.format_exact_time(firing.since, timezones.UTC)}."]
    if firing.ended:
        because = f" ({delivery.reason})" if delivery.reason else ""
        lines.append(f"Resolved {time_format.format_exact_time(firing.ended, timezones.UTC)}{because}.")
    lines += ["", f"{'Alert' if firing.pk else 'Rule'}: {_page(firing)}"]
    if firing.pk and (page := subject_page(firing)):
        label, url = page
        lines.append(f"{label}: {absolute_url(url)}")
    headers = {MARK_HEADER: _one_line(firing.rule_name), "Auto-Submitted": "auto-generated"}
    EmailMessage(subject[:200], "\n".join(lines), to=[delivery.target], headers=headers).send()


def _webhook(delivery: AlertDelivery) -> None:
    firing = delivery.firing
    secret = firing.rule.secret if firing.rule else firing.secret
    body = json.dumps(document_of(delivery), sort_keys=True).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "Sluice", MARK_HEADER: "1"}
    if secret:
        headers[SIGNATURE_HEADER] = signature(secret, body)
    webhook.post(delivery.target, body, headers)


def signature(secret: str, body: bytes) -> str:
    """Sign the body of a webhook with the rule's secret, so that its receiver can verify the sender."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


_SENDERS = {"mail": _mail, "webhook": _webhook}
