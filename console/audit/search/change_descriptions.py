"""Describe in words what an audit entry changed. Pure.

Of a state: the values that differ. Of an operation: its parameters and its outcome. Of routing: definitions by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from brokerapp.errors import BrokerError
from brokerapp.model.definition_codec import from_json
from console.audit.models import AuditEntry
from console.routing.definitions.changes import DefinitionChange, definition_from_json, diff_definitions
from console.routing.definitions.definition_values import change_rows, label_of, title_of
from console.ui.formatting.json_diff import ValueDifference, differences

#: By it a value is known to hold definitions.
_OF_DEFINITIONS = "virtualDestinations"
#: Operations whose two sides share a name and are no state before and after.
_OPERATIONS = frozenset({"edit"})
#: What values are called that operations ask for, and those that come of it, where their names do not say it.
_ASKED = {
    "message": "original message",
    "messages": "message numbers",
    "bytes": "body size in bytes",
    "count": "messages",
}
_DONE = {"message": "new message", "places": "sent to", "first": "first message", "done": "processed messages"}
_NAMES = {"QueueSize": "depth"}
_TARGET = "forwardTo "


def changes_of(entry: AuditEntry) -> list[ValueDifference]:
    """Return the changes of an entry as rows with the value before and after."""
    before, after = entry.before, entry.after
    try:
        if _holds_definitions(before) or _holds_definitions(after):
            return list(_of_definitions(before, after))
    except (BrokerError, LookupError, TypeError, ValueError):  # written by another version
        return differences(before, after)
    if _is_operation(entry):
        return [*_facts(before, _ASKED), *_facts(after, _DONE)]
    return [replace(each, name=_in_words(each.name)) for each in differences(before, after)]


def _is_operation(entry: AuditEntry) -> bool:
    """Return whether `before` holds the arguments of an operation rather than a former state."""
    before, after = entry.before, entry.after
    if not isinstance(before, dict):
        return False
    if after is None:  # nothing is removed by what was not done
        return entry.outcome != AuditEntry.Outcome.DONE
    return isinstance(after, dict) and (entry.action in _OPERATIONS or not before.keys() & after.keys())


def _facts(values: dict[str, Any] | None, names: dict[str, str]) -> Iterator[ValueDifference]:
    for name, value in (values or {}).items():
        if value not in ("", [], {}, None):
            text = _text(value)
            yield ValueDifference(names.get(name, _in_words(name)), text, text)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_words(path: str) -> str:
    """Return the name of a place in words: `accountRoles[1].scope` is "account role 2, scope"."""
    return ", ".join(map(_part_in_words, path.removeprefix("[").split("."))) if path else ""


def _part_in_words(part: str) -> str:
    if part in _NAMES:
        return _NAMES[part]
    name, *numbers = re.split(r"[\[\]]+", part.strip("]"))
    if name.isdecimal():
        return f"entry {int(name) + 1}"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")
    words = words if words == name else words.lower()
    return " ".join([words.removesuffix("s"), *(str(int(each) + 1) for each in numbers if each)]) if numbers else words


# -- definitions


def _holds_definitions(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(isinstance(each, dict) and _OF_DEFINITIONS in each for each in values)


def _of_definitions(before: Any, after: Any) -> Iterator[ValueDifference]:
    for change in _changes(before, after):
        item = change.after if change.after is not None else change.before
        title = f"{label_of(item)} {title_of(item)}"
        if change.what != "changed":
            what = {"new": "created", "removed": "deleted"}[change.what]
            yield ValueDifference(title, what, what)
        for row in change_rows(change):
            name = f"{title}, {_setting(row.name)}"
            yield ValueDifference(name, _value(row.was), _value(row.now))


def _changes(before: Any, after: Any) -> list[DefinitionChange]:
    if isinstance(before, list) or isinstance(after, list):
        count = max(len(before or ()), len(after or ()))
        sides = ([*(each or ()), *[None] * (count - len(each or ()))] for each in (before, after))
        return [DefinitionChange(*map(definition_from_json, pair)) for pair in zip(*sides, strict=True)]
    if all(each is None or _is_one(each) for each in (before, after)):
        return [DefinitionChange(definition_from_json(before), definition_from_json(after))]
    return diff_definitions(from_json(before or {}), from_json(after or {}))


def _is_one(definitions: dict[str, Any]) -> bool:
    """Return whether the value is one changed definition of a draft, without a version."""
    return not definitions.get("version")


def _setting(name: str) -> str:
    if name.startswith(_TARGET):
        return f"target {name.removeprefix(_TARGET).removeprefix('queue://').replace('topic://', 'topic ')}"
    return name


def _value(text: str) -> str | None:
    return "all messages" if text == "everything" else text or None
