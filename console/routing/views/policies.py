"""Show destination and redelivery policies, and how many destinations each applies to."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access.permissions import Permission, pattern_filter, permission_required, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.routing.definitions.changes import REDELIVERY_SETTINGS_ID, definitions_by_id
from console.routing.definitions.definition_values import values_of
from console.routing.definitions.policy_coverage import PolicyRow, policy_rows
from console.routing.definitions.visibility import visible_definitions

#: Empty states of the two tables.
NO_POLICIES = "No destination policies. A policy sets limits, dead letters, prefetch and more by destination pattern."
NO_REDELIVERY_POLICIES = (
    "No redelivery policies. Rejected messages are dead-lettered immediately; unacknowledged ones are redelivered"
    " without a limit."
)


@require_GET
@permission_required(Permission.SEE)
def policies(request: HttpRequest) -> HttpResponse:
    """List all policies, filtered by a part of their pattern."""
    definitions = visible_definitions(gateway().definitions(), pattern_filter(request.user))
    existing = list(filter(visible(request.user), mirror().current().stats))
    text = request.GET.get("q", "").strip()

    def shown(rows: list[PolicyRow]) -> list[PolicyRow]:
        return [row for row in rows if text.lower() in str(row.policy.destination).lower()]

    context = {
        "text": text,
        "entries": shown(policy_rows(definitions.policies, existing)),
        "redeliveries": shown(policy_rows(definitions.redelivery.policies, existing)),
        "no_entries": NO_POLICIES,
        "no_redeliveries": NO_REDELIVERY_POLICIES,
        "total": len(definitions.policies) + len(definitions.redelivery.policies),
        "redelivery": values_of(definitions_by_id(definitions)[REDELIVERY_SETTINGS_ID]),
        "redelivery_id": REDELIVERY_SETTINGS_ID,
    }
    return render(request, "routing/policies.html", context)
