"""Describes the fields of commands: how each is encoded, in which versions. Written beside the field, once.

    client_id: str | None = string()
    broker_path: tuple[BrokerId, ...] | None = array(BROKER_ID, since=3)

The order of the fields of a class is their order on the wire.
"""

from __future__ import annotations

import dataclasses
from enum import Enum, auto
from typing import Any

from brokerapp.openwire.commands.data_types import MAX_VERSION, MIN_VERSION

#: Key of the description in the metadata of a dataclass's field.
METADATA_KEY = "wire"
#: The length of the only field of a fixed length that is not a number: the magic of WireFormatInfo.
MAGIC_LENGTH = 8


class Kind(Enum):
    """How a field is encoded."""

    BOOLEAN = auto()
    BYTE = auto()
    INT = auto()
    LONG = auto()
    MAGIC = auto()
    STRING = auto()
    BYTES = auto()
    #: A command or value of one of the named types, or none.
    NESTED = auto()
    #: The same, sent once and by a number afterwards where both sides agreed upon a cache.
    CACHED = auto()
    #: Several, or no list at all.
    ARRAY = auto()
    #: A Java exception.
    THROWABLE = auto()


#: The kinds whose bytes are always there and always as many, and the letters by which `struct` knows them. What is of
#: another kind begins with whether it is there.
FORMATS = {Kind.BOOLEAN: "?", Kind.BYTE: "b", Kind.INT: "i", Kind.LONG: "q", Kind.MAGIC: f"{MAGIC_LENGTH}s"}


@dataclasses.dataclass(frozen=True, slots=True)
class WireField:
    """One field on the wire: its kind, the versions that have it, what may be nested in it (nothing: any type)."""

    kind: Kind
    since: int = MIN_VERSION
    until: int = MAX_VERSION
    nested_types: tuple[int, ...] = ()
    #: For types that share a class: the only one that has the field.
    only_in: int | None = None


def _field(default: object, description: WireField) -> Any:
    return dataclasses.field(default=default, metadata={METADATA_KEY: description})


def boolean(*, since: int = MIN_VERSION, default: bool = False, only_in: int | None = None) -> Any:
    """Return the field of a truth value."""
    return _field(default, WireField(Kind.BOOLEAN, since, only_in=only_in))


def byte() -> Any:
    """Return the field of a signed number of 8 bits."""
    return _field(0, WireField(Kind.BYTE))


def int32(*, since: int = MIN_VERSION, until: int = MAX_VERSION) -> Any:
    """Return the field of a signed number of 32 bits."""
    return _field(0, WireField(Kind.INT, since, until))


def int64(*, since: int = MIN_VERSION, default: int = 0) -> Any:
    """Return the field of a signed number of 64 bits."""
    return _field(default, WireField(Kind.LONG, since))


def magic(default: bytes) -> Any:
    """Return the field of the eight bytes that tell OpenWire from other protocols."""
    return _field(default, WireField(Kind.MAGIC))


def string(*, since: int = MIN_VERSION, default: str | None = None, only_in: int | None = None) -> Any:
    """Return the field of a text of at most 65535 bytes, or None."""
    return _field(default, WireField(Kind.STRING, since, only_in=only_in))


def blob(*, since: int = MIN_VERSION) -> Any:
    """Return the field of bytes, or None."""
    return _field(None, WireField(Kind.BYTES, since))


def nested(*types: int, since: int = MIN_VERSION) -> Any:
    """Return the field of a value of one of the types (none named: of any), or None."""
    return _field(None, WireField(Kind.NESTED, since, nested_types=types))


def cached(*types: int) -> Any:
    """Return the field of a value that is sent once, where there is a cache, or None."""
    return _field(None, WireField(Kind.CACHED, nested_types=types))


def array(*types: int, since: int = MIN_VERSION) -> Any:
    """Return the field of a tuple of values of one of the types (none named: of any), or None."""
    return _field(None, WireField(Kind.ARRAY, since, nested_types=types))


def throwable(*, since: int = MIN_VERSION) -> Any:
    """Return the field of an exception, or None."""
    return _field(None, WireField(Kind.THROWABLE, since))
