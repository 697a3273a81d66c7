"""Encodes and decodes typed values: the properties of messages, the bodies of map and stream messages, wire options.

| Java | here |
|---|---|
| Boolean, String, byte[], null | bool, str, bytes, None |
| Integer | int (one beyond 32 bits is encoded as a Long) |
| Long, Short, Byte | Long, Short, Byte: numbers that keep their type |
| Double, Float | float, Float |
| Character | Char |
| Map, List | dict, list |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from brokerapp.errors import OpenWireError
from brokerapp.openwire.encoding.modified_utf8 import decode_text, encode_short_text, encode_text, utf16_length
from brokerapp.system.text_cache import cached_if_short

#: Names of values kept encoded: applications use few.
CACHED_NAMES: Final = 4096
#: How deeply maps and lists may be nested.
MAX_DEPTH: Final = 32
#: Texts of as many UTF-16 units and more are encoded with four bytes for their length, as Java does.
_BIG_TEXT_UNITS: Final = 8191


class Long(int):
    """A number of 64 bits."""

    __slots__ = ()


class Short(int):
    """A number of 16 bits."""

    __slots__ = ()


class Byte(int):
    """A number of 8 bits."""

    __slots__ = ()


class Float(float):
    """A number of 32 bits with a fraction."""

    __slots__ = ()


class Char(str):
    """One UTF-16 unit."""

    __slots__ = ()


Value = bool | int | float | str | bytes | None | dict[str, Any] | list[Any]

_INT, _SHORT, _LONG, _FLOAT, _DOUBLE, _CHAR, _BYTE, _LENGTH = (struct.Struct(f">{each}") for each in "ihqfdHbI")
_MIN_INT, _MAX_INT = -(2**31), 2**31 - 1
_NULL, _BOOLEAN, _BYTE_TYPE, _CHAR_TYPE, _SHORT_TYPE, _INT_TYPE, _LONG_TYPE = range(7)
_DOUBLE_TYPE, _FLOAT_TYPE, _STRING, _BYTES, _MAP, _LIST, _BIG_STRING = range(7, 14)


def decode_map(data: bytes) -> dict[str, Any]:
    """Return the values by name, in their order. Raises OpenWireError."""
    try:
        values, end = _read_map(data, 0, 1)
    except (IndexError, struct.error):
        values, end = {}, len(data) + 1
    _check_end(data, end)
    return values


def decode_stream(data: bytes) -> list[Any]:
    """Return the values of a stream message, in their order. Raises OpenWireError."""
    try:
        values, end = _read_stream(data)
    except (IndexError, struct.error):
        values, end = [], len(data) + 1
    _check_end(data, end)
    return values


def encode_map(values: Mapping[str, Any]) -> bytes:
    """Return the bytes of values by name. Raises OpenWireError for a value of no type above, or out of its range."""
    out: list[bytes] = []
    try:
        _write_map(values, out.append, 1)
    except (struct.error, OverflowError) as error:
        raise _not_fitting(error) from None
    return b"".join(out)


def encode_stream(values: Iterable[Any]) -> bytes:
    """Return the bytes of the values of a stream message, which holds no maps and lists. Raises OpenWireError."""
    out: list[bytes] = []
    try:
        for value in values:
            if isinstance(value, dict | list):
                raise OpenWireError(f"a stream message cannot hold a {type(value).__name__}")
            _write(value, out.append, 1)
    except (struct.error, OverflowError) as error:
        raise _not_fitting(error) from None
    return b"".join(out)


def _check_end(data: bytes, end: int) -> None:
    """Raise OpenWireError unless what was read is exactly all of the data."""
    if end > len(data):
        raise OpenWireError(f"values end too early: they are longer than their {len(data)} bytes")
    if end < len(data):
        raise OpenWireError(f"{len(data) - end} bytes follow the values")


def _not_fitting(error: Exception) -> OpenWireError:
    return OpenWireError(f"a value does not fit its type: {error}")


# -- decoding


def _read_map(data: bytes, pos: int, depth: int) -> tuple[dict[str, Any], int]:
    count = _count(data, pos, depth)
    pos += 4
    values = {}
    for _ in range(count):
        start = pos + 2
        pos = start + (data[pos] << 8 | data[pos + 1])
        raw = data[start:pos]
        name = raw.decode() if raw.isascii() else decode_text(raw)
        kind = data[pos]
        if kind == _STRING:  # most values are texts and numbers: not worth a call
            start = pos + 3
            pos = start + (data[pos + 1] << 8 | data[pos + 2])
            raw = data[start:pos]
            values[name] = raw.decode() if raw.isascii() else decode_text(raw)
        elif kind == _INT_TYPE:
            (values[name],) = _INT.unpack_from(data, pos + 1)
            pos += 5
        elif kind == _DOUBLE_TYPE:
            (values[name],) = _DOUBLE.unpack_from(data, pos + 1)
            pos += 9
        else:
            values[name], pos = _reader(kind)(data, pos + 1, depth)
    return values, pos


def _read_list(data: bytes, pos: int, depth: int) -> tuple[list[Any], int]:
    count = _count(data, pos, depth)
    pos += 4
    values = []
    for _ in range(count):
        value, pos = _reader(data[pos])(data, pos + 1, depth)
        values.append(value)
    return values, pos


def _read_stream(data: bytes) -> tuple[list[Any], int]:
    pos, values = 0, []
    while pos < len(data):
        if data[pos] in (_MAP, _LIST):
            raise OpenWireError("a stream message holds a map or list")
        value, pos = _reader(data[pos])(data, pos + 1, 1)
        values.append(value)
    return values, pos


def _count(data: bytes, pos: int, depth: int) -> int:
    """Return the number of values of a map or list: none also for one that is null, whose number is -1."""
    if depth > MAX_DEPTH:
        raise OpenWireError(f"maps and lists are nested more than {MAX_DEPTH} times")
    (count,) = _INT.unpack_from(data, pos)
    if count < -1:
        raise OpenWireError(f"a map or list has {count} values")
    return int(count)


def _reader(kind: int) -> Callable[[bytes, int, int], tuple[Any, int]]:
    if kind >= len(_READERS):
        raise OpenWireError(f"a value of type {kind} is not known")
    return _READERS[kind]


def _read_bytes(data: bytes, pos: int, _depth: int) -> tuple[bytes, int]:
    start = pos + 4
    end = start + _LENGTH.unpack_from(data, pos)[0]
    return data[start:end], end


def _read_text(data: bytes, pos: int, _depth: int) -> tuple[str, int]:
    start = pos + 2
    end = start + (data[pos] << 8 | data[pos + 1])
    return decode_text(data[start:end]), end


def _read_big_text(data: bytes, pos: int, _depth: int) -> tuple[str | None, int]:
    start = pos + 4
    (length,) = _INT.unpack_from(data, pos)
    if length < 0:
        return None, start
    return decode_text(data[start : start + length]), start + length


def _read_char(data: bytes, pos: int, _depth: int) -> tuple[Char, int]:
    (unit,) = _CHAR.unpack_from(data, pos)
    return Char("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)), pos + 2


def _fixed(layout: struct.Struct, make: type | None) -> Callable[[bytes, int, int], tuple[Any, int]]:
    unpack, size = layout.unpack_from, layout.size
    if make is None:
        return lambda data, pos, _depth: (unpack(data, pos)[0], pos + size)
    return lambda data, pos, _depth: (make(unpack(data, pos)[0]), pos + size)


#: By the number of the type.
_READERS: tuple[Callable[[bytes, int, int], tuple[Any, int]], ...] = (
    lambda _data, pos, _depth: (None, pos),
    lambda data, pos, _depth: (data[pos] != 0, pos + 1),
    _fixed(_BYTE, Byte),
    _read_char,
    _fixed(_SHORT, Short),
    _fixed(_INT, None),
    _fixed(_LONG, Long),
    _fixed(_DOUBLE, None),
    _fixed(_FLOAT, Float),
    _read_text,
    _read_bytes,
    lambda data, pos, depth: _read_map(data, pos, depth + 1),
    lambda data, pos, depth: _read_list(data, pos, depth + 1),
    _read_big_text,
)


# -- encoding


def _write(value: Any, out: Callable[[bytes], object], depth: int) -> None:
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise _not_encoded(value)
    writer(value, out, depth)


def _not_encoded(value: object) -> OpenWireError:
    return OpenWireError(f"a value of type {type(value).__name__} cannot be encoded")


def _write_map(values: Mapping[str, Any], out: Callable[[bytes], object], depth: int) -> None:
    _check_depth(depth)
    out(_INT.pack(len(values)))
    for name, value in values.items():
        out(_encode_name(name))
        kind = type(value)
        if kind is str and len(value) < _BIG_TEXT_UNITS and value.isascii() and "\0" not in value:  # as most are
            out(b"\x09%b%b" % (len(value).to_bytes(2), value.encode()))
        elif kind in _WRITERS:
            _WRITERS[kind](value, out, depth)
        else:
            raise _not_encoded(value)


@cached_if_short(CACHED_NAMES)
def _encode_name(name: str) -> bytes:
    return encode_short_text(name)


def _write_nested_map(values: Mapping[str, Any], out: Callable[[bytes], object], depth: int) -> None:
    out(b"\x0b")
    _write_map(values, out, depth + 1)


def _write_list(values: list[Any], out: Callable[[bytes], object], depth: int) -> None:
    _check_depth(depth + 1)
    out(b"\x0c" + _INT.pack(len(values)))
    for value in values:
        _write(value, out, depth + 1)


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise OpenWireError(f"maps and lists are nested more than {MAX_DEPTH} times")


def _write_text(value: str, out: Callable[[bytes], object], _depth: int) -> None:
    if utf16_length(value) < _BIG_TEXT_UNITS:
        out(b"\x09" + encode_short_text(value))
    else:
        raw = encode_text(value)
        out(b"\x0d" + _LENGTH.pack(len(raw)) + raw)


def _write_int(value: int, out: Callable[[bytes], object], _depth: int) -> None:
    out(b"\x05" + _INT.pack(value) if _MIN_INT <= value <= _MAX_INT else b"\x06" + _LONG.pack(value))


def _write_char(value: str, out: Callable[[bytes], object], _depth: int) -> None:
    if len(value) != 1:
        raise OpenWireError(f"{value[:40]!r} is not one character")
    out(b"\x03" + _CHAR.pack(ord(value)))


#: By the class of the value.
_WRITERS: dict[type, Callable[[Any, Callable[[bytes], object], int], object]] = {
    type(None): lambda _value, out, _depth: out(b"\x00"),
    bool: lambda value, out, _depth: out(b"\x01\x01" if value else b"\x01\x00"),
    Byte: lambda value, out, _depth: out(b"\x02" + _BYTE.pack(value)),
    Char: _write_char,
    Short: lambda value, out, _depth: out(b"\x04" + _SHORT.pack(value)),
    int: _write_int,
    Long: lambda value, out, _depth: out(b"\x06" + _LONG.pack(value)),
    float: lambda value, out, _depth: out(b"\x07" + _DOUBLE.pack(value)),
    Float: lambda value, out, _depth: out(b"\x08" + _FLOAT.pack(value)),
    str: _write_text,
    bytes: lambda value, out, _depth: out(b"\x0a" + _LENGTH.pack(len(value)) + value),
    dict: _write_nested_map,
    list: _write_list,
}
