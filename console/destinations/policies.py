"""Lists the options of a destination policy for pages. No I/O."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from brokerapp.model.definitions import PolicyEntry

_NOT_OPTIONS = frozenset({"destination", "options"})


def set_options(entry: PolicyEntry) -> list[tuple[str, str]]:
    """Return the options that a policy sets, under ActiveMQ's names, and those that have no effect."""
    said = [
        (_camel_case(each.name), _format_value(getattr(entry, each.name)))
        for each in fields(entry)
        if _is_set(entry, each)
    ]
    return said + [(name, f"{value} (no effect)") for name, value in entry.options]


def _is_set(entry: PolicyEntry, field: Any) -> bool:
    return field.name not in _NOT_OPTIONS and getattr(entry, field.name) != field.default


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def _format_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
    set_fields = [(each.name, getattr(value, each.name)) for each in fields(value)]
    inner = ", ".join(
        f"{_camel_case(name)}={_format_value(each)}" for name, each in set_fields if each not in (None, ())
    )
    return f"{type(value).__name__}({inner})"
