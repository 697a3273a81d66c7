r"""SendShape: recognises SEND frames by the sequence of their header names. Pure; the fast path of frames.py.

Messages of one application differ in the values of their headers, seldom in the names. A shape is compiled once for
each sequence of names, into one expression that finds what the session needs of a frame:

    SEND\ndestination:(...)\n(order:...\ncustomer:...\n)receipt:(...)\n\n

Headers that the broker interprets have a group each. Properties of the message that follow each other are one group,
because they are stored as they came. Whatever is less plain is left to frames.py, so nothing is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from brokerapp.model.message import escape, unescape
from brokerapp.stomp.header_parser import MAX_HEADER_LINE_BYTES
from brokerapp.stomp.naming import SEND_TYPE
from brokerapp.stomp.send_headers import JMS_SETTERS, NOT_PROPERTIES

#: Sets of names remembered for all connections together, and orders of each set that are compiled: to compile one takes
#: as long as to read a hundred heads, so what comes in yet another order is sorted first.
MAX_SHAPES = 256
MAX_ORDERS = 4
#: The most headers of a shape, and the most bytes of a head it matches: no line of it can be too long.
MAX_SHAPE_HEADERS = 64
MAX_SHAPE_BYTES = MAX_HEADER_LINE_BYTES
#: The most bytes of the names of a shape: its expression takes some ten times as many, and sessions remember shapes.
MAX_NAME_BYTES = 1024
#: Headers that the broker interprets; all others are properties.
_INTERPRETED = NOT_PROPERTIES | {SEND_TYPE, "amq-msg-type", "reply-to"}
#: Headers that no shape has: what they mean depends on other headers, or on the body.
_NOT_IN_SHAPES = JMS_SETTERS.keys() | {"transformation"}
#: Interpreted headers whose values do not decide what the others mean; they may differ in every message.
_INDEPENDENT = frozenset({"receipt", "content-length", "expires", "timestamp", "transaction"})
#: A header line whose name needs no second look; the empty line has none.
_NAME = re.compile(rb"\n([^:\n\r\0\\]+):")
_VALUE = rb"[^\n\r\0]*+"
#: Header lines with escapes where they belong.
_CANONICAL = re.compile(r"(?:[^:\n\\]++:(?:[^:\n\\]++|\\[cnr\\])*+\n)*+").fullmatch


class SendShape:
    """The names of a SEND's headers, in order, and where their values are among the groups of `match`."""

    __slots__ = ("_parts", "_property_count", "_segments", "independent", "key", "length", "match", "receipt", "varies")

    def __init__(self, names: tuple[str, ...]) -> None:
        pattern = b"SEND\n"
        self._parts: list[str] = []  # what each group is: a header's value, or header lines ("")
        self._segments: list[int] = []
        for is_property, run in groupby(names, _is_property):
            if is_property:
                lines = b"".join(b"%b:%b\n" % (re.escape(name.encode()), _VALUE) for name in run)
                self._segments.append(len(self._parts))
                self._parts.append("")
                pattern += b"(%b)" % lines
                continue
            for name in run:
                self._parts.append(name)
                pattern += b"%b:(%b)\n" % (re.escape(name.encode()), _VALUE)
        self.match = re.compile(pattern + b"\n").match
        self._property_count = sum(map(_is_property, names))
        deciding = [at for at, name in enumerate(self._parts) if name and name not in _INDEPENDENT]
        #: The values that decide what the broker does with the message, as they are written.
        self.key: Callable[[tuple[bytes, ...]], object] = itemgetter(*deciding) if deciding else lambda _groups: ()
        #: Where the other interpreted headers have their values.
        self.independent = {name: self._parts.index(name) for name in _INDEPENDENT if name in self._parts}
        self.receipt, self.length = self.independent.get("receipt"), self.independent.get("content-length")
        self.varies = bool(self.independent.keys() - {"receipt", "content-length"})  #: whether there are more of them

    def deciding_headers(self, groups: tuple[bytes, ...]) -> dict[str, str]:
        """Return the headers whose values are in the key; and that there is a content-length, where there is one."""
        headers = self._interpreted(groups)
        return {name: value for name, value in headers.items() if name not in _INDEPENDENT or name == "content-length"}

    def headers(self, groups: tuple[bytes, ...]) -> dict[str, str]:
        """Return all headers, unescaped."""
        headers = self._interpreted(groups)
        for segment in self._segments:
            for line in groups[segment].decode().split("\n")[:-1]:
                name, _, value = line.partition(":")
                headers[name] = unescape(value)
        return headers

    def _interpreted(self, groups: tuple[bytes, ...]) -> dict[str, str]:
        parts = zip(self._parts, groups, strict=True)
        return {name: unescape(value.decode()) for name, value in parts if name}

    def properties(self, groups: tuple[bytes, ...]) -> str:
        """Return the lines of the message's properties, escaped as the broker does."""
        segments = self._segments
        if len(segments) == 1:
            text = groups[segments[0]].decode()
        else:
            text = "".join([groups[segment].decode() for segment in segments])
        if ("\\" in text or text.count(":") != self._property_count) and not _CANONICAL(text):
            return _rewritten(text)
        return text


def _is_property(name: str) -> bool:
    return name not in _INTERPRETED


def _rewritten(lines: str) -> str:
    """Return header lines with escapes where they belong."""
    pairs = (line.partition(":") for line in lines.split("\n")[:-1])
    return "".join([f"{escape(name)}:{escape(unescape(value))}\n" for name, _, value in pairs])


def recognise(buffer: bytes, start: int) -> tuple[SendShape, tuple[bytes, ...], int] | None:
    """Return the shape of the SEND that begins here, its groups, and where its body begins.

    None when its head is not complete, or not plain.
    """
    end = buffer.find(b"\n\n", start, start + MAX_SHAPE_BYTES)
    if end < 0 or not buffer.startswith(b"SEND\n", start):
        return None
    names = tuple(_NAME.findall(buffer, start, end))
    distinct = frozenset(names)
    if not len(distinct) == len(names) == buffer.count(b"\n", start, end):
        return None
    shapes = _shapes_of(distinct)
    if names not in shapes and len(shapes) >= MAX_ORDERS:
        head = b"SEND\n%b\n\n" % b"\n".join(sorted(buffer[start + 5 : end].split(b"\n")))
        names, at = tuple(_NAME.findall(head, 0, len(head) - 2)), 0
    else:
        head, at = buffer, start
    if names not in shapes:
        shapes[names] = _compiled(names)
    shape = shapes[names]
    found = shape.match(head, at) if shape else None
    return (shape, found.groups(), end + 2) if shape and found else None


@lru_cache(maxsize=MAX_SHAPES)
def _shapes_of(names: frozenset[bytes]) -> dict[tuple[bytes, ...], SendShape | None]:
    """Return the shapes of these names by their order; the caller adds to them, up to one more than MAX_ORDERS."""
    return {}


def _compiled(names: tuple[bytes, ...]) -> SendShape | None:
    try:
        texts = tuple([name.decode() for name in names])
    except UnicodeDecodeError:
        return None
    if len(texts) > MAX_SHAPE_HEADERS or sum(map(len, names)) > MAX_NAME_BYTES or not _NOT_IN_SHAPES.isdisjoint(texts):
        return None
    return SendShape(texts)
