"""Encodes and decodes Java exceptions, in whatever encoding the rest is in."""

from __future__ import annotations

from struct import Struct
from typing import Protocol

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import WireThrowable

#: Longer messages are cut: their bytes must fit into a short text of any encoding.
MAX_MESSAGE_CHARACTERS = 5_000
#: So many exceptions may have caused each other.
MAX_CAUSES = 100
_SHORT, _INT = Struct(">h"), Struct(">i")


class Writer(Protocol):
    """Where the parts of an exception go."""

    def flag(self, there: bool, /) -> object:
        """Write whether something follows."""

    def text(self, text: str | None) -> None:
        """Write a text, or that there is none."""

    def data(self, data: bytes, /) -> object:
        """Write bytes."""


class Reader(Protocol):
    """Where they come from; `pos` is the place of the next byte. All raise IndexError at the end."""

    pos: int

    def flag(self) -> int:
        """Read whether something follows."""

    def text(self) -> str | None:
        """Read a text, None for none."""

    def skip_text(self) -> None:
        """Read over a text."""

    def data(self, size: int) -> bytes:
        """Read bytes."""


def encode_throwable(error: WireThrowable, writer: Writer, with_stack: bool) -> None:
    """Write an exception, without the flag that says that there is any."""
    current: WireThrowable | None = error
    while current is not None:
        writer.text(current.class_name)
        writer.text(current.message and current.message[:MAX_MESSAGE_CHARACTERS])
        if not with_stack:
            return
        writer.data(_SHORT.pack(len(current.stack)))
        for element in current.stack:
            for text in (element.class_name, element.method_name, element.file_name):
                writer.text(text)
            writer.data(_INT.pack(element.line_number))
        current = current.cause
        writer.flag(current is not None)


def decode_throwable(reader: Reader, with_stack: bool) -> tuple[WireThrowable, int]:
    """Return an exception, without its stack trace, and where it ends. Raises OpenWireError, and what readers raise."""
    found: list[tuple[str | None, str | None]] = []
    there = 1
    while there:
        if len(found) >= MAX_CAUSES:
            raise OpenWireError(f"an exception has more than {MAX_CAUSES} causes")
        found.append((reader.text(), reader.text()))
        if not with_stack:
            break
        _skip_stack(reader)
        there = reader.flag()
    error: WireThrowable | None = None
    for class_name, message in reversed(found):
        error = WireThrowable(class_name, message, cause=error)
    assert error is not None
    return error, reader.pos


def _skip_stack(reader: Reader) -> None:
    (count,) = _SHORT.unpack(reader.data(_SHORT.size))
    if count < 0:
        raise OpenWireError(f"an exception's stack trace has {count} elements")
    for _ in range(count):
        for _ in range(3):
            reader.skip_text()
        reader.data(_INT.size)
