"""REST API of alerts: rules, firings, deliveries and tests."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.errors import RequestRefused
from console.access.permissions import visible
from console.access.roles import Permission
from console.alerts import rule_changes
from console.alerts.active_alerts import is_visible
from console.alerts.backtest_service import replay_rule
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.alerts.evaluation import rule_of
from console.alerts.forms import RuleForm
from console.alerts.metrics import AlertMetric
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, PageQuery, page_of

router = Router(tags=["alerts"])
#: Firings that are looked through, the latest.
MOST = 10_000


class RuleIn(RequestBody):
    """A condition and its recipients."""

    name: str
    metric: AlertMetric
    pattern: str = Field(">", description="Destinations; ignored for metrics of the broker")
    below: bool = False
    threshold: float
    hold: int = Field(0, description="Seconds the condition must hold before the rule fires")
    mail: str = Field("", description="Comma-separated addresses")
    webhook: str = ""
    secret: str = Field("", description="Signing secret of the webhook; empty: unchanged, or generated for a new rule")

    def form(self, row: AlertRule | None = None) -> RuleForm:
        """Build the form of the page from this request."""
        return RuleForm({**self.model_dump(), "below": "1" if self.below else ""}, instance=row)


class RuleOut(Schema):
    """A rule. Its secret is returned only when the rule is created."""

    id: int
    name: str
    metric: str
    pattern: str
    below: bool
    threshold: float
    hold: int
    is_on: bool
    silenced_until: datetime | None
    mail: str
    webhook: str = Field(description="Scheme and host only, without permission to change the rule")
    author: str
    sentence: str = Field(description="The condition as text")

    @staticmethod
    def resolve_sentence(rule: AlertRule) -> str:
        """Describe the rule's condition in a sentence."""
        return str(rule_of(rule))

    @staticmethod
    def resolve_webhook(rule: AlertRule, context: dict[str, Any]) -> str:
        """As far as who asks may know it."""
        return rule_changes.webhook_for(context["request"], rule, rule.webhook)


class RuleCreatedOut(RuleOut):
    """A new rule with its signing secret."""

    secret: str


class RuleStepIn(RequestBody):
    """An action on a rule: silence, unsilence (`hear`), or enable and disable (`switch`)."""

    action: Literal["silence", "hear", "switch"]
    hours: Literal[1, 8, 24, 168] = 1


class FiringOut(Schema):
    """A period in which one subject met the condition of a rule."""

    id: int
    rule_name: str
    subject: str
    state: str
    since: datetime
    fired: datetime | None
    ended: datetime | None
    value: float
    worst: float
    sentence: str


class FiringQuery(PageQuery):
    """A filter by state; empty: all."""

    state: Literal["", "pending", "firing", "ended"] = ""


class DeliveryOut(Schema):
    """A notification that was sent, or is to be sent."""

    kind: str
    event: str
    target: str = Field(description="Scheme and host only for webhooks, without permission to change the rule")
    state: str
    attempts: int
    detail: str
    created: datetime

    @staticmethod
    def resolve_target(told: AlertDelivery, context: dict[str, Any]) -> str:
        """As far as who asks may know it."""
        if told.kind != "webhook":
            return told.target
        return rule_changes.webhook_for(context["request"], told.firing.rule, told.target)


class TestDeliveryOut(Schema):
    """The outcome of a test notification for one recipient."""

    kind: str
    target: str
    sent: bool
    reason: str = Field(description="Error text; empty if sent")


class EpisodeOut(Schema):
    """A period in which a rule would have fired, in seconds since the epoch."""

    subject: str
    fired: int
    ended: int | None
    worst: float
    detail: str = Field(description="Observed and expected messages, for rules on the expected range")


class ReplayOut(Schema):
    """Test result of a rule on recorded history: 24 hours, 28 days for rules on the expected range, or at most two days
    for rules on objectives.
    """

    episodes: list[EpisodeOut]
    total: int
    looked_at: int = Field(description="Destinations, or objectives")
    left_out: int = Field(description="Those that were too many")
    omitted: int = Field(description="Queues and subscriptions of these objectives that were too many")
    minutes: int = Field(description="Length of the history")
    cannot: str


@operation(router, "GET", "/rules", Permission.SEE, response=list[RuleOut])
def list_alert_rules(request: HttpRequest) -> Any:
    """List alert rules on visible destinations, by name."""
    return rule_changes.visible_rules(request)


@operation(router, "POST", "/rules", Permission.ALERT, response={201: RuleCreatedOut})
def create_alert_rule(request: HttpRequest, wanted: RuleIn) -> Any:
    """Create an alert rule."""
    return Status(201, _saved(request, wanted, None))


@operation(router, "PUT", "/rules/{int:rule_id}", Permission.ALERT, response=RuleOut)
def change_alert_rule(request: HttpRequest, rule_id: int, wanted: RuleIn) -> Any:
    """Change an alert rule."""
    return _saved(request, wanted, rule_changes.get_editable_rule(request, rule_id))


@operation(router, "POST", "/rules/{int:rule_id}", Permission.ALERT, response=RuleOut)
def step_alert_rule(request: HttpRequest, rule_id: int, wanted: RuleStepIn) -> Any:
    """Silence or unsilence a rule, or enable or disable it."""
    row = rule_changes.get_editable_rule(request, rule_id)
    rule_changes.change(request, row, wanted.action, str(wanted.hours))
    return row


@operation(router, "DELETE", "/rules/{int:rule_id}", Permission.ALERT, response={204: None})
def delete_alert_rule(request: HttpRequest, rule_id: int) -> Any:
    """Delete an alert rule. Its history is kept."""
    rule_changes.change(request, rule_changes.get_editable_rule(request, rule_id), "delete")
    return Status(204, None)


@operation(router, "POST", "/test", Permission.ALERT, response=ReplayOut)
def test_alert_rule(request: HttpRequest, wanted: RuleIn) -> Any:
    """Test a rule on recorded history. Nothing is saved."""
    form = wanted.form()
    rule = form.rule()
    if rule is None:
        raise RequestRefused("; ".join(form.rule_errors()))
    rule_changes.require_all(request, rule)
    return replay_rule(rule)


@operation(router, "POST", "/rules/{int:rule_id}/test", Permission.ALERT, response=list[TestDeliveryOut])
def send_test_of_alert_rule(request: HttpRequest, rule_id: int) -> Any:
    """Send a test notification to each recipient of a rule; return the outcomes."""
    return rule_changes.send_test(request, rule_changes.get_editable_rule(request, rule_id))


@operation(router, "GET", "/firings", Permission.SEE, response=Page[FiringOut])
def list_firings(request: HttpRequest, query: Annotated[FiringQuery, Query()]) -> Any:
    """List firings, latest first."""
    sees, found = visible(request.user), AlertFiring.objects.all()
    if query.state:
        found = found.filter(state=query.state)
    return page_of([each for each in found[:MOST] if is_visible(each, sees)], query)


@operation(router, "GET", "/firings/{int:firing_id}/deliveries", Permission.SEE, response=list[DeliveryOut])
def list_deliveries(request: HttpRequest, firing_id: int) -> Any:
    """List the notifications of a firing."""
    found = get_object_or_404(AlertFiring, pk=firing_id)
    if not is_visible(found, visible(request.user)):
        raise Http404(f"Alert {firing_id} not found.")
    return found.deliveries.select_related("firing__rule")


def _saved(request: HttpRequest, wanted: RuleIn, row: AlertRule | None) -> AlertRule:
    form = wanted.form(row)
    if not form.is_valid():
        raise RequestRefused("; ".join(f"{name}: {' '.join(map(str, why))}" for name, why in form.errors.items()))
    return rule_changes.save(request, form, row)
