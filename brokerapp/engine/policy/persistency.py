"""Decide whether messages are persistent, whatever their producers requested."""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.model.definitions import PolicyEntry


def forced_persistency(policies: Iterable[PolicyEntry | None], otherwise: bool | None) -> bool | None:
    """What the policies of the destinations that one message is sent to make of it; `otherwise` if they leave it open.

    A message is one thing wherever it goes: where they differ it is persistent, so that nobody loses it.
    """
    said = [policy.force_persistency for policy in policies if policy and policy.force_persistency is not None]
    return any(said) if said else otherwise
