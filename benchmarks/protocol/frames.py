"""Frames in bulk: what the load generator writes and reads, whole buffers at a time. Pure: bytes in, bytes out.

The generator must cost far less than a broker. It relies on what it sends itself: bodies hold neither NUL nor line end,
and begin with the number of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NUL = b"\0"
#: What only RECEIPT frames have, each once.
RECEIPT = b"\nreceipt-id:"
#: Bytes of a body that are read: enough for the number of the message.
_READ_OF_BODY = 24

#: The `ack` header of every MESSAGE frame. A value is echoed as it came: escapes read the same both ways.
_ACK_HEADER = re.compile(rb"\nack:([^\n]*)")
_NUMBER = re.compile(rb'\n\n\{"order":([0-9]+)')

_ACK_BETWEEN = b"\n\n\0ACK\nid:"


def frame(command: str, headers: Mapping[str, object], body: bytes = b"") -> bytes:
    """One frame of STOMP 1.2. Header values are written as they are: the caller uses none that needs an escape."""
    lines = "".join([f"{name}:{value}\n" for name, value in headers.items()])
    return f"{command}\n{lines}\n".encode() + body + NUL


def ack_block(ids: Iterable[bytes]) -> bytes:
    """An ACK frame for each id, joined; the ids are `ack` header values, of which there must be at least one."""
    return b"ACK\nid:" + _ACK_BETWEEN.join(ids) + b"\n\n\0"


def heads(buffer: bytes | bytearray, end: int) -> bytes:
    """Commands, headers and starts of the bodies of all frames in `buffer[:end]`, which must hold whole frames.

    Bodies are passed over without being copied: those of 64 KiB cost the generator as much as a broker.
    """
    find, found, at = buffer.find, [], 0
    while (blank := find(b"\n\n", at, end)) >= 0:
        nul = find(NUL, blank, end)
        found.append(buffer[at : min(blank + _READ_OF_BODY, nul)])
        at = nul + 1
    return NUL.join(found)


def ack_ids(heads: bytes) -> list[bytes]:
    """The `ack` header values of all MESSAGE frames."""
    return _ACK_HEADER.findall(heads)


def message_numbers(heads: bytes) -> list[bytes]:
    """The numbers of all messages, as their bodies have them."""
    return _NUMBER.findall(heads)


def end_of_frames(buffer: bytes | bytearray, end: int) -> int:
    """Where the last whole frame of `buffer[:end]` ends; 0 when none does."""
    return buffer.rfind(NUL, 0, end) + 1
