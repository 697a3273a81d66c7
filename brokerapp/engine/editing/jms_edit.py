"""Keep the JMS form of a message that an operator edits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType, property_header, property_value


def with_jms_form(made: OperatorMessage, headers: Mapping[str, str], body: bytes) -> OperatorMessage:
    """Return an edited message with the JMS form of the original, which had these headers and this body.

    A property keeps its type while its text is a value of it, and is a string else. A body that is replaced makes a
    text or bytes message; the same bytes stay what they are.
    """
    original = headers.get(JMS_HEADER)
    if original is None:
        return made
    form = JmsForm.parse(original)
    types = {
        name: type for name, type in form.types.items() if _is_value(type, made.properties.get(property_header(name)))
    }
    if made.body == body:
        return replace(made, jms_form=JmsForm(form.kind, types, form.has_body).header_value(), is_bytes=False)
    kind = form.kind if form.kind in (JmsKind.TEXT, JmsKind.BYTES) else JmsKind.TEXT
    kind = JmsKind.BYTES if made.is_bytes else kind
    return replace(made, jms_form=JmsForm(kind, types).header_value(), is_bytes=False)


def _is_value(type: PropertyType, text: str | None) -> bool:
    """Return whether a text is a value of the type: it is read as something else than the text itself."""
    if text is None:
        return False
    if type is PropertyType.BOOLEAN:
        return text in ("true", "false")
    if type is PropertyType.NULL:
        return text == "null"
    if type is PropertyType.CHAR:
        return len(text) == 1
    value: object = property_value(type, text)
    return not isinstance(value, str) and _fits(type, value)


#: The least and the greatest whole number of a type.
_RANGES = {
    type: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for type, bits in (
        (PropertyType.BYTE, 8), (PropertyType.SHORT, 16), (PropertyType.INT, 32), (PropertyType.LONG, 64),
    )
}  # fmt: skip


def _fits(type: PropertyType, value: object) -> bool:
    if type not in _RANGES or not isinstance(value, int):
        return True
    least, greatest = _RANGES[type]
    return bool(least <= value <= greatest)
