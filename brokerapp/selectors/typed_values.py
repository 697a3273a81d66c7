"""Compares and computes values that have a Java type, as ActiveMQ does. Pure.

A value is a pair of its type and the value itself; no pair (None) is an unknown value. Numbers are compared with
numbers, text with text, truths with truths; values of other pairs of types are unlike each other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from brokerapp.model.jms.properties import FLOATING, PropertyType, property_text, property_value
from brokerapp.selectors.matching.functions import MAX_TEXT
from brokerapp.selectors.values import parse_boolean, parse_number

STRING: Final = None  #: the type of text
BOOLEAN, INT, LONG, DOUBLE = PropertyType.BOOLEAN, PropertyType.INT, PropertyType.LONG, PropertyType.DOUBLE

TypedValue = tuple[PropertyType | None, Any]

#: Types of numbers, each with its width: an operand is converted to the wider type of both.
WIDTHS = {PropertyType.BYTE: 0, PropertyType.SHORT: 1, INT: 2, LONG: 3, PropertyType.FLOAT: 4, DOUBLE: 5}
#: ActiveMQ converts the right operand of a comparison to no type that is wider than these.
_NEVER_WIDENED = frozenset({PropertyType.BYTE, PropertyType.SHORT})
#: Types whose values ActiveMQ can negate.
NEGATED = frozenset({INT, LONG, PropertyType.FLOAT, DOUBLE})
BITS = {INT: 32, LONG: 64}

_WHOLE_OPERATIONS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def typed_value(type: PropertyType | None, text: str) -> TypedValue | None:
    """Return the value of a property; text that is none of its type is text."""
    if type is STRING:
        return STRING, text
    value = property_value(type, text)
    if value is None:
        return None
    return (STRING if isinstance(value, str) and type is not PropertyType.CHAR else type), value


def literal_value(value: str | int | float | bool | None) -> TypedValue | None:
    """Return a constant with the type that it has in Java."""
    match value:
        case bool():
            return BOOLEAN, value
        case int() if -(2**63) <= value < 2**63:
            return (INT if -(2**31) <= value < 2**31 else LONG), value
        case int() | float():
            return DOUBLE, float(value)
    return None if value is None else (STRING, value)


def compare_values(
    holds: Callable[[Any, Any], bool], unlike: bool, left: TypedValue, right: TypedValue, convert: bool
) -> bool:
    """Return whether a relation holds between two values; `unlike` where they cannot be compared.

    `convert`: text that is compared with a number or a truth is read as one.
    """
    (first, a), (second, b) = left, right
    if first is not second:
        if convert and STRING in (first, second):
            a, b = (_read(a, second), b) if first is STRING else (a, _read(b, first))
            if a is None or b is None:
                return unlike
        elif first is STRING or second is STRING or not are_numbers(first, second):
            return unlike
        elif FLOATING & {first, second}:
            a, b = float(a), float(b)
    if a != a or b != b:  # NaN equals itself and is the greatest number, as Java has it
        a, b = a != a, b != b
    return holds(a, b)


def are_numbers(left: PropertyType, right: PropertyType) -> bool:
    """Return whether these types are of numbers that can be compared in this order."""
    if left not in WIDTHS or right not in WIDTHS:
        return False
    return right not in _NEVER_WIDENED or WIDTHS[left] < WIDTHS[right]


def _read(text: str, wanted: PropertyType | None) -> int | float | bool | None:
    """Return the number or truth that a text stands for."""
    if wanted is BOOLEAN:
        return parse_boolean(text)
    return parse_number(text) if wanted in WIDTHS else None


def compute(operation: str, left: TypedValue, right: TypedValue) -> TypedValue | None:
    """Return the result of an operation: whole numbers wrap around, what is divided or has a fraction is a double.

    Text plus anything is both one after the other. What cannot be computed is unknown.
    """
    (first, a), (second, b) = left, right
    if first is STRING:
        return _joined(a, value_text(right)) if operation == "+" else None
    if first not in WIDTHS or second not in WIDTHS:
        return None
    if operation not in _WHOLE_OPERATIONS or FLOATING & {first, second}:
        return DOUBLE, _DOUBLE_OPERATIONS[operation](float(a), float(b))
    type = LONG if LONG in (first, second) else INT
    return type, _wrapped(_WHOLE_OPERATIONS[operation](a, b), BITS[type])


def negate(value: TypedValue) -> TypedValue | None:
    """Return minus a number; ActiveMQ cannot negate bytes and shorts."""
    type, number = value
    if type not in NEGATED:
        return None
    return type, _wrapped(-number, BITS[type]) if type in BITS else -number


def value_text(value: TypedValue) -> str:
    """Return a value as Java writes it."""
    type, known = value
    return property_text(type, known) if type is not STRING else str(known)


def _joined(left: str, right: str) -> TypedValue | None:
    return (STRING, left + right) if len(left) + len(right) <= MAX_TEXT else None


def _wrapped(number: int, bits: int) -> int:
    """Return what remains of a number in so many bits, as Java has it."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def _divided(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a)


def _remainder(a: float, b: float) -> float:
    return math.fmod(a, b) if b and math.isfinite(a) else math.nan


_DOUBLE_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": _remainder,
}  # fmt: skip
