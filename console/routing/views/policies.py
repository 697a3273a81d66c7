"""Policies: what holds for destinations by pattern, how failures are redelivered, and which entry wins where."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access.permissions import Verb, needs, touched, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.routing.definitions.changes import SWITCHES, items_of
from console.routing.definitions.definition_values import facts
from console.routing.definitions.policy_coverage import Row, rows_of
from console.routing.definitions.visibility import known


@require_GET
@needs(Verb.SEE)
def policies(request: HttpRequest) -> HttpResponse:
    """All policies, filtered by a part of their pattern."""
    definitions = known(gateway().definitions(), touched(request.user))
    existing = list(filter(visible(request.user), mirror().current().stats))
    text = request.GET.get("q", "").strip()

    def shown(rows: list[Row]) -> list[Row]:
        return [row for row in rows if text.lower() in str(row.policy.destination).lower()]

    context = {
        "text": text,
        "entries": shown(rows_of(definitions.policies, existing)),
        "redeliveries": shown(rows_of(definitions.redelivery.policies, existing)),
        "total": len(definitions.policies) + len(definitions.redelivery.policies),
        "switches": facts(items_of(definitions)[SWITCHES]),
        "switches_id": SWITCHES,
    }
    return render(request, "routing/policies.html", context)
