"""Keep the JMS form of a message that an operator edits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.properties import property_header
from brokerapp.model.jms.typed_text import is_typed, type_named

NO_TYPES: Mapping[str, str] = {}


def with_jms_form(
    made: OperatorMessage, headers: Mapping[str, str], body: bytes, given: Mapping[str, str] = NO_TYPES
) -> OperatorMessage:
    """Return an edited message with the JMS form of the original, which had these headers and this body.

    A form that the message has is kept. Otherwise a property gets the type that is `given`, or keeps its own while its
    text is a value of it, and is a string else; a body that is replaced makes a text or bytes message; the same bytes
    stay what they are.
    """
    original = headers.get(JMS_HEADER)
    if original is None or made.jms_form:
        return made
    form = JmsForm.parse(original)
    types = {
        name: type
        for name, type in form.types.items()
        if (text := made.properties.get(property_header(name))) is not None and is_typed(type, text)
    }
    types = {name: type for name, type in types.items() if name not in given} | {
        name: type for name, each in given.items() if (type := type_named(each)) is not None
    }
    if made.body == body:
        return replace(made, jms_form=JmsForm(form.kind, types, form.has_body).header_value(), is_bytes=False)
    kind = form.kind if form.kind in (JmsKind.TEXT, JmsKind.BYTES) else JmsKind.TEXT
    kind = JmsKind.BYTES if made.is_bytes else kind
    return replace(made, jms_form=JmsForm(kind, types).header_value(), is_bytes=False)
