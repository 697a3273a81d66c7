"""Reads and writes optional texts in the loose encoding: a byte that says whether there is one, its length, itself."""

from __future__ import annotations

from collections.abc import Callable

from brokerapp.openwire.commands import WireThrowable
from brokerapp.openwire.encoding.modified_utf8 import decode_text, encode_short_text
from brokerapp.openwire.encoding.throwables import decode_throwable, encode_throwable


def write_throwable(error: WireThrowable, out: Callable[[bytes], object], with_stack: bool) -> None:
    """Give `out` the bytes of an exception, without the one that says that there is any."""
    encode_throwable(error, _Writer(out), with_stack)


def read_throwable(data: bytes, pos: int, with_stack: bool) -> tuple[WireThrowable, int]:
    """Return the exception at `pos`, and where it ends. Raises OpenWireError, IndexError, struct.error."""
    return decode_throwable(_Reader(data, pos), with_stack)


class _Writer:
    __slots__ = ("data",)

    def __init__(self, out: Callable[[bytes], object]) -> None:
        self.data = out

    def flag(self, there: bool) -> None:
        self.data(b"\1" if there else b"\0")

    def text(self, text: str | None) -> None:
        self.data(b"\0" if text is None else b"\1" + encode_short_text(text))


class _Reader:
    __slots__ = ("_data", "pos")

    def __init__(self, data: bytes, pos: int) -> None:
        self._data, self.pos = data, pos

    def flag(self) -> int:
        self.pos += 1
        return self._data[self.pos - 1]

    def text(self) -> str | None:
        return decode_text(self.data(self._length())) if self.flag() else None

    def skip_text(self) -> None:
        if self.flag():
            self.data(self._length())

    def data(self, size: int) -> bytes:
        start = self.pos
        self.pos += size
        return self._data[start : self.pos]

    def _length(self) -> int:
        self.pos += 2
        return self._data[self.pos - 2] << 8 | self._data[self.pos - 1]
