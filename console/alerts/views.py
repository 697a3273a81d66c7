"""Serve the pages of alerts, rules and their tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analytics.rollups.expected_traffic import LEAST_DAYS
from brokerapp.errors import BrokerError, RequestRefused
from console.access.permissions import Permission, permission_required, visible
from console.alerts import rule_changes
from console.alerts.active_alerts import is_visible
from console.alerts.backtest_service import count_without_history, count_without_range, replay_rule
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.alerts.evaluation import rule_of
from console.alerts.forms import RuleForm
from console.alerts.metrics import DESCRIPTIONS, grouped
from console.alerts.rule_changes import CHANGES, SILENCES
from console.alerts.rules import AlertCondition

SIZE = 25
#: What an alert is analysed with besides its own time: its causes lie before it.
INCIDENT_LEAD = timedelta(minutes=15)
MAX_NAME = AlertRule._meta.get_field("name").max_length


@require_GET
@permission_required(Permission.SEE)
def alerts(request: HttpRequest) -> HttpResponse:
    """Show the firing alerts, the rules and the former alerts."""
    firing = _seen(request, AlertFiring.objects.filter(state="firing").select_related("rule"))
    past = _seen(request, AlertFiring.objects.filter(state="ended").prefetch_related("deliveries")[:500])
    page = Paginator(past, SIZE).get_page(request.GET.get("page"))
    rules = [
        (row, rule := rule_of(row), _is_silent(row), rule_changes.may_change(request, rule))
        for row in rule_changes.visible_rules(request)
    ]
    context = {"firing": firing, "page": page, "rules": rules, "silences": SILENCES}
    return render(request, "alerts/alerts.html", context)


def _seen(request: HttpRequest, firings) -> list[AlertFiring]:
    """Return the alerts about subjects that the user may see."""
    sees = visible(request.user)
    return [each for each in firings if is_visible(each, sees)]


def _is_silent(row: AlertRule) -> bool:
    return bool(row.silenced_until and row.silenced_until > timezone.now())


@require_GET
@permission_required(Permission.SEE)
def firing(request: HttpRequest, firing_id: int) -> HttpResponse:
    """Show an alert with its notifications."""
    found = get_object_or_404(AlertFiring.objects.select_related("rule"), pk=firing_id)
    if not _seen(request, [found]):
        return redirect("alerts")
    context = {
        "firing": found, "deliveries": found.deliveries.all(), "states": AlertDelivery.State,
        "incident": (found.since - INCIDENT_LEAD, found.ended),
        "may_change": found.rule is not None and rule_changes.may_change(request, rule_of(found.rule)),
    }  # fmt: skip
    return render(request, "alerts/firing.html", context)


@require_http_methods(["GET", "POST"])
@permission_required(Permission.ALERT)
def edit(request: HttpRequest, rule_id: int | None = None) -> HttpResponse:
    """Make a rule, or change one."""
    row = rule_changes.get_editable_rule(request, rule_id) if rule_id else None
    form = RuleForm(request.POST or None, instance=row, initial=_wanted(request))
    if request.method == "POST" and form.is_valid():
        saved = rule_changes.save(request, form, row)
        messages.success(request, f"Rule “{saved.name}” saved and active.")
        if saved.webhook and form.made_secret:
            messages.info(request, f"Signing secret of the webhook: {saved.secret} (shown only once).")
        return redirect("alerts")
    context = {"form": form, "row": row, "groups": grouped(), "unjudged": _count(row, count_without_history),
               "without_range": _count(row, count_without_range), "least_days": LEAST_DAYS}  # fmt: skip
    return render(request, "alerts/rule.html", context, status=400 if request.method == "POST" else 200)


def _count(row: AlertRule | None, count: Callable[[AlertCondition], int]) -> int:
    """Count destinations of a saved rule that cannot be evaluated, as far as the broker says."""
    try:
        return count(rule_of(row)) if row is not None else 0
    except BrokerError:
        return 0


def _wanted(request: HttpRequest) -> dict[str, str]:
    """Return the initial values of the form that a link gives: metric, pattern and threshold, with a name."""
    wanted = {name: request.GET[name] for name in ("metric", "pattern", "threshold") if name in request.GET}
    if meaning := DESCRIPTIONS.get(wanted.get("metric", "")):
        where = f" in {wanted['pattern']}" if "pattern" in wanted else ""
        wanted["name"] = f"{meaning.label}{where}"[:MAX_NAME]
    return wanted


@require_POST
@permission_required(Permission.ALERT)
def test_rule(request: HttpRequest) -> HttpResponse:
    """Show when the rule in the form would have fired over recorded history."""
    form = RuleForm(request.POST)
    rule = form.rule()
    if rule is None:
        return render(request, "alerts/rule_test.html", {"errors": form.rule_errors()})
    rule_changes.require_all(request, rule)
    try:
        context = {"result": replay_rule(rule), "rule": rule}
    except BrokerError as error:
        context = {"errors": [str(error)]}
    return render(request, "alerts/rule_test.html", context)


@require_POST
@permission_required(Permission.ALERT)
def send_test(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Send a test notification to the recipients of a rule."""
    row = rule_changes.get_editable_rule(request, rule_id)
    try:
        context = {"tried": rule_changes.send_test(request, row)}
    except RequestRefused as refused:
        context = {"refused": str(refused)}
    return render(request, "alerts/test_send_result.html", context)


@require_POST
@permission_required(Permission.ALERT)
def change(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Silence a rule for a while, hear it again, switch it on or off, or delete it."""
    row, action = rule_changes.get_editable_rule(request, rule_id), request.POST.get("action", "")
    if action not in CHANGES:
        messages.error(request, "Choose an action.")
        return redirect("alerts")
    messages.success(request, rule_changes.change(request, row, action, request.POST.get("hours", "")))
    return redirect("alerts")
