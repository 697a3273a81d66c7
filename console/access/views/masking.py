"""Serve the pages of masking rules: the list, the editor and the test on a sample message."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.access import masking_admin
from console.access.masking import all_rules, mask_for_roles
from console.access.masking_admin import CHANGES, FIELDS, rule_fields
from console.access.masking_rules import MAX_BODY, MaskAction, MaskRule, MaskTarget
from console.access.models import MaskingRule
from console.access.permissions import Permission, Role, permission_required
from console.access.roles import MASKED_ROLES, ROLES_BY_PERMISSION
from console.accounts.login import recent_login_required
from console.messages.body_format import render_body

#: What the form calls places and actions.
PLACES = [
    (MaskTarget.JSON, "JSON value", "$.customer.card, or $..card at any depth, $.lines[*].price"),
    (MaskTarget.HEADER, "Header or property", "card*, with * and ?"),
    (MaskTarget.BODY, "Body text", r"regular expression: \b\d{13,19}\b"),
]
ACTIONS = [
    (MaskAction.REMOVE, "Remove"),
    (MaskAction.REPLACE, "Replace"),
    (MaskAction.LAST4, "Show last four characters"),
    (MaskAction.SHOW, "Show (to roles that see masked bodies)"),
]
SAMPLE_HEADERS = "region: eu\ncustomer: 4711"
SAMPLE_BODY = '{"order": 4711, "customer": {"name": "Ada", "card": "4111111111111111"}}'


@require_GET
@permission_required(Permission.USERS)
def masking(request: HttpRequest) -> HttpResponse:
    """Show all rules in the order in which they apply."""
    return render(request, "access/masking.html", {"rules": MaskingRule.objects.all(), "masked_roles": MASKED_ROLES})


@require_http_methods(["GET", "POST"])
@permission_required(Permission.USERS)
@recent_login_required
def edit(request: HttpRequest, rule_id: int | None = None) -> HttpResponse:
    """Create or change a rule; `test` shows its effect on the sample and saves nothing."""
    existing = get_object_or_404(MaskingRule, pk=rule_id) if rule_id else None
    typed = _typed(request, existing)
    context: dict[str, Any] = {
        "existing": existing,
        "typed": typed,
        "places": PLACES,
        "actions": ACTIONS,
        "roles": [role for role in Role if role in ROLES_BY_PERMISSION[Permission.BROWSE]],
        "sample": _sample(request),
        "error": "",
    }
    if request.method == "POST":
        try:
            rule = MaskRule.parse(*(typed[name] for name in FIELDS[:-1]))
            if "test" not in request.POST:
                masking_admin.save_rule(request, existing, typed)
                messages.success(request, "Masking rule saved and enabled.")
                return redirect("masking")
            context["result"] = _result(request, rule, existing)
        except BrokerError as error:
            context["error"] = str(error)
    return render(request, "access/masking_rule.html", context, status=400 if context["error"] else 200)


def _typed(request: HttpRequest, existing: MaskingRule | None) -> dict[str, str]:
    if request.method == "POST":
        return {name: request.POST.get(name, "").strip()[:500] for name in FIELDS}
    defaults = MaskingRule(role=Role.SUPPORT, place=MaskTarget.JSON, action=MaskAction.LAST4)
    return rule_fields(existing or defaults)


# -- the test


def _sample(request: HttpRequest) -> dict[str, str]:
    return {
        "destination": request.POST.get("sample_destination", "") or "queue://orders",
        "headers": request.POST.get("sample_headers", SAMPLE_HEADERS),
        "body": request.POST.get("sample_body", SAMPLE_BODY)[:MAX_BODY],
    }


def _result(request: HttpRequest, rule: MaskRule, existing: MaskingRule | None) -> dict[str, Any]:
    """Return the sample as the rule's role sees it now and with the rule (a rule for all roles: as support)."""
    sample = _sample(request)
    where = Destination.parse(sample["destination"])
    lines = (line.partition(":") for line in sample["headers"].splitlines())
    headers = {name.strip(): value.strip() for name, separator, value in lines if separator}
    body = sample["body"].encode()
    message = BrowsedMessage(1, "sample", where.stomp, None, headers, body, len(body))
    role = rule.role or Role.SUPPORT
    others = tuple(each.rule for each in MaskingRule.objects.filter(active=True).exclude(pk=existing and existing.pk))
    with_it = mask_for_roles(role, role, message, (where,), (rule, *others))
    now = mask_for_roles(role, role, message, (where,), all_rules())
    return {"role": role, "now": _shown(now), "then": _shown(with_it)}


def _shown(message: Any) -> dict[str, Any]:
    text = "" if message.withheld else render_body(message.body)[0].text
    return {"headers": message.headers, "text": text, "withheld": message.withheld, "masked": message.masked}


@require_POST
@permission_required(Permission.USERS)
@recent_login_required
def change(request: HttpRequest, rule_id: int, action: str) -> HttpResponse:
    """Enable or disable a rule, move it to the top, or delete it."""
    rule = get_object_or_404(MaskingRule, pk=rule_id)
    if action not in CHANGES:
        raise Http404(f"Unknown action: {action}.")
    masking_admin.change_rule(request, rule, action)
    return redirect("masking")
