"""Changes of alert rules, made on a page or through the API: each in the audit trail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone

from console.access.permissions import has_permission, pattern_filter, require
from console.access.roles import Permission
from console.alerts import send_test as trying
from console.alerts.delivery import webhook
from console.alerts.delivery.models import AlertRule
from console.alerts.evaluation import rule_of
from console.alerts.forms import RuleForm
from console.alerts.rules import AlertCondition
from console.alerts.send_test import TestDeliveryResult
from console.audit import trail

#: How long a rule may be silenced: hours, and what the form says.
SILENCES = {"1": "1 hour", "8": "8 hours", "24": "1 day", "168": "1 week"}


def visible_rules(request: HttpRequest) -> list[AlertRule]:
    """Return the rules that the user may know of, by name: those about some of what they see."""
    knows = pattern_filter(request.user)
    return [row for row in AlertRule.objects.all() if any(map(knows, rule_of(row).places))]


def get_editable_rule(request: HttpRequest, rule_id: int) -> AlertRule:
    """Return a rule that the user may change. Raises Http404 if it is invisible to the user, PermissionDenied."""
    row = get_object_or_404(AlertRule, pk=rule_id)
    if not any(map(pattern_filter(request.user), rule_of(row).places)):
        raise Http404("Alert rule not found.")
    require_all(request, rule_of(row))
    return row


def may_change(request: HttpRequest, rule: AlertCondition) -> bool:
    """Return whether the user may have alerts on all that the rule is about."""
    return all(has_permission(request.user, Permission.ALERT, place) for place in rule.places)


def webhook_for(request: HttpRequest, row: AlertRule | None, url: str) -> str:
    """Return the URL of a rule's webhook: complete for users who may change the rule, else without its secret parts."""
    return url if not url or (row is not None and may_change(request, rule_of(row))) else webhook.origin_of(url)


def require_all(request: HttpRequest, rule: AlertCondition) -> None:
    """Raise PermissionDenied unless the user may have alerts on all that the rule is about."""
    for place in rule.places:
        require(request, Permission.ALERT, place)


def save(request: HttpRequest, form: RuleForm, row: AlertRule | None) -> AlertRule:
    """Make the rule of a valid form, or change `row` into it."""
    require_all(request, rule_of(form.instance))
    before = (
        _audit_fields(AlertRule.objects.get(pk=row.pk)) if row else None
    )  # a form writes into its row while it is checked
    action = "change alert rule" if row else "create alert rule"
    with trail.recording(request, action, form.cleaned_data["name"], before) as change:
        form.instance.author = request.user.get_username()
        saved = form.save()
        change.after = _audit_fields(saved)
    return saved


def change(request: HttpRequest, row: AlertRule, action: str, hours: str = "") -> str:
    """Silence a rule for so many hours, hear it again, switch it on or off, or delete it: `action` is one of CHANGES.

    What became of it, as a sentence.
    """
    with trail.recording(request, f"{action} alert rule", row.name, before=_audit_fields(row)):
        return CHANGES[action](row, hours)


def send_test(request: HttpRequest, row: AlertRule) -> list[TestDeliveryResult]:
    """Send a test notification to the recipients of a rule; the outcomes are recorded in the audit log."""
    with trail.recording(request, "test alert rule", row.name) as change:
        found = trying.send_test(row, request.user.get_username())
        change.after = {f"{each.kind} {each.noted}": each.reason or "sent" for each in found}
    return found


def _audit_fields(row: AlertRule) -> dict[str, Any]:
    """Return a rule in the audit trail; its secret stays one."""
    told = {
        "mail": row.mail,
        "webhook": row.webhook and webhook.without_secrets(row.webhook),
        "signed": bool(row.secret),
    }
    return {"rule": str(rule_of(row)), "on": row.is_on, **told}


def _silence(row: AlertRule, hours: str) -> str:
    hours = hours if hours in SILENCES else "1"
    row.silenced_until = timezone.now() + timedelta(hours=int(hours))
    row.save()
    return f"“{row.name}” silenced for {SILENCES[hours]}. It is still evaluated."


def _unsilence(row: AlertRule, _hours: str) -> str:
    row.silenced_until = None
    row.save()
    return f"Rule “{row.name}” unsilenced."


def _switch(row: AlertRule, _hours: str) -> str:
    row.is_on = not row.is_on
    row.save()
    return f"Rule “{row.name}” {'enabled' if row.is_on else 'disabled'}."


def _delete(row: AlertRule, _hours: str) -> str:
    row.delete()
    return f"Rule “{row.name}” deleted. Its history is kept."


CHANGES = {"silence": _silence, "hear": _unsilence, "switch": _switch, "delete": _delete}
