"""Read the values of documents that name Java's types, as ActiveMQ writes maps in JSON. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.model.message import Message
from brokerapp.model.transformations import ERROR_HEADER, HEADER, MAP_JSON, MAX_READ_BYTES
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short

#: Name of a type -> what makes a value of it of one that JSON holds.
_VALUES: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "boolean": bool,
    "byte": Byte,
    "char": Char,
    "short": Short,
    "int": int,
    "long": Long,
    "float": Float,
    "double": float,
    "byte-array": base64.b64decode,
    "null": lambda _nothing: None,
}
#: What a document that does not have the expected form raises.
MALFORMED = (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError)


def document_of(message: Message, form: str) -> Any:
    """Return the JSON in the body of a message whose header `transformation` says this form; None for any other."""
    if f"\n{HEADER}:{form}\n".encode() not in message.head:
        return None
    if ERROR_HEADER in message.headers or len(message.body) > MAX_READ_BYTES:
        return None
    try:
        return json.loads(message.body)
    except (ValueError, RecursionError):
        return None


def map_of(message: Message) -> dict[str, Any] | None:
    """Return the values of a map in JSON; None where the message is none."""
    document = document_of(message, MAP_JSON)
    try:
        return entries_of(document["map"]) if document is not None else None
    except MALFORMED:
        return None


def entries_of(document: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return the values by name, in Java's types. Raises one of MALFORMED."""
    if not isinstance(document, Mapping):  # an empty one is an empty text
        return {}
    found = document.get("entry", [])
    return dict(map(_entry, found if isinstance(found, list) else [found]))


def _entry(entry: Mapping[str, Any]) -> tuple[str, Any]:
    names = entry["string"]
    if isinstance(names, list):
        name, value = names
        return str(name), str(value)
    [(type, value)] = [each for each in entry.items() if each[0] != "string"]
    return str(names), _VALUES[type](value)
