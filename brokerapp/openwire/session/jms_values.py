"""Translate typed properties between OpenWire's values and the header lines of stored messages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from brokerapp.engine.scheduling.delivery_schedule import JMS_TYPES
from brokerapp.errors import OpenWireError
from brokerapp.model.jms.form import JmsForm, type_word
from brokerapp.model.jms.properties import (
    CLASH_PREFIX,
    RESERVED_NAMES,
    WHOLE_NUMBERS,
    PropertyType,
    java_floating,
    property_header,
    property_text,
)
from brokerapp.model.message import escape
from brokerapp.openwire.commands import ConnectionId, LocalTransactionId, TransactionId, XATransactionId
from brokerapp.openwire.encoding.modified_utf8 import decode_text
from brokerapp.openwire.marshalled_values import CACHED_NAMES, Byte, Char, Float, Long, Short, decode_map, encode_map
from brokerapp.system.text_cache import MAX_CACHED_TEXT, cached_if_short

#: Class of a decoded value -> its type; those of strings are not named.
_TYPES: dict[type, PropertyType] = {
    bool: PropertyType.BOOLEAN,
    Byte: PropertyType.BYTE,
    Char: PropertyType.CHAR,
    Short: PropertyType.SHORT,
    int: PropertyType.INT,
    Long: PropertyType.LONG,
    Float: PropertyType.FLOAT,
    float: PropertyType.DOUBLE,
    bytes: PropertyType.BYTES,
    type(None): PropertyType.NULL,
    dict: PropertyType.OTHER,
    list: PropertyType.OTHER,
}
#: How the text of an XA transaction begins.
BRANCH_PREFIX = "XA:"
#: The name under which the bytes of a map or a list are a map of one value.
_ONLY = ""
#: Bytes of properties up to which they are few enough to be read at once, see plain_header_lines.
MAX_PLAIN_BYTES = 4096
_COUNT = Struct(">i").unpack_from
_STRING = 9  # the number of the type
#: Numbers, by the numbers of their types: their class, and how they are encoded.
_NUMBERS: dict[int, tuple[type, Struct]] = {5: (int, Struct(">i")), 6: (Long, Struct(">q")), 7: (float, Struct(">d"))}


class _PlainProperty(NamedTuple):
    """How a property of a name and type is read, and its line written."""

    begin: str  #: of the line
    word: str  #: for its type
    read: Callable[[bytes, int], tuple[Any, ...]] | None  #: None: it is a text
    size: int  #: bytes of the number
    text_of: Callable[[Any], str]


#: By the bytes of the name, behind their number, and of the type.
_plain_properties: dict[bytes, _PlainProperty] = {}


def header_lines(properties: Mapping[str, Any]) -> tuple[str, str]:
    """Return header lines for properties, escaped, and the words of the JMS form for those that are not strings."""
    lines, words = "", ""
    for name, value in properties.items():
        begin, word, text_of = _line_of(name, type(value))
        lines += f"{begin}{text_of(value)}\n"
        words += word
    return lines, words


def plain_header_lines(encoded: bytes) -> tuple[str, str] | None:
    """Return of encoded properties what `header_lines` returns of their values, in half the time.

    None where they are not only a few texts and numbers: one is of another type, comes twice or is not well-formed.
    Raises OpenWireError for a text that is none.
    """
    end, lines, words = len(encoded), "", ""
    if end > MAX_PLAIN_BYTES:
        return None
    try:
        (count,), pos, begun = _COUNT(encoded), 4, set()
        for _ in range(count):
            behind = pos + 3 + (encoded[pos] << 8 | encoded[pos + 1])
            key = encoded[pos:behind]
            known = _plain_properties.get(key) or _plain_property(key)
            if known is None:
                return None
            begin, word, read, size, text_of = known
            begun.add(begin)
            if read is None:
                start = behind + 2
                pos = start + (encoded[behind] << 8 | encoded[behind + 1])
                raw = encoded[start:pos]
                lines += f"{begin}{escape(raw.decode() if raw.isascii() else decode_text(raw))}\n"
            else:
                lines += f"{begin}{text_of(read(encoded, behind)[0])}\n"
                words += word
                pos = behind + size
    except (IndexError, StructError):
        return None
    return (lines, words) if pos == end and len(begun) == count else None


def _plain_property(key: bytes) -> _PlainProperty | None:
    """Return how the property with this key is read; None where it is not plain, or the key ends too early."""
    kind, name = key[-1], key[2:-1]
    if len(name) != int.from_bytes(key[:2]) or not name.isascii() or len(name) > MAX_CACHED_TEXT:
        return None
    if kind == _STRING:
        found = _PlainProperty(_line_of(name.decode(), str)[0], "", None, 0, escape)
    elif kind in _NUMBERS:
        cls, structure = _NUMBERS[kind]
        begin, word, text_of = _line_of(name.decode(), cls)
        found = _PlainProperty(begin, word, structure.unpack_from, structure.size, text_of)
    else:
        return None
    if len(_plain_properties) >= CACHED_NAMES:
        _plain_properties.clear()
    _plain_properties[key] = found
    return found


@cached_if_short(CACHED_NAMES)
def _line_of(name: str, cls: type) -> tuple[str, str, Callable[[Any], str]]:
    """Return how the line of a property begins, the word for its type, and what writes such values, escaped."""
    begin, kind = f"{escape(property_header(name))}:", _TYPES.get(cls)
    return (begin, "", escape) if kind is None else (begin, type_word(name, kind), _TEXTS[kind])


def properties_of(headers: Mapping[str, str], form: JmsForm) -> dict[str, Any]:
    """Return the typed properties among the headers of a message of a JMS client."""
    types = form.types
    found: dict[str, Any] = {}
    for header, text in headers.items():
        if header in RESERVED_NAMES:
            continue
        name = header[len(CLASH_PREFIX) :] if header.startswith(CLASH_PREFIX) else header
        kind = types.get(name)
        found[name] = text if kind is None else _typed(kind, text)
    return found


def stomp_properties_of(headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties among the headers of a message of a STOMP client: strings, but for what schedules it.

    ActiveMQ reads that as numbers.
    """
    found: dict[str, Any] = {name: text for name, text in headers.items() if name not in RESERVED_NAMES}
    for name in JMS_TYPES.keys() & found.keys():
        found[name] = _typed(JMS_TYPES[name], found[name])
    return found


def transaction_text(id: TransactionId) -> str:
    """Return what a message says of the transaction in which it was sent."""
    if isinstance(id, LocalTransactionId):
        return f"{id.connection_id}:{id.value}"
    branch = ((part or b"").hex() for part in (id.global_transaction_id, id.branch_qualifier))
    return f"{BRANCH_PREFIX}{id.format_id}:{':'.join(branch)}"


def transaction_of(text: str) -> TransactionId | None:
    """Return the transaction of which transaction_text says this; None for other text."""
    try:
        if text.startswith(BRANCH_PREFIX):
            format_id, name, branch = text.removeprefix(BRANCH_PREFIX).split(":")
            return XATransactionId(int(format_id), bytes.fromhex(name), bytes.fromhex(branch))
        connection, _, value = text.rpartition(":")
        return LocalTransactionId(int(value), ConnectionId(connection))
    except ValueError:
        return None


def _typed(kind: PropertyType, text: str) -> Any:
    try:
        return _VALUES[kind](text)
    except (ValueError, OverflowError, KeyError, OpenWireError):  # somebody changed it to what is none of that type
        return text


#: What writes values of a type as text, escaped.
_TEXTS: dict[PropertyType, Callable[[Any], str]] = {
    **{kind: partial(property_text, kind) for kind in PropertyType},
    **dict.fromkeys(WHOLE_NUMBERS, str),
    PropertyType.CHAR: escape,
    PropertyType.DOUBLE: java_floating,
    PropertyType.OTHER: lambda value: encode_map({_ONLY: value}).hex(),
}
_VALUES: dict[PropertyType, Callable[[str], Any]] = {
    PropertyType.BOOLEAN: lambda text: text == "true",
    PropertyType.BYTE: Byte,
    PropertyType.CHAR: Char,
    PropertyType.SHORT: Short,
    PropertyType.INT: int,
    PropertyType.LONG: Long,
    PropertyType.FLOAT: Float,
    PropertyType.DOUBLE: float,
    PropertyType.BYTES: bytes.fromhex,
    PropertyType.NULL: lambda _text: None,
    PropertyType.OTHER: lambda text: decode_map(bytes.fromhex(text))[_ONLY],
}
