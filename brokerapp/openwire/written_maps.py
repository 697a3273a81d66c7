"""Encodes the body of a map message whose entries somebody wrote as text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from brokerapp.errors import OpenWireError, RequestRefused
from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.jms.typed_text import ENTRY_TYPE_NAMES, parse_typed, type_named
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short, encode_map

#: Type -> its values in OpenWire, where Python's own say too little.
_VALUES: dict[PropertyType | None, Callable[[Any], Any]] = {
    PropertyType.BYTE: Byte,
    PropertyType.SHORT: Short,
    PropertyType.LONG: Long,
    PropertyType.FLOAT: Float,
    PropertyType.CHAR: Char,
}


def encode_written_map(rows: Iterable[tuple[str, str, str]]) -> bytes:
    """Return the body of a map message with these entries: name, name of the type, and value as text.

    Raises RequestRefused, which names the entry and the rule.
    """
    values: dict[str, Any] = {}
    for name, type_name, text in rows:
        if not name:
            raise RequestRefused(f"a map entry with the value {text[:40]!r} has no name")
        if name in values:
            raise RequestRefused(f"map entry {name!r} is given twice")
        what = f"map entry {name!r}"
        try:
            type = type_named(type_name, ENTRY_TYPE_NAMES)
        except RequestRefused as error:
            raise RequestRefused(f"{what}: {error}") from None
        value = parse_typed(what, type, text)
        values[name] = _VALUES[type](value) if type in _VALUES else value
    try:
        return encode_map(values)
    except OpenWireError as error:
        raise RequestRefused(f"map: {error}") from None
