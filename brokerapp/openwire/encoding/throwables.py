"""Encodes and decodes Java exceptions, loosely."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import WireThrowable
from brokerapp.openwire.encoding.modified_utf8 import decode_text, encode_short_text

#: Longer messages are cut: their bytes must fit into a short text, whatever they are.
MAX_MESSAGE_CHARACTERS = 10_000
#: So many exceptions may have caused each other.
MAX_CAUSES = 100
_SHORT, _INT = Struct(">h"), Struct(">i")


def encode_throwable(error: WireThrowable, out: Callable[[bytes], object], with_stack: bool) -> None:
    """Give `out` the bytes of an exception, without the one that says that there is any."""
    current: WireThrowable | None = error
    while current is not None:
        _encode_optional(current.class_name, out)
        _encode_optional(current.message and current.message[:MAX_MESSAGE_CHARACTERS], out)
        if not with_stack:
            return
        out(_SHORT.pack(len(current.stack)))
        for element in current.stack:
            _encode_optional(element.class_name, out)
            _encode_optional(element.method_name, out)
            _encode_optional(element.file_name, out)
            out(_INT.pack(element.line_number))
        current = current.cause
        out(b"\0" if current is None else b"\1")


def decode_throwable(data: bytes, pos: int, with_stack: bool) -> tuple[WireThrowable, int]:
    """Return the exception at `pos`, without its stack trace, and where it ends. Raises OpenWireError, IndexError."""
    found: list[tuple[str | None, str | None]] = []
    there = 1
    while there:
        if len(found) >= MAX_CAUSES:
            raise OpenWireError(f"an exception has more than {MAX_CAUSES} causes")
        class_name, pos = _decode_optional(data, pos)
        message, pos = _decode_optional(data, pos)
        found.append((class_name, message))
        if not with_stack:
            break
        pos = _skip_stack(data, pos)
        there = data[pos]
        pos += 1
    error: WireThrowable | None = None
    for class_name, message in reversed(found):
        error = WireThrowable(class_name, message, cause=error)
    assert error is not None
    return error, pos


def _skip_stack(data: bytes, pos: int) -> int:
    (count,) = _SHORT.unpack_from(data, pos)
    pos += 2
    if count < 0:
        raise OpenWireError(f"an exception's stack trace has {count} elements")
    for _ in range(count):
        for _ in range(3):
            if data[pos]:
                pos += 2 + (data[pos + 1] << 8 | data[pos + 2])
            pos += 1
        pos += 4
    return pos


def _encode_optional(text: str | None, out: Callable[[bytes], object]) -> None:
    out(b"\0" if text is None else b"\1" + encode_short_text(text))


def _decode_optional(data: bytes, pos: int) -> tuple[str | None, int]:
    if not data[pos]:
        return None, pos + 1
    end = pos + 3 + (data[pos + 1] << 8 | data[pos + 2])
    return decode_text(data[pos + 3 : end]), end
