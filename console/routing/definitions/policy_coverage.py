"""Count the destinations that each policy matches and applies to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerapp.engine.routing.destination_trie import matches, specificity
from brokerapp.model.definitions import PolicyEntry, RedeliveryPolicy
from brokerapp.model.destination import Destination
from console.routing.definitions.definition_values import non_default_values

Policy = PolicyEntry | RedeliveryPolicy


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy with its non-default settings and the number of destinations that it matches and applies to."""

    policy: Policy
    values: dict[str, str]
    matching_count: int
    applied_count: int  #: of those: without a more specific policy


def policy_rows(policies: Sequence[Policy], existing: list[Destination]) -> list[PolicyRow]:
    """Return a row for each policy; only the most specific matching policy applies."""
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
        found.append(PolicyRow(policy, non_default_values(policy), len(fits), len(winning)))
    return found
