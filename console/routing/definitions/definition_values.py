"""Describe definitions as named values, to compare two or three of them. Pure."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from brokerapp.config.parsing.attributes import xml_spelling
from brokerapp.model.definitions import (
    CompositeDestination,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from console.routing.definitions.changes import ChangeConflict, Definition, DefinitionChange, kind_of

#: Labels of the kinds of definitions.
LABELS: dict[str, str] = {
    "virtualTopic": "Virtual topic",
    "compositeQueue": "Composite queue",
    "compositeTopic": "Composite topic",
    "mirroredQueue": "Mirrored queues",
    "policyEntry": "Destination policy",
    "redeliveryPolicy": "Redelivery policy",
    "redelivery": "Redelivery",
}


def title_of(item: Definition) -> str:
    """Return the title of a definition."""
    match item:
        case VirtualTopic():
            return item.name
        case CompositeDestination():
            return item.destination.name
        case MirroredQueue():
            return "all queues"
        case PolicyEntry() | RedeliveryPolicy():
            return str(item.destination)
    return "Undeliverable messages"


def label_of(item: Definition) -> str:
    """Return the label of a definition's kind."""
    return LABELS[kind_of(item)]


def values_of(item: Definition | None) -> dict[str, str]:
    """Return all values by name, defaults included, without empty ones."""
    return {} if item is None else dict(_iterate_values(item))


def _iterate_values(record: Any, within: str = ""):
    for each in fields(record):
        name, value = within + xml_spelling(each.name), getattr(record, each.name)
        if value is None or value == ():
            continue
        if each.name == "legs":
            yield from _forward_target_values(value)
        elif each.name == "options":
            yield from value
        elif is_dataclass(value):
            yield from _iterate_values(value, f"{name}.")
        else:
            yield name, _text(value)


def _forward_target_values(legs: tuple[ForwardTarget, ...]):
    seen: dict[Destination, int] = {}
    for leg in legs:
        seen[leg.destination] = seen.get(leg.destination, 0) + 1
        again = f" ({seen[leg.destination]})" if seen[leg.destination] > 1 else ""
        yield f"forwardTo {leg.destination}{again}", leg.selector or "all messages"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A value before and after a change, and in a conflict that of the other user; empty if not set."""

    name: str
    was: str
    now: str
    theirs: str = ""
    is_disputed: bool = False  #: both users changed it, to different values


def change_rows(change: DefinitionChange) -> list[ChangeRow]:
    """Return the values that a change changes."""
    if change.before is None or change.after is None:  # new or removed: without defaults
        was, now = (non_default_values(item) if item is not None else {} for item in (change.before, change.after))
    else:
        was, now = values_of(change.before), values_of(change.after)
    names = dict.fromkeys((*was, *now))
    return [ChangeRow(name, was.get(name, ""), now.get(name, "")) for name in names if was.get(name) != now.get(name)]


def conflict_rows(clash: ChangeConflict) -> list[ChangeRow]:
    """Return the values that either user changed: base, draft and active."""
    was, now, theirs = values_of(clash.change.before), values_of(clash.change.after), values_of(clash.theirs)
    rows = []
    for name in dict.fromkeys((*was, *theirs, *now)):
        sides = was.get(name, ""), now.get(name, ""), theirs.get(name, "")
        if len(set(sides)) > 1:
            rows.append(ChangeRow(name, *sides, is_disputed=len(set(sides)) == 3))
    return rows


def non_default_values(item: Definition) -> dict[str, str]:
    """Return the values that differ from the defaults, also of nested records; a record of defaults is named."""
    said = _non_default_values(item)
    for each in fields(item):
        name, part = xml_spelling(each.name), getattr(item, each.name)
        if is_dataclass(part) and not isinstance(part, Destination):
            said = {known: value for known, value in said.items() if not known.startswith(f"{name}.")}
            own = _non_default_values(part) | ({"kind": part.kind} if hasattr(part, "kind") else {})
            said |= {f"{name}.{inner}": value for inner, value in own.items()} or {name: "defaults"}
    return said


def _non_default_values(record: Any) -> dict[str, str]:
    needed = [each.name for each in fields(record) if each.default is MISSING and each.default_factory is MISSING]
    plain = values_of(type(record)(**{name: getattr(record, name) for name in needed}))
    return {name: value for name, value in values_of(record).items() if plain.get(name) != value}
