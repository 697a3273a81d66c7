"""Derives the layout of each type in each version from the descriptions beside the fields."""

from __future__ import annotations

import dataclasses
import struct
from functools import cache
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire import commands
from brokerapp.openwire.commands import MessageCommand, OpenWireDestination
from brokerapp.openwire.commands.data_types import (
    DESTINATIONS,
    FIRST_VERSIONS,
    MAX_VERSION,
    MESSAGES,
    MIN_VERSION,
    WIRE_FORMAT_INFO,
)
from brokerapp.openwire.commands.wire_fields import FORMATS, METADATA_KEY, Kind, WireField

#: Types that have one more bit where they are nested, in the tight encoding: that they have bits of their own. No
#: client sets it.
TYPES_WITH_A_SPARE_BIT = frozenset({WIRE_FORMAT_INFO, *MESSAGES})
_EXPORTED: list[Any] = [getattr(commands, name) for name in commands.__all__]
#: The class of each type.
CLASSES: dict[int, Any] = {
    each.data_type: each for each in _EXPORTED if isinstance(getattr(each, "data_type", None), int)
}
CLASSES |= dict.fromkeys(MESSAGES, MessageCommand) | dict.fromkeys(DESTINATIONS, OpenWireDestination)


@dataclasses.dataclass(frozen=True, slots=True)
class FieldLayout:
    """One field of a class, and what it is without being sent."""

    name: str
    default: object
    #: None where the type's number says it all.
    wire: WireField | None


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """Neighbours that are read and written by one call: fixed fields, and the byte that says whether more follows."""

    fixed: tuple[tuple[str, Kind], ...]
    optional: tuple[str, WireField] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """A type in one version: all fields of its class in their order, and what of them is on the wire."""

    data_type: int
    cls: Any
    fields: tuple[FieldLayout, ...]
    on_wire: tuple[tuple[str, WireField], ...]

    @property
    def name(self) -> str:
        """The name of the type's class."""
        return str(self.cls.__name__)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """What is on the wire, in parts that end with an optional field."""
        found, fixed = [], []
        for name, wire in self.on_wire:
            if wire.kind in FORMATS:
                fixed.append((name, wire.kind))
            else:
                found.append(Segment(tuple(fixed), (name, wire)))
                fixed = []
        return tuple([*found, Segment(tuple(fixed), None)] if fixed else found)

    @property
    def bytes_after_text(self) -> int | None:
        """How many bytes follow the text of an immutable value that is a text and numbers; None for other types."""
        kinds = [wire.kind for _, wire in self.on_wire]
        if (
            not self.cls.__dataclass_params__.frozen
            or kinds[0] is not Kind.STRING
            or not FORMATS.keys() >= set(kinds[1:])
        ):
            return None
        return struct.calcsize(">" + "".join(FORMATS[each] for each in kinds[1:]))

    @property
    def is_recursive(self) -> bool:
        """Whether it can be nested in itself."""
        return any(
            wire.kind in (Kind.NESTED, Kind.ARRAY) and (not wire.nested_types or self.data_type in wire.nested_types)
            for _, wire in self.on_wire
        )


@cache
def layout(data_type: int, version: int) -> Layout:
    """Return the layout of a type in a version. Raises OpenWireError where there is none."""
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise OpenWireError(f"version {version} is not supported: expected {MIN_VERSION} to {MAX_VERSION}")
    if data_type not in CLASSES or version < FIRST_VERSIONS.get(data_type, MIN_VERSION):
        raise OpenWireError(f"type {data_type} does not exist in version {version}")
    cls = CLASSES[data_type]
    fields = tuple(_field(each, data_type) for each in dataclasses.fields(cls))
    on_wire = tuple(
        (each.name, each.wire) for each in fields if each.wire is not None and _is_sent(each.wire, data_type, version)
    )
    return Layout(data_type, cls, fields, on_wire)


def _field(field: dataclasses.Field[Any], data_type: int) -> FieldLayout:
    wire = field.metadata.get(METADATA_KEY)
    return FieldLayout(field.name, data_type if wire is None else field.default, wire)


def _is_sent(wire: WireField, data_type: int, version: int) -> bool:
    return wire.since <= version <= wire.until and wire.only_in in (None, data_type)
