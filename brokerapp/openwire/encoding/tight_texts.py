"""Reads and writes what is not of a fixed length in the tight encoding, and the bits that its data depend on.

A frame has all its truth values first, as bits; among them, for each text and number, some that say how it is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from struct import Struct

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import WireThrowable
from brokerapp.openwire.encoding.modified_utf8 import decode_text, encode_text
from brokerapp.openwire.encoding.throwables import decode_throwable, encode_throwable

#: The longest text, bytes: less than Java's longest array with a short length.
MAX_TEXT_BYTES = 32766
#: The most bytes of bits.
MAX_BIT_BYTES = 0x7FFF
#: Instead of the number of bytes of bits: it follows in one byte, in two.
_IN_ONE, _IN_TWO = 0xC0, 0x80
#: From this on it does.
_LONG, _LONGER = 64, 256
_BITS_OF = tuple(tuple(byte >> place & 1 == 1 for place in range(8)) for byte in range(256))
_DIGITS = bytes.maketrans(b"\0\1", b"01")
_SHORT, _INT, _LONG_NUMBER = Struct(">H"), Struct(">I"), Struct(">q")

Bit = Callable[[], bool]


def encode_bits(bits: list[bool]) -> bytes:
    """Return bits as bytes, with the number of these before them. Raises OpenWireError for too many."""
    size = (len(bits) + 7) // 8
    if size > MAX_BIT_BYTES:
        raise OpenWireError(f"a command has {len(bits)} truth values: at most {MAX_BIT_BYTES * 8} are allowed")
    data = int(bytes(bits)[::-1].translate(_DIGITS) or b"0", 2).to_bytes(size, "little")
    if size < _LONG:
        return bytes([size]) + data
    return (bytes([_IN_ONE, size]) if size < _LONGER else bytes([_IN_TWO]) + _SHORT.pack(size)) + data


def decode_bits(data: bytes, pos: int) -> tuple[Iterator[bool], int]:
    """Return the bits at `pos`, and where their bytes end. Raises OpenWireError, IndexError, struct.error."""
    size = data[pos]
    pos += 1
    if size == _IN_ONE:
        size = data[pos]
        pos += 1
    elif size == _IN_TWO:
        (size,) = _SHORT.unpack_from(data, pos)
        pos += 2
    if size > MAX_BIT_BYTES:
        raise OpenWireError(f"a frame has {size} bytes of truth values: at most {MAX_BIT_BYTES} are allowed")
    return chain.from_iterable(map(_BITS_OF.__getitem__, data[pos : pos + size])), pos + size


def encode_number(number: int, bits: Callable[[bool], object]) -> bytes:
    """Return the bytes of a number of 64 bits, as few as it needs; two bits say how many."""
    if number == 0:
        bits(False)
        bits(False)
        return b""
    if 0 < number <= 0xFFFF:
        bits(False)
        bits(True)
        return _SHORT.pack(number)
    bits(True)
    if 0 < number <= 0xFFFF_FFFF:
        bits(False)
        return _INT.pack(number)
    bits(True)
    return _LONG_NUMBER.pack(number)


def encode_tight_text(text: str, bits: Callable[[bool], object]) -> bytes:
    """Return the bytes of a text, which the bits say is there; one more says whether it is ASCII without NUL."""
    raw = encode_text(text)
    if len(raw) > MAX_TEXT_BYTES:
        raise OpenWireError(f"text {text[:40]!r}… has {len(raw)} bytes: at most {MAX_TEXT_BYTES} are allowed here")
    bits(len(raw) == len(text))
    return _SHORT.pack(len(raw)) + raw


def write_throwable(
    error: WireThrowable, bits: Callable[[bool], object], out: Callable[[bytes], object], with_stack: bool
) -> None:
    """Write an exception, without the bit that says that there is any."""
    encode_throwable(error, _Writer(bits, out), with_stack)


def read_throwable(data: bytes, pos: int, bit: Bit, with_stack: bool) -> tuple[WireThrowable, int]:
    """Return the exception at `pos`, and where it ends."""
    return decode_throwable(_Reader(data, pos, bit), with_stack)


class _Writer:
    __slots__ = ("data", "flag")

    def __init__(self, bits: Callable[[bool], object], out: Callable[[bytes], object]) -> None:
        self.flag, self.data = bits, out

    def text(self, text: str | None) -> None:
        self.flag(text is not None)
        if text is not None:
            self.data(encode_tight_text(text, self.flag))


class _Reader:
    __slots__ = ("_data", "flag", "pos")

    def __init__(self, data: bytes, pos: int, bit: Bit) -> None:
        self._data, self.pos, self.flag = data, pos, bit

    def text(self) -> str | None:
        if not self.flag():
            return None
        ascii_only = self.flag()
        raw = self.data(self._length())
        return raw.decode("latin-1") if ascii_only else decode_text(raw)

    def skip_text(self) -> None:
        if self.flag():
            self.flag()
            self.data(self._length())

    def data(self, size: int) -> bytes:
        start = self.pos
        self.pos += size
        return self._data[start : self.pos]

    def _length(self) -> int:
        self.pos += 2
        return self._data[self.pos - 2] << 8 | self._data[self.pos - 1]
