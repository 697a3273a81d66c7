"""Policies: what holds for destinations by pattern, how failures are redelivered, and which entry wins where."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access.permissions import Verb, pattern_filter, permission_required, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.routing.definitions.changes import REDELIVERY_SETTINGS_ID, definitions_by_id
from console.routing.definitions.definition_values import values_of
from console.routing.definitions.policy_coverage import PolicyRow, policy_rows
from console.routing.definitions.visibility import visible_definitions


@require_GET
@permission_required(Verb.SEE)
def policies(request: HttpRequest) -> HttpResponse:
    """All policies, filtered by a part of their pattern."""
    definitions = visible_definitions(gateway().definitions(), pattern_filter(request.user))
    existing = list(filter(visible(request.user), mirror().current().stats))
    text = request.GET.get("q", "").strip()

    def shown(rows: list[PolicyRow]) -> list[PolicyRow]:
        return [row for row in rows if text.lower() in str(row.policy.destination).lower()]

    context = {
        "text": text,
        "entries": shown(policy_rows(definitions.policies, existing)),
        "redeliveries": shown(policy_rows(definitions.redelivery.policies, existing)),
        "total": len(definitions.policies) + len(definitions.redelivery.policies),
        "switches": values_of(definitions_by_id(definitions)[REDELIVERY_SETTINGS_ID]),
        "switches_id": REDELIVERY_SETTINGS_ID,
    }
    return render(request, "routing/policies.html", context)
