"""Convert the values of map messages to and from the documents in which STOMP clients have them. Pure.

A document names a value by its type, as ActiveMQ's library does in JSON and XML: an entry is a name, which is a string,
and a value; see brokerapp/model/transformations.py.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from brokerapp.model.jms.transformations import MAPS, Document
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short

#: Class of a value -> the name of its element.
_NAMES: dict[type, str] = {
    str: "string", bool: "boolean", Byte: "byte", Char: "char", Short: "short", int: "int", Long: "long",
    Float: "float", float: "double", bytes: "byte-array", type(None): "null", dict: "map", list: "list",
}  # fmt: skip


_UNIT = struct.Struct("<H")


def _bytes_of(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


#: Name of an element -> what makes its value. Each raises ValueError.
_MADE: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "boolean": lambda value: value if isinstance(value, bool) else str(value).strip().lower() == "true",
    "byte": lambda value: Byte(int(value)),
    "short": lambda value: Short(int(value)),
    "int": int,
    "long": lambda value: Long(int(value)),
    "float": lambda value: Float(float(value)),
    "double": float,
    "char": lambda value: Char(str(value)[:1]),
    "null": lambda _value: None,
    "byte-array": _bytes_of,
    "list": lambda value: [_made(name, each) for name, each in _elements(value)],
    "map": lambda value: map_values(("map", value)),
}


def map_document(values: Mapping[str, Any]) -> Document:
    """Return the document that says the values of a map message."""
    return "map", _map_value(values)


def map_values(document: Document) -> dict[str, Any]:
    """Return the values that a document says. Raises ValueError where it is not a map, or holds what a map cannot."""
    name, value = document
    if name not in MAPS:
        raise ValueError(f"{name} is not a map")
    values = {}
    for key, entry in _elements(value):
        sides = list(_elements(entry))
        if key != "entry" or len(sides) != 2 or sides[0][0] != "string":
            raise ValueError("a map holds entries of a name and a value")
        values[str(sides[0][1])] = _made(*sides[1])
    return values


def _map_value(values: Mapping[str, Any]) -> Any:
    """Return the entries of a map in the order of Java's hash tables, in which ActiveMQ writes them."""
    entries = [_entry(name, values[name]) for name in sorted(values, key=partial(_bucket, _table_size(len(values))))]
    return {"entry": entries[0] if len(entries) == 1 else entries} if entries else ""


def _table_size(count: int) -> int:
    """Return the size of a Java HashMap that was made for so many values: a power of two, filled to three quarters."""
    size = 1 << max(0, count - 1).bit_length()
    return size if count <= size * 3 // 4 else size * 2


def _bucket(size: int, name: str) -> int:
    code = 0
    for (unit,) in _UNIT.iter_unpack(name.encode("utf-16-le", "surrogatepass")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code ^ code >> 16) & (size - 1)


def _entry(name: str, value: Any) -> dict[str, Any]:
    kind, said = _NAMES[type(value)], _said(value)
    return {"string": [name, said]} if kind == "string" else {"string": name, kind: said}


def _said(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return _map_value(value)
    if not isinstance(value, list):
        return value
    members: dict[str, Any] = {}
    for each in value:
        members.setdefault(_NAMES[type(each)], []).append(_said(each))
    return {name: said[0] if len(said) == 1 else said for name, said in members.items()} or ""


def _made(name: str, value: Any) -> Any:
    if name not in _MADE:
        raise ValueError(f"a map cannot hold {name}")
    try:
        return _MADE[name](value)
    except TypeError:
        raise ValueError(f"{str(value)[:40]!r} is not of the type {name}") from None


def _elements(value: Any) -> Iterator[Document]:
    """Yield the elements of a value by name; one that is repeated stands in a list."""
    members = value if isinstance(value, list) else [value]
    for member in members:
        if not isinstance(member, dict):
            if member not in ("", None):
                raise ValueError(f"{str(member)[:40]!r} holds no elements")
            continue
        for name, each in member.items():
            if not name.startswith("@"):
                yield from ((name, one) for one in each) if isinstance(each, list) else ((name, each),)
