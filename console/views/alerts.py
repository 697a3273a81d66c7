"""Alerts: what fires, the rules, what they would have done, who was told."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.errors import BrokerError
from console import audit
from console.access import Verb, may, needs, require, touched, visible
from console.alerts.form import RuleForm
from console.alerts.judging import rule_of
from console.alerts.replaying import replayed
from console.alerts.rules import MEANINGS, Rule
from console.alerts.showing import is_seen
from console.models import AlertDelivery, AlertFiring, AlertRule

SIZE = 25
#: How long a rule may be silenced: what the form says, and hours.
SILENCES = {"1": "1 hour", "8": "8 hours", "24": "1 day", "168": "1 week"}


@require_GET
@needs(Verb.SEE)
def alerts(request: HttpRequest) -> HttpResponse:
    """What fires now, the rules, and what fired before."""
    firing = _seen(request, AlertFiring.objects.filter(state="firing").select_related("rule"))
    past = _seen(request, AlertFiring.objects.filter(state="ended").prefetch_related("deliveries")[:500])
    page = Paginator(past, SIZE).get_page(request.GET.get("page"))
    knows = touched(request.user)
    rules = [
        (row, rule, _is_silent(row), _may_change(request, rule))
        for row in AlertRule.objects.all()
        if any(map(knows, (rule := rule_of(row)).places))
    ]
    context = {"firing": firing, "page": page, "rules": rules, "silences": SILENCES}
    return render(request, "console/alerts.html", context)


def _seen(request: HttpRequest, firings) -> list[AlertFiring]:
    """Those about what the user sees."""
    sees = visible(request.user)
    return [each for each in firings if is_seen(each.subject, sees)]


def _may_change(request: HttpRequest, rule: Rule) -> bool:
    return all(may(request.user, Verb.ALERT, place) for place in rule.places)


def _require(request: HttpRequest, rule: Rule) -> None:
    """Raise PermissionDenied unless the user may have alerts on all that the rule is about."""
    for place in rule.places:
        require(request, Verb.ALERT, place)


def _existing(request: HttpRequest, rule_id: int) -> AlertRule:
    """The rule, for somebody who may change it. Raises Http404 where they may not know of it."""
    row = get_object_or_404(AlertRule, pk=rule_id)
    if not any(map(touched(request.user), rule_of(row).places)):
        raise Http404("There is no such rule.")
    _require(request, rule_of(row))
    return row


def _is_silent(row: AlertRule) -> bool:
    return bool(row.silenced_until and row.silenced_until > timezone.now())


@require_GET
@needs(Verb.SEE)
def firing(request: HttpRequest, firing_id: int) -> HttpResponse:
    """One firing: what was told to whom."""
    found = get_object_or_404(AlertFiring.objects.select_related("rule"), pk=firing_id)
    if not _seen(request, [found]):
        return redirect("alerts")
    context = {"firing": found, "deliveries": found.deliveries.all(), "states": AlertDelivery.State}
    return render(request, "console/alert_firing.html", context)


@require_http_methods(["GET", "POST"])
@needs(Verb.ALERT)
def edit(request: HttpRequest, rule_id: int | None = None) -> HttpResponse:
    """Make a rule, or change one."""
    row = _existing(request, rule_id) if rule_id else None
    before = _said(row) if row else None  # as it is: a form writes into its row while it is checked
    form = RuleForm(request.POST or None, instance=row, initial=_wanted(request))
    if request.method == "POST" and form.is_valid():
        _require(request, rule_of(form.instance))
        with audit.recording(
            request, "change alert rule" if row else "create alert rule", _name(form), before
        ) as change:
            form.instance.author = request.user.get_username()
            saved = form.save()
            change.after = _said(saved)
        messages.success(request, f"The rule “{saved.name}” is judged from now on.")
        if saved.webhook and form.made_secret:
            messages.info(request, f"What its webhook gets is signed with the secret {saved.secret} (shown this once).")
        return redirect("alerts")
    context = {"form": form, "row": row, "meanings": MEANINGS}
    return render(request, "console/alert_rule.html", context, status=400 if request.method == "POST" else 200)


def _wanted(request: HttpRequest) -> dict[str, str]:
    """What a link to the form fills in: the metric and the destination somebody looks at."""
    return {name: request.GET[name] for name in ("metric", "pattern", "threshold") if name in request.GET}


def _name(form: RuleForm) -> str:
    return form.cleaned_data["name"]


def _said(row: AlertRule) -> dict:
    """A rule in the audit trail; its secret stays one."""
    told = {"mail": row.mail, "webhook": row.webhook, "signed": bool(row.secret)}
    return {"rule": str(rule_of(row)), "on": row.is_on, **told}


@require_POST
@needs(Verb.ALERT)
def test_rule(request: HttpRequest) -> HttpResponse:
    """What the rule in the form would have done over the last 24 hours."""
    form = RuleForm(request.POST)
    rule = form.rule()
    if rule is None:
        return render(request, "console/parts/alert_test.html", {"errors": form.rule_errors()})
    _require(request, rule)
    try:
        context = {"result": replayed(rule), "rule": rule}
    except BrokerError as error:
        context = {"errors": [str(error)]}
    return render(request, "console/parts/alert_test.html", context)


@require_POST
@needs(Verb.ALERT)
def change(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Silence a rule for a while, hear it again, switch it on or off, or delete it."""
    row, action = _existing(request, rule_id), request.POST.get("action", "")
    if action not in _CHANGES:
        messages.error(request, "Nothing was done: choose what to do.")
        return redirect("alerts")
    with audit.recording(request, f"{action} alert rule", row.name, before=_said(row)):
        messages.success(request, _CHANGES[action](row, request.POST.get("hours", "")))
    return redirect("alerts")


def _silence(row: AlertRule, hours: str) -> str:
    hours = hours if hours in SILENCES else "1"
    row.silenced_until = timezone.now() + timedelta(hours=int(hours))
    row.save()
    return f"Nobody is told about “{row.name}” for {SILENCES[hours]}. It is still judged and shown."


def _hear(row: AlertRule, _hours: str) -> str:
    row.silenced_until = None
    row.save()
    return f"“{row.name}” is heard again."


def _switch(row: AlertRule, _hours: str) -> str:
    row.is_on = not row.is_on
    row.save()
    return f"“{row.name}” is {'on' if row.is_on else 'off'}."


def _delete(row: AlertRule, _hours: str) -> str:
    row.delete()
    return f"The rule “{row.name}” is deleted. What it told is kept."


_CHANGES = {"silence": _silence, "hear": _hear, "switch": _switch, "delete": _delete}
