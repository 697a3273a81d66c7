"""Convert values to Jolokia's JSON, and select parts of them by a path. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.exporters.jolokia.object_names import ObjectName
from console.ui.formatting.url_query import parse_integer

ANY = "*"


class MissingPath(LookupError):
    """Report a path that is not in the value."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """Define depth, size and number format of values; 0 is no limit."""

    depth: int = 0
    most: int = 0
    longs_as_text: bool = False

    @staticmethod
    def of(options: Mapping[str, Any]) -> ValueFormat:
        """Return the format of a request's options."""
        return ValueFormat(
            parse_integer(str(options.get("maxDepth") or 0), digits=9),
            parse_integer(str(options.get("maxCollectionSize") or 0), digits=9),
            options.get("serializeLong") == "string",
        )


def plain_value(value: Any, shape: ValueFormat, depth: int = 1) -> Any:
    """Return a value as JSON: bean names as objects, times in ISO 8601."""
    match value:
        case None | bool() | float() | str():
            return value
        case int():
            return str(value) if shape.longs_as_text else value
        case ObjectName():
            return {"objectName": value.canonical}
        case datetime():
            return value.isoformat()
    if shape.depth and depth > shape.depth:
        return str(value)
    match value:
        case Mapping():
            items = list(value.items())[: shape.most or None]
            return {str(name): plain_value(each, shape, depth + 1) for name, each in items}
        case Sequence():
            return [plain_value(each, shape, depth + 1) for each in value[: shape.most or None]]
    return str(value)


def value_at_path(value: Any, path: Sequence[str]) -> Any:
    """Return the part of a value at a path; `*` selects all members of a level. Raises MissingPath."""
    if not path:
        return value
    first, *rest = path
    match value:
        case dict() if first == ANY:
            return _each(value, rest)
        case dict() if first in value:
            return value_at_path(value[first], rest)
        case list() if first == ANY:
            return [value_at_path(each, rest) for each in value]
        case list() if first.isdecimal() and int(first) < len(value):
            return value_at_path(value[int(first)], rest)
    raise MissingPath(f"Path {'/'.join(path)} names nothing in the value")


def _each(value: dict[str, Any], rest: Sequence[str]) -> dict[str, Any]:
    """Return the path's part of each member that has it."""
    found = {}
    for name, each in value.items():
        try:
            found[name] = value_at_path(each, rest)
        except MissingPath:
            continue
    if not found:
        raise MissingPath(f"Path */{'/'.join(rest)} names nothing in the value")
    return found
