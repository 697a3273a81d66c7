"""Write the typed properties of JMS messages as header lines of stored messages, and read them back. Pure."""

from __future__ import annotations

import math
import struct
from enum import StrEnum

#: What stands before the name of a property that STOMP would take for something else.
CLASH_PREFIX = "sluice-property."
#: Header lines that are not properties of a JMS message, or that say something else than a property of that name.
RESERVED_NAMES = frozenset(
    {
        "message-id",
        "expires",
        "priority",
        "timestamp",
        "persistent",
        "content-length",
        "correlation-id",
        "reply-to",
        "type",
        "destination",
        "subscription",
        "ack",
        "redelivered",
        "receipt",
        "transaction",
        "original-destination",
        "JMSXUserID",
        "JMSXGroupID",
        "JMSXGroupSeq",
        "JMSXDeliveryCount",
        "JMSXGroupFirstForConsumer",
        "sluice-jms",
        "sluice-jms-transaction",
        "sluice-path",
        "sluice-held",
        "sluice-wrote",
    }
)


class PropertyType(StrEnum):
    """Java type of a property that is not a String, by the letter that stands for it."""

    BOOLEAN = "z"
    BYTE = "b"
    CHAR = "c"
    SHORT = "h"
    INT = "i"
    LONG = "l"
    FLOAT = "f"
    DOUBLE = "d"
    BYTES = "y"  #: hexadecimal digits
    NULL = "n"
    OTHER = "o"  #: a map or a list, in the hexadecimal digits of what OpenWire marshals


#: Types whose values are whole numbers.
WHOLE_NUMBERS = frozenset({PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG})
FLOATING = frozenset({PropertyType.FLOAT, PropertyType.DOUBLE})

_SINGLE = struct.Struct(">f")

PropertyValue = str | int | float | bool | bytes | None


def property_header(name: str) -> str:
    """Return the name of the header line that holds a property."""
    return CLASH_PREFIX + name if name in RESERVED_NAMES or name.startswith(CLASH_PREFIX) else name


def property_name(header: str) -> str | None:
    """Return the property that a header line holds; None: it holds none."""
    if header.startswith(CLASH_PREFIX):
        return header[len(CLASH_PREFIX) :]
    return None if header in RESERVED_NAMES else header


def property_text(type: PropertyType | None, value: PropertyValue) -> str:
    """Return a value as Java writes it as text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_floating(value, single=type is PropertyType.FLOAT)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def property_value(type: PropertyType | None, text: str) -> PropertyValue:
    """Return the value that a text stands for; the text itself where it is none of that type."""
    try:
        if type in WHOLE_NUMBERS:
            return int(text)
        if type in FLOATING:
            number = _JAVA_SPECIAL[text] if text in _JAVA_SPECIAL else float(text)
            return to_single(number) if type is PropertyType.FLOAT else number
        if type is PropertyType.BOOLEAN:
            return text == "true"
        if type in (PropertyType.BYTES, PropertyType.OTHER):
            return bytes.fromhex(text)
    except ValueError:
        return text
    return None if type is PropertyType.NULL else text


def to_single(value: float) -> float:
    """Return the float of 32 bits that is nearest."""
    try:
        single: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single


_JAVA_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
#: Between these a number is written without an exponent in Java.
_LEAST_PLAIN, _LEAST_EXPONENT = 1e-3, 1e7


def java_floating(value: float, *, single: bool = False) -> str:
    """Return a number as Double.toString or Float.toString write it."""
    if _LEAST_PLAIN <= abs(value) < _LEAST_EXPONENT and not single:  # as Python does
        return repr(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    digits = _shortest_single(value) if single else repr(value)
    sign = "-" if digits.startswith("-") else ""
    mantissa, _, exponent = digits.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0") if fraction.strip("0") else ""
    figures = (whole + fraction).lstrip("0")
    if not figures:
        return f"{sign}0.0"
    point = len(whole) + int(exponent or 0)  # where the point stands in whole + fraction
    point -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0") or "0"
    if _LEAST_PLAIN <= abs(value) < _LEAST_EXPONENT:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{figures}"
        padded = figures.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{point - 1}"


def _shortest_single(value: float) -> str:
    """Return the fewest digits that give this float of 32 bits."""
    wanted = to_single(value)
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        if to_single(float(text)) == wanted:
            return text
    return repr(value)
