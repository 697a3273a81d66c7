"""Send a test notification to all recipients of a rule.

Nothing waits and nothing is kept: who asked sees what came of it, and the audit trail has it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.utils import timezone

from brokerapp.errors import RequestRefused
from console.accounts.rate_limit import RateLimit
from console.alerts.delivery.alert_delivery import MAX_AN_HOUR, TEST, attempt, remaining_quota, targets_of
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.alerts.delivery.webhook import without_secrets
from console.alerts.evaluation import rule_of

#: Told by tests about one rule within an hour, at most: no more than by the rule itself.
_TOLD = RateLimit(per_second=MAX_AN_HOUR / 3600, burst=MAX_AN_HOUR)
#: Tests that one user may send: some in a row while an address is being mended, then one a minute.
_TESTS = RateLimit(per_second=1 / 60, burst=5)


@dataclass(frozen=True, slots=True)
class TestDeliveryResult:
    """Outcome of a test notification for one recipient of a rule."""

    kind: str  #: mail or webhook
    target: str
    reason: str  #: why it failed; "" where it was sent

    @property
    def sent(self) -> bool:
        """Return whether it was taken: by the mail server, or by the program behind the webhook."""
        return not self.reason

    @property
    def noted(self) -> str:
        """Return the recipient as the audit log shows it."""
        return without_secrets(self.target) if self.kind == "webhook" else self.target


def send_test(rule: AlertRule, asked_by: str) -> list[TestDeliveryResult]:
    """Send a test notification to each recipient of a rule.

    Raises RequestRefused where it names nobody, and when somebody sent many.
    """
    targets = targets_of(rule)
    if not targets:
        raise RequestRefused(f"Rule “{rule.name}” has no recipients. Add an email address or a webhook, and save it.")
    if seconds := _TESTS.acquire(asked_by):
        raise RequestRefused(f"Too many tests by {asked_by}. Try again in {seconds} s.")
    _require_room(rule, len(targets))
    firing = _no_firing(rule)
    deliveries = [AlertDelivery(firing=firing, kind=kind, event=TEST, target=target) for kind, target in targets]
    with ThreadPoolExecutor(len(deliveries)) as pool:  # a mail server that does not answer holds up each for seconds
        reasons = list(pool.map(attempt, deliveries))
    return [
        TestDeliveryResult(each.kind, each.target, reason) for each, reason in zip(deliveries, reasons, strict=True)
    ]


def _require_room(rule: AlertRule, wanted: int) -> None:
    """Raise RequestRefused if the rule would exceed its notifications per hour, tests included.

    A test takes no room from alerts.
    """
    if remaining_quota(rule, timezone.now()) < wanted or _TOLD.acquire(str(rule.pk), wanted):
        raise RequestRefused(
            f"Rule “{rule.name}” has reached its limit of {MAX_AN_HOUR} notifications per hour. Try again later."
        )


def _no_firing(rule: AlertRule) -> AlertFiring:
    """Build the alert that a test notification is about; it did not happen and is not saved."""
    return AlertFiring(
        rule=rule, rule_name=rule.name, subject=TEST, since=timezone.now(), value=rule.threshold, worst=rule.threshold,
        sentence=f"Test notification. The rule fires when: {rule_of(rule)}.",
    )  # fmt: skip
