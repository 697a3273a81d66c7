"""Values as Jolokia writes them in JSON, and the parts of them that a path names. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.exporters.jolokia.object_names import ObjectName

ANY = "*"


class MissingPath(LookupError):
    """A path names what is not in the value."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How much of a value is wanted, and how numbers are written; 0 is no limit."""

    depth: int = 0
    most: int = 0
    longs_as_text: bool = False

    @staticmethod
    def of(options: Mapping[str, Any]) -> ValueFormat:
        """What a request's options say."""
        return ValueFormat(
            _number(options.get("maxDepth")),
            _number(options.get("maxCollectionSize")),
            options.get("serializeLong") == "string",
        )


def _number(value: Any) -> int:
    text = str(value or 0)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def plain_value(value: Any, shape: ValueFormat, depth: int = 1) -> Any:
    """A value as JSON has it: names of beans as objects, times in ISO 8601."""
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
    """The part of a value that a path names; `*` stands for every part of one level. Raises Missing."""
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
    """The parts of each that have it."""
    found = {}
    for name, each in value.items():
        try:
            found[name] = value_at_path(each, rest)
        except MissingPath:
            continue
    if not found:
        raise MissingPath(f"Path */{'/'.join(rest)} names nothing in the value")
    return found
