"""Mail editions to their recipients, with retries, and failures to the owner.

What is to be sent stands in the edition, so it survives the end of any process. A worker makes one attempt; what is due
again is asked for with the next look at all reports.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from console.access.permissions import Permission, has_permission, roles_of
from console.alerts.delivery import retry_schedule
from console.analyses.reports.content import scope_of_report
from console.analyses.reports.mail import EditionMail
from console.analyses.reports.models import Edition, Report
from console.analyses.sql import report_queries

TASK = "console.mail_edition"
Mail, State = Edition.Mail, Edition.State
#: Seconds until the next attempt, after each that failed; then it has failed for good.
RETRIES = (30, 120, 600, 1800)
#: Seconds after which a worker that took a mail is taken for lost.
LOST = 300


def is_readable_by(user: object, report: Report) -> bool:
    """Return whether a user may read a report: the user may see all destinations that it covers."""
    if report_queries.runs_sql(report.questions) and not report_queries.may_read_of(user, report.owner):
        return False
    return all(has_permission(user, Permission.SEE, place) for place in scope_of_report(report))


def recipients(report: Report) -> list[str]:
    """Addresses: those that are named, and those of the people in its roles who may read it."""
    named = [each.strip() for each in report.addresses.split(",") if each.strip()]
    people = get_user_model().objects.filter(is_active=True).exclude(email="").order_by("username")
    roles = set(report.roles)
    if not roles:
        return list(dict.fromkeys(named))
    found = [user.email for user in people if roles & set(roles_of(user)) and is_readable_by(user, report)]
    return list(dict.fromkeys([*named, *found]))


def enqueue_due(now: datetime) -> None:
    """Queue tasks for the report mails that are due."""
    retry_schedule.enqueue_due(Edition.objects.filter(mail=Mail.DUE), "mail_due", TASK, now, LOST)


def deliver(edition_id: int) -> str:
    """Try to send the mail of an edition once; return its new state."""
    edition = Edition.objects.select_related("report").filter(pk=edition_id).first()
    if edition is None or edition.mail != Mail.DUE:
        return "nothing to do"
    to, nobody = _recipients_or_reason(edition)
    if not to:
        edition.mail, edition.mail_detail = Mail.NONE, nobody
    else:
        edition.mail_attempts += 1
        try:
            EditionMail(edition, to).send()
        except (OSError, ValueError) as error:
            _failed(edition, f"to {', '.join(to)}: {str(error) or type(error).__name__}")
        else:
            edition.mail, edition.mail_detail = Mail.SENT, _where(to)
    edition.save(update_fields=["mail", "mail_due", "mail_attempts", "mail_detail"])
    return edition.mail


def _where(to: list[str]) -> str:
    """Where a mail went that was sent: nowhere beyond this machine without a mail server."""
    if settings.MAIL_OUTBOX:
        return f"written to {settings.MAIL_OUTBOX} for {', '.join(to)} (no mail server configured)"
    return f"to {', '.join(to)}"


def _recipients_or_reason(edition: Edition) -> tuple[list[str], str]:
    """Return the recipients of an edition (of a failed one: the owner alone), and why there are none."""
    if edition.state == State.DONE:
        return recipients(edition.report), "No email recipients."
    owner = edition.report.owner
    user = get_user_model().objects.filter(username=owner, is_active=True).first()
    if user is None or not user.email:
        return [], f"The owner, {owner}, has no email address." if owner else "The report has no owner."
    return [user.email], ""


def _failed(edition: Edition, reason: str) -> None:
    edition.mail_detail = reason[:500]
    next_due = retry_schedule.next_attempt_at(edition.mail_attempts, RETRIES, timezone.now())
    if next_due is None:
        edition.mail = Mail.FAILED
    else:
        edition.mail_due = next_due
