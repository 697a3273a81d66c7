"""Transformations: what a SEND announces its text to be, and the form in which a subscription wants it. Pure.

ActiveMQ turns text with the header `transformation` into object and map messages for its Java clients, and back into
text for STOMP's. Between STOMP clients nothing remains of that but the text, which passes as it is, with the header.
What is announced as JSON and is none is marked as ActiveMQ marks it, with `transformation-error`; XML is not looked at,
and names that nobody knows are no error.

A SUBSCRIBE asks by the header `transformation`, with ActiveMQ's names. JSON and XML say the same in the way of the
library that ActiveMQ uses: `@class` is an attribute, a list repeats its element, `null` is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from brokerapp.message import Message

#: What tells that a message can be had in other forms, and in which one it is.
HEADER = "transformation"
#: Form of an advisory, and of a map of values.
ADVISORY_JSON, MAP_JSON = "jms-advisory-json", "jms-map-json"
#: Forms of text that is JSON.
_JSON = frozenset({"jms-json", "jms-object-json", MAP_JSON, ADVISORY_JSON})
#: Form the broker writes -> the same as XML.
_AS_XML = {ADVISORY_JSON: "jms-advisory-xml", MAP_JSON: "jms-map-xml"}
#: In the head of all messages in one of these forms.
_MARK = f"\n{HEADER}:jms-".encode()


def error_in(transformation: str, body: bytes) -> str | None:
    """What is wrong with a body that a SEND announces so, as one line; None when nothing is known to be."""
    if transformation not in _JSON:
        return None
    try:
        json.loads(body)
    except (ValueError, RecursionError) as wrong:
        return f"{transformation}: the body is not JSON: {wrong}"
    return None


def as_wanted(message: Message, transformation: str) -> Message:
    """The message as XML when that is asked for; as it is when not, or when the broker did not write it as JSON."""
    if not transformation.endswith("-xml") or _MARK not in message.head:
        return message
    form = message.headers.get(HEADER, "")
    document = _single(message.body) if form in _AS_XML else None
    if document is None:
        return message
    head = message.head.replace(f"\n{HEADER}:{form}\n".encode(), f"\n{HEADER}:{_AS_XML[form]}\n".encode())
    body = "\n".join(_lines(*document, "")).encode()
    return replace(message, head=head, body=body, _headers=None)


def _single(body: bytes) -> tuple[str, Any] | None:
    """The name and the value that JSON text is about; None when it is something else (clients may send anything)."""
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return next(iter(document.items())) if isinstance(document, dict) and len(document) == 1 else None


def _lines(name: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _lines(name, each, indent)
    elif isinstance(value, dict):
        attributes = "".join(f" {key[1:]}={quoteattr(text)}" for key, text in value.items() if key.startswith("@"))
        yield f"{indent}<{name}{attributes}>"
        for key, each in value.items():
            if not key.startswith("@"):
                yield from _lines(key, each, indent + "  ")
        yield f"{indent}</{name}>"
    elif name == "null":
        yield f"{indent}<null/>"
    else:
        text = json.dumps(value) if isinstance(value, bool) else str(value)
        yield f"{indent}<{name}>{escape(text)}</{name}>"
