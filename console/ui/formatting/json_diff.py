"""Compare two JSON values field by field. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Places told apart; what differs in more of them is only counted.
MAX_PLACES = 200
_MISSING = object()


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """Represent one value, such as the field `legs[0].selector`, before and after as text; None for no value."""

    name: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> str:
        """Return added, removed, changed or same."""
        if self.before == self.after:
            return "same"
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def differences(before: Any, after: Any) -> list[ValueDifference]:
    """Return all changed fields, and on the first level the unchanged ones as context."""
    found = []
    for path, one, other in _compare("", _MISSING if before is None else before, _MISSING if after is None else after):
        if len(found) == MAX_PLACES:
            break
        found.append(ValueDifference(path, _text(one), _text(other)))
    return found


def _compare(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before is _MISSING and after is _MISSING:
        return
    if before == after and path:
        if "." not in path and "[" not in path:
            yield path, before, after
        return
    parts = _paired_members(before, after)
    if parts is None:
        yield path, before, after
        return
    for name, one, other in parts:
        yield from _compare(_join_path(path, name), one, other)


def _paired_members(before: Any, after: Any) -> list[tuple[Any, Any, Any]] | None:
    """Return the members of both values in pairs; None when there are none to compare."""
    sides = [each for each in (before, after) if each is not _MISSING]
    if all(isinstance(each, dict) for each in sides):
        names = list(dict.fromkeys(name for each in sides for name in each))
        return [(name, *(_member(each, name) for each in (before, after))) for name in names] or None
    if all(isinstance(each, list) for each in sides):
        return [(at, _member(before, at), _member(after, at)) for at in range(max(map(len, sides)))] or None
    return None


def _member(value: Any, name: Any) -> Any:
    if value is _MISSING:
        return _MISSING
    if isinstance(value, list):
        return value[name] if name < len(value) else _MISSING
    return value.get(name, _MISSING)


def _join_path(path: str, name: Any) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)


def _text(value: Any) -> str | None:
    if value is _MISSING:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
