"""Paths into JSON documents: $.customer.card, $..card, $.lines[*].price. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from brokerapp.errors import RequestRefused

RuleT = TypeVar("RuleT")

#: A step of a path: .name, .*, [*], [3], ['name'], or .. before any of them.
_STEP = re.compile(r"(\.\.)?(?:\.?([^.\[\]'*]+)|\.?(\*)|\[(\*|\d+)\]|\['([^']*)'\])")
_ANY, _DEEP = object(), object()


@lru_cache(maxsize=1024)
def parse_path(pattern: str) -> tuple[Any, ...]:
    """Return the steps of a JSON path; a bare name matches at any depth. Raises RequestRefused."""
    text = pattern.strip()
    if text and not text.startswith("$"):
        text = f"$..{text}"
    steps, at = [], 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise RequestRefused(
                f"{pattern!r} is not a valid JSON path, starting at {text[at:]!r}. Use $.customer.card or $..card."
            )
        deep, name, star, index, quoted = found.groups()
        steps += [_DEEP] if deep else []
        if star or index == "*":
            steps.append(_ANY)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(name if quoted is None else quoted)
        at = found.end()
    if not text:
        raise RequestRefused("pattern: Enter a JSON path, such as $.customer.card, or $..card for any depth.")
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class PathCursor(Generic[RuleT]):
    """Track how many steps of a rule's path are matched at one place of a document."""

    rule: RuleT
    steps: tuple[Any, ...]
    taken: frozenset[int]

    @property
    def is_there(self) -> bool:
        """Return whether the whole path is matched."""
        return len(self.steps) in self.taken

    def into(self, name: Any) -> PathCursor[RuleT]:
        """Return the cursor for a member, one level deeper."""
        taken = set()
        for at in self.taken:
            if at < len(self.steps) and self.steps[at] is _DEEP:
                taken.add(at)
                at += 1
            if at < len(self.steps) and (self.steps[at] is _ANY or self.steps[at] == name):
                taken.add(at + 1)
        return PathCursor(self.rule, self.steps, frozenset(taken))


def descend(looks: Sequence[PathCursor[RuleT]], name: Any) -> list[PathCursor[RuleT]]:
    """Return the cursors for a member that may still lead somewhere."""
    return [inside for look in looks if (inside := look.into(name)).taken]
