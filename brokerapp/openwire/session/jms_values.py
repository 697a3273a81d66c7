"""Translate typed properties between OpenWire's values and the header lines of stored messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from brokerapp.model.jms.form import JMS_HEADER, JmsForm
from brokerapp.model.jms.properties import (
    PropertyType,
    property_header,
    property_name,
    property_text,
    property_value,
)
from brokerapp.model.message import escape
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short, decode_map, encode_map

#: Class of a decoded value -> its type; those of strings are not named.
_TYPES: dict[type, PropertyType] = {
    bool: PropertyType.BOOLEAN,
    Byte: PropertyType.BYTE,
    Char: PropertyType.CHAR,
    Short: PropertyType.SHORT,
    int: PropertyType.INT,
    Long: PropertyType.LONG,
    Float: PropertyType.FLOAT,
    float: PropertyType.DOUBLE,
    bytes: PropertyType.BYTES,
    type(None): PropertyType.NULL,
    dict: PropertyType.OTHER,
    list: PropertyType.OTHER,
}
_CLASSES: dict[PropertyType, type] = {
    PropertyType.BYTE: Byte,
    PropertyType.CHAR: Char,
    PropertyType.SHORT: Short,
    PropertyType.LONG: Long,
    PropertyType.FLOAT: Float,
}
#: The name under which the bytes of a map or a list are a map of one value.
_ONLY = ""


def header_lines(properties: Mapping[str, Any]) -> tuple[str, dict[str, PropertyType]]:
    """Return header lines for properties, escaped, and the types of those that are not strings."""
    lines, types = "", {}
    for name, value in properties.items():
        if type(value) is str:
            lines += f"{escape(property_header(name))}:{escape(value)}\n"
            continue
        kind = types[name] = _TYPES[type(value)]
        plain = encode_map({_ONLY: value}) if kind is PropertyType.OTHER else value
        lines += f"{escape(property_header(name))}:{escape(property_text(kind, plain))}\n"
    return lines, types


def properties_of(headers: Iterable[tuple[str, str]], form: JmsForm | None) -> dict[str, Any]:
    """Return the typed properties among the headers of a message; without a form all are strings."""
    types = form.types if form is not None else {}
    found: dict[str, Any] = {}
    for header, text in headers:
        name = property_name(header)
        if name is None or header == JMS_HEADER:
            continue
        kind = types.get(name)
        found[name] = text if kind is None else _typed(kind, text)
    return found


def _typed(kind: PropertyType, text: str) -> Any:
    value = property_value(kind, text)
    if kind is PropertyType.OTHER:
        return decode_map(value)[_ONLY] if isinstance(value, bytes) else text
    if isinstance(value, str) and kind is not PropertyType.CHAR:  # somebody changed it to what is none of that type
        return value
    return _CLASSES[kind](value) if kind in _CLASSES else value
