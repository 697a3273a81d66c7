"""Transformations: what the `transformation` header of a SEND asks for. Pure.

ActiveMQ turns such text into object and map messages for its Java clients, and back into text for STOMP's. Between
STOMP clients nothing remains of that but the text, so here it is passed on as it is, with the header. What is announced
as JSON is looked at, and what is none is marked as ActiveMQ marks it, with `transformation-error`; XML is not looked
at. Names that nobody knows are no error.
"""

from __future__ import annotations

import json

#: Transformations of text that is JSON.
JSON = frozenset({"jms-json", "jms-object-json", "jms-map-json", "jms-advisory-json"})
#: The one that leaves a message of bytes what it is.
BYTES = "jms-byte"


def error_in(transformation: str, body: bytes) -> str | None:
    """What is wrong with a body, as one line; None when nothing is known to be."""
    if transformation not in JSON:
        return None
    try:
        json.loads(body)
    except (ValueError, RecursionError) as wrong:
        return f"{transformation}: the body is not JSON: {wrong}"
    return None
