"""Frames in bulk: what the load generator writes and reads, whole buffers at a time. Pure: bytes in, bytes out.

The generator must cost far less than a broker, so nothing here handles one frame at a time. It relies on what the
generator itself sends: bodies hold neither NUL nor a line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

NUL = b"\0"

#: The `ack` header of every MESSAGE frame in a buffer. A value is echoed as it came: escapes read the same both ways.
_ACK_HEADER = re.compile(rb"\nack:([^\n]*)")

_ACK_START = b"ACK\nid:"
_ACK_END = b"\n\n\0"
_ACK_BETWEEN = _ACK_END + _ACK_START


def frame(command: str, headers: Mapping[str, object], body: bytes = b"") -> bytes:
    """One frame of STOMP 1.2. Header values are written as they are: the caller uses none that needs an escape."""
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"{command}\n{lines}\n".encode() + body + NUL


def send_block(headers: Sequence[Mapping[str, object]], body: bytes) -> bytes:
    """SEND frames, one for each set of headers and all with this body, joined so that one write sends them."""
    return b"".join(frame("SEND", {**each, "content-length": len(body)}, body) for each in headers)


def ack_block(ids: Iterable[bytes]) -> bytes:
    """An ACK frame for each id, joined; the ids are `ack` header values, of which there must be at least one."""
    return _ACK_START + _ACK_BETWEEN.join(ids) + _ACK_END


def ack_ids(buffer: bytes | bytearray, end: int) -> list[bytes]:
    """The `ack` header values in `buffer[:end]`, which must hold whole MESSAGE frames."""
    return _ACK_HEADER.findall(buffer, 0, end)


def end_of_frames(buffer: bytes | bytearray, end: int) -> int:
    """Where the last whole frame of `buffer[:end]` ends; 0 when none does."""
    return buffer.rfind(NUL, 0, end) + 1
