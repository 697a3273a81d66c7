"""Policies: what holds for destinations by pattern, how failures are redelivered, and which entry wins where."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.definitions import PolicyEntry, RedeliveryPolicy
from brokerapp.destination import Destination
from brokerapp.engine.destination_map import matches, specificity
from console.access import Verb, needs
from console.gateway import gateway
from console.live.mirror import mirror
from console.routing.changes import SWITCHES, items_of
from console.routing.facts import facts, set_facts

Policy = PolicyEntry | RedeliveryPolicy


@dataclass(frozen=True, slots=True)
class Row:
    """A policy with what it sets, and how many destinations it is for and decides."""

    policy: Policy
    says: dict[str, str]
    matching: int
    winning: int  #: of those: no more specific policy is for them


def rows_of(policies: tuple[Policy, ...], existing: list[Destination]) -> list[Row]:
    """Each policy with the destinations it decides: the most specific entry wins, whole."""
    found = []
    for policy in policies:
        kind, own = policy.destination.kind, specificity(policy.destination.name)
        fits = [each for each in existing if each.kind is kind and matches(policy.destination.name, each.name)]
        better = [
            other.destination.name
            for other in policies
            if other.destination.kind is kind and specificity(other.destination.name) > own
        ]
        winning = [each for each in fits if not any(matches(name, each.name) for name in better)]
        found.append(Row(policy, set_facts(policy), len(fits), len(winning)))
    return found


@require_GET
@needs(Verb.SEE)
def policies(request: HttpRequest) -> HttpResponse:
    """All policies, filtered by a part of their pattern."""
    definitions, existing = gateway().definitions(), list(mirror().current().stats)
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
    return render(request, "console/routing/policies.html", context)
