r"""Reads consecutive frames that are alike at once. Pure; the fast path of frames.py.

There are two: plain ACKs (1.2), and SENDs that differ in receipt, length and body only. A head is learnt when it comes
the first time, taken apart at the values that change:

    SEND\ndestination:/queue/a\nreceipt:|17|\ncontent-length:|5|\n\n        `|` cuts

From then on a frame that begins so is recognised by comparing bytes. Whatever is less plain is left to frames.py, so
nothing needs to be refused here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brokerapp.errors import ProtocolError
from brokerapp.model.message import unescape
from brokerapp.stomp.header_parser import MAX_COMMAND_BYTES, read_head

#: Different heads remembered for all connections together, and the most bytes of one.
MAX_CACHED_HEADS = 1024
MAX_CACHED_HEAD_BYTES = MAX_COMMAND_BYTES

_ACKS = re.compile(rb"(?:[\r\n]*ACK\nid:[0-9A-Za-z-]+\n\n\0)+")
_ACK_ID = re.compile(r"id:([0-9A-Za-z-]+)")
#: The escape that means something in 1.2 only.
_READ_DIFFERENTLY = "\\r"
#: What stands in no head that is learnt; with a transformation it matters what the body is.
_NOT_PLAIN = (b"\r", _READ_DIFFERENTLY.encode(), b"\ntransformation:")
_CHANGING = re.compile(rb"\n(receipt|content-length):([^\n]*)")
#: A value that needs no second look: ASCII without what ends a line or a head.
_VALUE = re.compile(rb"[^\n\r\0\x80-\xff]{0,512}")
_LENGTH = re.compile(rb"[1-9][0-9]{0,8}|0").fullmatch


class SendHead:
    """A SEND's command and headers but for the values that change from frame to frame."""

    __slots__ = ("cached_command", "first", "has_length", "has_receipt", "headers", "others")

    def __init__(self, fixed: tuple[bytes, ...], names: tuple[bytes, ...]) -> None:
        _, self.headers, without_colon = read_head(b"".join(_fixed_parts(fixed, names)).removesuffix(b"\n\n"), "1.2")
        if without_colon:
            raise ProtocolError("what is passed over must be reported for each frame")
        self.first, *others = _fixed_parts(fixed, names)
        self.others = tuple(zip(names, others, strict=True))  #: name of a value, what stands behind it
        self.has_length, self.has_receipt = b"content-length" in names, b"receipt" in names
        self.cached_command: Any = None  #: where the session keeps what it makes of these headers


@dataclass(slots=True)
class SendFrameBatch:
    """SENDs with the same head. `receipts` has None where none is wanted."""

    head: SendHead
    receipts: list[str | None]
    bodies: list[bytes]
    command = "SEND"


@dataclass(slots=True)
class AckFrameBatch:
    """Plain ACKs that follow each other."""

    ids: list[str]
    command = "ACK"

    @property
    def receipts(self) -> list[None]:
        """None of them asks for one."""
        return [None] * len(self.ids)


def read_acks(buffer: bytes, start: int) -> tuple[AckFrameBatch, int] | None:
    """Read the plain ACKs that begin here, and return where they end; None when there is none."""
    found = _ACKS.match(buffer, start)
    return found and (AckFrameBatch(_ACK_ID.findall(found[0].decode())), found.end())


def learn_head(buffer: bytes, start: int) -> SendHead | None:
    """Return the head of the SEND that begins here, if later ones can be recognised by its bytes."""
    end = buffer.find(b"\n\n", start, start + MAX_CACHED_HEAD_BYTES)
    if end < 0 or any(buffer.find(each, start, end) >= 0 for each in _NOT_PLAIN):
        return None
    parts = _CHANGING.split(buffer[start:end])
    names = parts[1::3]
    if len(set(names)) < len(names):
        return None
    try:
        return _head(tuple(parts[::3]), tuple(names))
    except ProtocolError:
        return None


@lru_cache(maxsize=MAX_CACHED_HEADS)
def _head(fixed: tuple[bytes, ...], names: tuple[bytes, ...]) -> SendHead:
    return SendHead(fixed, names)


def _fixed_parts(fixed: tuple[bytes, ...], names: tuple[bytes, ...]) -> list[bytes]:
    """Return the bytes before, between and after the values that change."""
    return [b"%b\n%b:" % each for each in zip(fixed, names, strict=False)] + [fixed[-1] + b"\n\n"]


def read_sends(head: SendHead, buffer: bytes, start: int, max_body: int) -> tuple[SendFrameBatch, int] | None:
    """Read the complete SENDs with this head that begin here, and return where they end; None when there is none."""
    first, others, after_first = head.first, head.others, len(head.first)
    receipts: list[str | None] = []
    bodies: list[bytes] = []
    position = start
    while buffer.startswith(first, position):
        at, length, receipt = position + after_first, None, None
        for name, behind in others:
            value = _VALUE.match(buffer, at)
            at = value.end()  # type: ignore[union-attr]  # it matches nothing, too
            if not buffer.startswith(behind, at):
                break
            at += len(behind)
            if name == b"receipt":
                receipt = value[0].decode()  # type: ignore[index]
                if "\\" in receipt:
                    if _READ_DIFFERENTLY in receipt:
                        break
                    receipt = unescape(receipt)
            elif _LENGTH(value[0]):  # type: ignore[index]
                length = int(value[0])  # type: ignore[index]
            else:
                break
        else:
            end = buffer.find(b"\0", at) if length is None else at + length
            if not at <= end < len(buffer) or buffer[end] or end - at > max_body:
                break
            bodies.append(buffer[at:end])
            receipts.append(receipt)
            position = end + 1
            if buffer.startswith(b"\n", position):
                position += 1
            continue
        break
    return (SendFrameBatch(head, receipts, bodies), position) if bodies else None
