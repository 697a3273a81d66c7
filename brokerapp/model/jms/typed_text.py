"""Name the types of JMS values, and read values of them that somebody wrote as text. Pure."""

from __future__ import annotations

import math
import re

from brokerapp.errors import RequestRefused
from brokerapp.model.jms.properties import (
    FLOATING,
    WHOLE_NUMBERS,
    PropertyType,
    PropertyValue,
    property_text,
    property_value,
)

#: The type of what has no other.
STRING = "string"
#: Type -> its name, as Java writes it.
TYPE_NAMES: dict[PropertyType, str] = {
    PropertyType.BOOLEAN: "boolean", PropertyType.BYTE: "byte", PropertyType.CHAR: "char", PropertyType.SHORT: "short",
    PropertyType.INT: "int", PropertyType.LONG: "long", PropertyType.FLOAT: "float", PropertyType.DOUBLE: "double",
    PropertyType.BYTES: "byte[]", PropertyType.NULL: "null", PropertyType.OTHER: "object",
}  # fmt: skip
#: Types of properties that JMS clients can set.
PROPERTY_TYPE_NAMES = (STRING, "boolean", "byte", "short", "int", "long", "float", "double")
#: Types of the entries of a map message, nested maps and lists left out.
ENTRY_TYPE_NAMES = (*PROPERTY_TYPE_NAMES, "char", "byte[]", "null")
#: All types.
ALL_TYPE_NAMES = (STRING, *TYPE_NAMES.values())

_TYPES = {name: type for type, name in TYPE_NAMES.items()}
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_FLOATING = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_BITS = {PropertyType.BYTE: 8, PropertyType.SHORT: 16, PropertyType.INT: 32, PropertyType.LONG: 64}
#: The greatest UTF-16 unit, which is all that a char holds.
_MAX_CHAR = "\uffff"
#: Characters of a text that an error repeats.
_MAX_SHOWN = 40


def type_named(name: str, allowed: tuple[str, ...] = PROPERTY_TYPE_NAMES) -> PropertyType | None:
    """Return the type of a name; None for string. Raises RequestRefused for a name that is not allowed."""
    if name not in allowed:
        raise RequestRefused(f"{name[:_MAX_SHOWN]!r} is not a type: use {', '.join(allowed)}")
    return _TYPES.get(name)


def parse_typed(what: str, type: PropertyType | None, text: str) -> PropertyValue:
    """Return the value of the type that a text stands for. Raises RequestRefused; `what` names the text."""
    if type is None:
        return text
    value = _parse(type, text)
    if isinstance(value, _Refused):
        shown = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
        name = TYPE_NAMES[type]
        raise RequestRefused(f"{what}: {shown!r} is not {'an' if name[0] in 'io' else 'a'} {name}: use {_rule(type)}")
    return value


def is_typed(type: PropertyType, text: str) -> bool:
    """Return whether a text stands for a value of the type."""
    return not isinstance(_parse(type, text), _Refused)


def normal_text(what: str, type: PropertyType | None, text: str) -> str:
    """Return the text of the value as Java writes it. Raises RequestRefused as parse_typed does."""
    return property_text(type, parse_typed(what, type, text))


class _Refused:
    """What a text stands for that is no value of a type."""


_REFUSED = _Refused()


def _parse(type: PropertyType, text: str) -> PropertyValue | _Refused:
    if type in WHOLE_NUMBERS:
        half = 2 ** (_BITS[type] - 1)
        return int(text) if _WHOLE.fullmatch(text) and -half <= int(text) < half else _REFUSED
    if type in FLOATING:
        if text in _SPECIAL:
            return property_value(type, text)
        value = property_value(type, text) if _FLOATING.fullmatch(text) else _REFUSED
        return value if isinstance(value, float) and math.isfinite(value) else _REFUSED
    if type is PropertyType.BOOLEAN:
        return text == "true" if text in ("true", "false") else _REFUSED
    if type is PropertyType.CHAR:
        return text if len(text) == 1 and text <= _MAX_CHAR else _REFUSED
    if type is PropertyType.NULL:
        return None if text in ("", "null") else _REFUSED
    try:
        return bytes.fromhex(text)
    except ValueError:
        return _REFUSED


def _rule(type: PropertyType) -> str:
    """Return what a text must be to stand for a value of a type."""
    if type in WHOLE_NUMBERS:
        half = 2 ** (_BITS[type] - 1)
        return f"a whole number from {-half:,} to {half - 1:,}"
    if type in FLOATING:
        return f"a number in the range of a {TYPE_NAMES[type]}, such as 2.5 or 1e-3; NaN, Infinity or -Infinity"
    return _RULES[type]


_RULES = {
    PropertyType.BOOLEAN: "true or false",
    PropertyType.CHAR: "exactly one character",
    PropertyType.NULL: "no value",
    PropertyType.BYTES: "hexadecimal digits, such as 00 ff",
    PropertyType.OTHER: "hexadecimal digits",
}
