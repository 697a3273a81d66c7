"""Show messages of JMS clients to operators: kind, typed properties, and values of the body. Pure.

The header lines that only the broker writes for JMS clients are told as what they say, never shown as headers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.properties import CLASH_PREFIX, RESERVED_NAMES, PropertyType, property_value
from brokerapp.model.jms.typed_text import STRING, TYPE_NAMES
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short, decode_map, decode_stream
from brokerapp.openwire.message_content import object_class_name

#: Header lines that are not shown: they say what the page tells in other words.
HIDDEN_HEADERS = frozenset({JMS_HEADER, TRANSACTION_HEADER})
_VALUE_TYPES: dict[type, str] = {
    str: STRING, bool: "boolean", Byte: "byte", Char: "char", Short: "short", int: "int", Long: "long",
    Float: "float", float: "double", bytes: "byte[]", type(None): "null", dict: "map", list: "list",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A property, an entry of a map, or a value of a stream, whose name is its position."""

    name: str
    type: str  #: as Java writes it
    value: str

    def __str__(self) -> str:
        return f"{self.name} ({self.type}): {self.value}" if self.type else f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True)
class JmsContent:
    """What the body of a map, stream or object message holds."""

    values: tuple[TypedValue, ...] = ()
    class_name: str = ""  #: of an object; it is all that is read of it
    problem: str = ""  #: why the values cannot be read


def jms_form(headers: Mapping[str, str]) -> JmsForm | None:
    """Return the JMS form of a message with these headers; None: it came from no JMS client."""
    value = headers.get(JMS_HEADER)
    return None if value is None else JmsForm.parse(value)


def shown_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without hidden ones; a property of a header's name gives way to the header."""
    shown = {name: value for name, value in headers.items() if not is_hidden(name)}
    for name, value in headers.items():
        if name.startswith(CLASH_PREFIX):
            shown.setdefault(own_name(name), value)
    return shown


def shown_lines(headers: Mapping[str, str]) -> Iterator[TypedValue]:
    """Yield headers and properties in their order; those that have no JMS type have "" as their type."""
    form = jms_form(headers)
    for header, value in headers.items():
        if header in HIDDEN_HEADERS:
            continue
        if form is None or header in RESERVED_NAMES:
            yield TypedValue(header, "", value)
        else:
            yield typed_property(form, header, value)


def is_hidden(header: str) -> bool:
    """Return whether a header line is not shown under its own name."""
    return header in HIDDEN_HEADERS or header.startswith(CLASH_PREFIX)


def own_name(header: str) -> str:
    """Return the name that a sender gave the property of this header line."""
    return header.removeprefix(CLASH_PREFIX)


def typed_property(form: JmsForm, header: str, text: str) -> TypedValue:
    """Return the property of a header line with its type."""
    name = own_name(header)
    type = form.types.get(name)
    if type is None:
        return TypedValue(name, STRING, text)
    if type is PropertyType.OTHER:
        text = _other_text(text)
    return TypedValue(name, TYPE_NAMES[type], text)


def read_content(form: JmsForm, body: bytes) -> JmsContent | None:
    """Return what the body holds; None for kinds whose body is text, bytes or nothing."""
    if form.kind is JmsKind.OBJECT:
        return JmsContent(class_name=(object_class_name(body) or "unknown") if body else "")
    try:
        if form.kind is JmsKind.MAP:
            return JmsContent(tuple(_typed(*each) for each in (decode_map(body) if body else {}).items()))
        if form.kind is JmsKind.STREAM:
            return JmsContent(tuple(_typed(str(at), each) for at, each in enumerate(decode_stream(body), 1)))
    except OpenWireError as error:
        return JmsContent(problem=f"The values cannot be read: {error}.")
    return None


def _typed(name: str, value: Any) -> TypedValue:
    return TypedValue(name, _VALUE_TYPES[type(value)], _value_text(value))


def _other_text(text: str) -> str:
    """Return a property that is a map or a list as JSON; the text itself where it is none."""
    stored = property_value(PropertyType.OTHER, text)
    try:
        values = list(decode_map(stored).values()) if isinstance(stored, bytes) else [text]
    except OpenWireError:
        return text
    return _value_text(values[0]) if len(values) == 1 else text


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex(" ")
    return json.dumps(value, ensure_ascii=False, default=bytes.hex)
