"""Decide whether messages are persistent, whatever their producers requested."""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.model.definitions import PolicyEntry


def forced_persistency(policies: Iterable[PolicyEntry | None], otherwise: bool | None) -> bool | None:
    """Decide whether a message is persistent by the policies of its destinations; `otherwise` if they do not say.

    All copies of a message are alike: if the policies differ it is persistent, so that no copy is lost.
    """
    said = [policy.force_persistency for policy in policies if policy and policy.force_persistency is not None]
    return any(said) if said else otherwise
