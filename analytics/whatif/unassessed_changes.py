"""Find changes of a draft that a what-if analysis does not assess, as they do not affect routes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brokerapp.model.definitions import Definitions, PolicyEntry, RedeliveryPolicy


def unassessed_changes(current: Definitions, proposed: Definitions) -> list[str]:
    """Describe the changed definitions on which no route depends: how many of which kind."""
    return list(_unassessed(current, proposed))


def _unassessed(current: Definitions, proposed: Definitions) -> Iterator[str]:
    before, after = current.redelivery, proposed.redelivery
    if policies := _changed(current.policies, proposed.policies):
        yield f"{policies} {'policy' if policies == 1 else 'policies'}"
    if redelivery := _changed(before.policies, after.policies):
        yield f"{redelivery} redelivery {'policy' if redelivery == 1 else 'policies'}"
    if replace(before, policies=()) != replace(after, policies=()):
        yield "options of the redelivery plugin"


def _changed(before: Sequence[PolicyEntry | RedeliveryPolicy], after: Sequence[PolicyEntry | RedeliveryPolicy]) -> int:
    old, new = ({each.id: each for each in side} for side in (before, after))
    return sum(old.get(id) != new.get(id) for id in old | new)
