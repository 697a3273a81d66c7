"""Policies as pages show them: what an entry says. Pure."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from brokerapp.model.definitions import PolicyEntry

_NO_OPTION = frozenset({"destination", "options"})


def options_of(entry: PolicyEntry) -> list[tuple[str, str]]:
    """What it says: the options that it sets, as ActiveMQ spells them, and those we do not honour."""
    said = [(_camel(each.name), _text(getattr(entry, each.name))) for each in fields(entry) if _is_set(entry, each)]
    return said + [(name, f"{value} (without effect)") for name, value in entry.options]


def _is_set(entry: PolicyEntry, field: Any) -> bool:
    return field.name not in _NO_OPTION and getattr(entry, field.name) != field.default


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
    set_fields = [(each.name, getattr(value, each.name)) for each in fields(value)]
    inner = ", ".join(f"{_camel(name)}={_text(each)}" for name, each in set_fields if each not in (None, ()))
    return f"{type(value).__name__}({inner})"
