"""Read the head of a SEND: what decides about the message, what may differ in each, and its properties.

One pass over the lines, whatever names they have and in whatever order they come; send_shapes.py reads heads faster
whose names came often before, and finds the same. Pure. What is less plain is left to frames.py, so nothing is refused
here.
"""

from __future__ import annotations

import re

from brokerapp.model.message import escape, unescape
from brokerapp.stomp.header_parser import MAX_HEADER_LINE_BYTES, MAX_HEADERS
from brokerapp.stomp.naming import SEND_TYPE
from brokerapp.stomp.send_headers import JMS_SETTERS, NOT_PROPERTIES

#: Headers that decide what becomes of a message, and those that it may have a value of its own for.
DECIDING = ("destination", "persistent", "priority", SEND_TYPE, "amq-msg-type", "reply-to")
VARYING = ("expires", "timestamp", "transaction")
#: What was read: the values of DECIDING, the lines of properties, receipt, content-length, and the values of VARYING
#: if there are any. Values are as they are written; None: there is no such header.
Values = tuple[bytes | None, ...]
SendHead = tuple[Values, str, bytes | None, bytes | None, Values | None]
#: The most bytes of a head that is read here: no line of it can be too long.
MAX_SEND_HEAD_BYTES = MAX_HEADER_LINE_BYTES
#: Headers that mean something only together with others, or with the body.
DEPENDENT = JMS_SETTERS.keys() | {"transformation"}
#: Headers that the broker interprets or leaves out; all others are properties.
INTERPRETED = NOT_PROPERTIES | DEPENDENT | set(DECIDING)

_SLOTS: dict[bytes, bytes | None] = dict.fromkeys(
    name.encode() for name in (*DECIDING, *VARYING, "content-length", "receipt")
)
_DECIDING, _VARYING = slice(len(DECIDING)), slice(len(DECIDING), len(DECIDING) + len(VARYING))
#: Names that are neither properties nor read here.
_OTHERS = frozenset(name.encode() for name in INTERPRETED) - _SLOTS.keys() | {b""}
_DEPENDENT = frozenset(name.encode() for name in DEPENDENT)
_NONE_VARY: list[bytes | None] = [None] * len(VARYING)
#: Header lines with escapes where they belong.
_CANONICAL = re.compile(r"(?:[^:\n\\]++:(?:[^:\n\\]++|\\[cnr\\])*+\n)*+").fullmatch


def read_send_head(lines: bytes) -> SendHead | None:
    """Return what the header lines of a SEND say; None when they are not plain.

    They are valid UTF-8, without the newline of the last, and at most MAX_SEND_HEAD_BYTES long.
    """
    if lines.find(b"\r") >= 0 or lines.find(b"\0") >= 0:
        return None
    parts = lines.split(b"\n")
    slots = _SLOTS.copy()
    properties: dict[bytes, bytes] = {}
    for line in parts:
        name, colon, value = line.partition(b":")
        if not colon:
            return None
        if name in slots:
            slots[name] = value
        else:
            properties[name] = line
    values = list(slots.values())
    if len(properties) + len(values) - values.count(None) != len(parts) or len(parts) > MAX_HEADERS:  # one repeated
        return None
    if not _OTHERS.isdisjoint(properties):
        if b"" in properties or not _DEPENDENT.isdisjoint(properties):
            return None
        properties = {name: line for name, line in properties.items() if name not in _OTHERS}
    if lines.find(b"\\") >= 0 and any(line.partition(b":")[0].find(b"\\") >= 0 for line in parts):
        return None
    text = canonical_lines(b"\n".join(properties.values()) + b"\n", len(properties)) if properties else ""
    varying = values[_VARYING]
    return tuple(values[_DECIDING]), text, values[-1], values[-2], None if varying == _NONE_VARY else tuple(varying)


def canonical_lines(lines: bytes, count: int) -> str:
    """Return so many header lines with escapes where they belong, as the broker stores them."""
    text = lines.decode()
    if ("\\" in text or text.count(":") != count) and not _CANONICAL(text):
        pairs = (line.partition(":") for line in text.split("\n")[:-1])
        return "".join([f"{escape(name)}:{escape(unescape(value))}\n" for name, _, value in pairs])
    return text


def named_values(names: tuple[str, ...], values: Values) -> dict[str, str]:
    """Return headers by their names, unescaped, of which these values were read."""
    pairs = zip(names, values, strict=True)
    return {name: unescape(value.decode()) for name, value in pairs if value is not None}
