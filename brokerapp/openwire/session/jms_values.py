"""Translate typed properties between OpenWire's values and the header lines of stored messages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from brokerapp.engine.scheduling.delivery_schedule import JMS_TYPES
from brokerapp.errors import OpenWireError
from brokerapp.model.destination import MAX_NAME
from brokerapp.model.jms.form import JmsForm
from brokerapp.model.jms.properties import (
    CLASH_PREFIX,
    RESERVED_NAMES,
    PropertyType,
    property_header,
    property_text,
)
from brokerapp.model.message import escape
from brokerapp.openwire.commands import ConnectionId, LocalTransactionId, TransactionId, XATransactionId
from brokerapp.openwire.marshalled_values import CACHED_NAMES, Byte, Char, Float, Long, Short, decode_map, encode_map

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
#: How the text of an XA transaction begins.
BRANCH_PREFIX = "XA:"
#: The name under which the bytes of a map or a list are a map of one value.
_ONLY = ""


def header_lines(properties: Mapping[str, Any]) -> tuple[str, dict[str, PropertyType]]:
    """Return header lines for properties, escaped, and the types of those that are not strings."""
    lines: list[str] = []
    types: dict[str, PropertyType] = {}
    for name, value in properties.items():
        kind = _TYPES.get(type(value))
        if kind is None:
            lines.append(f"{_line_start_of(name)}{escape(value)}\n")
            continue
        types[name] = kind
        text = _TEXTS[kind](value) if kind in _TEXTS else escape(_text(kind, value))
        lines.append(f"{_line_start_of(name)}{text}\n")
    return "".join(lines), types


def _line_start_of(name: str) -> str:
    """Return how a property's line begins. Long names are few, or meant to fill the cache."""
    return (_line_start if len(name) <= MAX_NAME else _line_start.__wrapped__)(name)


@lru_cache(maxsize=CACHED_NAMES)
def _line_start(name: str) -> str:
    return f"{escape(property_header(name))}:"


def _text(kind: PropertyType, value: Any) -> str:
    return property_text(kind, encode_map({_ONLY: value}) if kind is PropertyType.OTHER else value)


def properties_of(headers: Mapping[str, str], form: JmsForm) -> dict[str, Any]:
    """Return the typed properties among the headers of a message of a JMS client."""
    types = form.types
    found: dict[str, Any] = {}
    for header, text in headers.items():
        if header in RESERVED_NAMES:
            continue
        name = header[len(CLASH_PREFIX) :] if header.startswith(CLASH_PREFIX) else header
        kind = types.get(name)
        found[name] = text if kind is None else _typed(kind, text)
    return found


def stomp_properties_of(headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties among the headers of a message of a STOMP client: strings, but for what schedules it.

    ActiveMQ reads that as numbers.
    """
    found: dict[str, Any] = {name: text for name, text in headers.items() if name not in RESERVED_NAMES}
    for name in JMS_TYPES.keys() & found.keys():
        found[name] = _typed(JMS_TYPES[name], found[name])
    return found


def transaction_text(id: TransactionId) -> str:
    """Return what a message says of the transaction in which it was sent."""
    if isinstance(id, LocalTransactionId):
        return f"{id.connection_id}:{id.value}"
    branch = ((part or b"").hex() for part in (id.global_transaction_id, id.branch_qualifier))
    return f"{BRANCH_PREFIX}{id.format_id}:{':'.join(branch)}"


def transaction_of(text: str) -> TransactionId | None:
    """Return the transaction of which transaction_text says this; None for other text."""
    try:
        if text.startswith(BRANCH_PREFIX):
            format_id, name, branch = text.removeprefix(BRANCH_PREFIX).split(":")
            return XATransactionId(int(format_id), bytes.fromhex(name), bytes.fromhex(branch))
        connection, _, value = text.rpartition(":")
        return LocalTransactionId(int(value), ConnectionId(connection))
    except ValueError:
        return None


def _typed(kind: PropertyType, text: str) -> Any:
    try:
        return _VALUES[kind](text)
    except (ValueError, OverflowError, KeyError, OpenWireError):  # somebody changed it to what is none of that type
        return text


#: Types whose texts are short to make, and hold nothing that is to be escaped.
_TEXTS: dict[PropertyType, Callable[[Any], str]] = {
    PropertyType.BOOLEAN: lambda value: "true" if value else "false",
    **dict.fromkeys((PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG), str),
}
_VALUES: dict[PropertyType, Callable[[str], Any]] = {
    PropertyType.BOOLEAN: lambda text: text == "true",
    PropertyType.BYTE: Byte,
    PropertyType.CHAR: Char,
    PropertyType.SHORT: Short,
    PropertyType.INT: int,
    PropertyType.LONG: Long,
    PropertyType.FLOAT: Float,
    PropertyType.DOUBLE: float,
    PropertyType.BYTES: bytes.fromhex,
    PropertyType.NULL: lambda _text: None,
    PropertyType.OTHER: lambda text: decode_map(bytes.fromhex(text))[_ONLY],
}
