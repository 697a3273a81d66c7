"""Reads plain values from Python's marshal format, in which batches of version 2 were stored, and no code.

Python's own `marshal.loads` makes code objects and may crash on damaged data, which who writes to the store could use.
Only what such batches held is known here: tuples, lists, dicts, texts, bytes, integers and None.
"""

from __future__ import annotations

import struct
from typing import Any

#: Set in the type of a value to which later ones may refer.
_REFERRED = 0x80
#: Values within values; batches had four levels.
_DEPTH = 20
_DIGIT_BITS = 15
_CONSTANTS = {ord("N"): None, ord("T"): True, ord("F"): False}
#: Encoding of each type of text, and whether its length is one byte.
_TEXTS = {
    ord("u"): ("utf-8", False), ord("t"): ("utf-8", False), ord("a"): ("ascii", False), ord("A"): ("ascii", False),
    ord("z"): ("ascii", True), ord("Z"): ("ascii", True),
}  # fmt: skip


def unmarshal(data: bytes) -> Any:
    """Return the value in these bytes. Raises ValueError for anything but plain values."""
    try:
        return _Reader(data).value()
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
        raise ValueError(f"damaged at its end or within: {error}") from error


class _Reader:
    """Reads marshalled values in one pass."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._known: list[Any] = []  # what later values refer to, by their number

    def value(self, depth: int = 0) -> Any:
        if depth > _DEPTH:
            raise ValueError("values are nested too deep")
        code = self._data[self._at]
        self._at += 1
        kind, place = code & ~_REFERRED, None
        if code & _REFERRED:  # its number is taken before those of the values in it
            place = len(self._known)
            self._known.append(None)
        found = self._of_kind(kind, depth)
        if place is not None:
            self._known[place] = found
        return found

    def _of_kind(self, kind: int, depth: int) -> Any:
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _TEXTS:
            encoding, short = _TEXTS[kind]
            return self._take(self._byte() if short else self._long()).decode(encoding, "surrogatepass")
        match chr(kind):
            case "i":
                return self._long()
            case "l":
                return self._integer()
            case "s":
                return self._take(self._long())
            case "(" | ")":
                return tuple(self._values(self._byte() if kind == ord(")") else self._long(), depth))
            case "[":
                return self._values(self._long(), depth)
            case "{":
                return self._pairs(depth)
            case "r":
                return self._known[self._long()]
        raise ValueError(f"unsupported type {kind:#x}")

    def _values(self, count: int, depth: int) -> list[Any]:
        if not 0 <= count <= len(self._data):
            raise ValueError(f"invalid number of values {count}")
        return [self.value(depth + 1) for _ in range(count)]

    def _pairs(self, depth: int) -> dict[Any, Any]:
        found = {}
        while self._data[self._at] != ord("0"):
            key = self.value(depth + 1)
            found[key] = self.value(depth + 1)
        self._at += 1
        return found

    def _integer(self) -> int:
        """Read an integer beyond 32 bits: digits of 15 bits, whose count has its sign."""
        count = self._long()
        digits: tuple[int, ...] = struct.unpack(f"<{abs(count)}H", self._take(2 * abs(count)))
        found = sum(digit << (_DIGIT_BITS * place) for place, digit in enumerate(digits))
        return -found if count < 0 else found

    def _long(self) -> int:
        return int.from_bytes(self._take(4), "little", signed=True)

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if count < 0 or self._at > len(self._data):
            raise ValueError("it ends too early")
        return self._data[start : self._at]
