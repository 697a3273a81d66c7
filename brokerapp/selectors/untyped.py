"""Compiles a tree for messages whose headers are text: what they are compared with decides how they are read.

The tree is compiled to closures once, types being known then, so that a message costs about one call a node. No closure
raises: what cannot be computed is unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from brokerapp.selectors.conditions import RELATIONS, Headers, Predicate, any_of, compile_condition
from brokerapp.selectors.identifiers import header_reader, plain_header
from brokerapp.selectors.matching.functions import RegexPattern
from brokerapp.selectors.matching.like import like_pattern
from brokerapp.selectors.matching.xml_body import compile_xpath
from brokerapp.selectors.tree import Arithmetic, Call, Literal, Negative, PropertyRef, SelectorNode, type_of
from brokerapp.selectors.values import Value, ValueType, parse_boolean, parse_number

#: A value of the type that `type_of` tells of its node, which no type checker can follow; None: unknown.
Scalar = Callable[[Headers], Any]

TEXT, NUMBER, BOOLEAN = ValueType.TEXT, ValueType.NUMBER, ValueType.BOOLEAN

#: The relation that holds between b and a when this one holds between a and b.
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "%": math.fmod,
}  # fmt: skip


class TextRules:
    """Text that is compared with a number or a truth is read as one."""

    def compare(self, relation: str, left: SelectorNode, right: SelectorNode) -> Predicate:
        return _compare(relation, left, right)

    def like(self, value: SelectorNode, pattern: str, escape: str | None) -> Predicate:
        if type_of(value) is not TEXT:
            return _converted(compile_scalar(value), lambda known: False)
        fits = like_pattern(pattern, escape).fullmatch
        return _converted(compile_scalar(value), lambda known: fits(known) is not None)

    def is_in(self, value: SelectorNode, choices: tuple[str, ...]) -> Predicate:
        if type_of(value) is not TEXT:
            return lambda headers: None
        return _converted(compile_scalar(value), frozenset(choices).__contains__)

    def is_unknown(self, operand: SelectorNode) -> Predicate:
        known = compile_scalar(operand)
        return lambda headers: known(headers) is None

    def call(self, call: Call) -> Predicate:
        return _call(call)

    def truth(self, node: SelectorNode) -> Predicate:
        """Compile a literal or property as a condition: text is TRUE if it is `true`, a number is not."""
        value, type = compile_scalar(node), type_of(node)
        if type is TEXT:
            return _converted(value, parse_boolean)
        return _converted(value, lambda known: False) if type is NUMBER else value


_RULES = TextRules()


def compile_predicate(node: SelectorNode) -> Predicate:
    """Compile a condition to a function of a message's headers."""
    return compile_condition(node, _RULES)


def compile_scalar(node: SelectorNode) -> Scalar:
    """Compile an operand to a function of a message's headers."""
    match node:
        case Literal(value):
            return lambda headers: value
        case PropertyRef(name):
            return header_reader(name)
        case Arithmetic(operation, left, right):
            return _compute(OPERATIONS[operation], _double(left), _double(right))
        case Negative(operand):
            return _compute(operator.mul, _double(operand), lambda headers: -1.0)
        case Call("REPLACE", (text, Literal(str(pattern)), Literal(str(replacement)))):
            return _converted(compile_scalar(text), RegexPattern(pattern, replacement).replaced)
    return compile_predicate(node)


# -- comparisons


def _compare(relation: str, left: SelectorNode, right: SelectorNode) -> Predicate:
    types = {type_of(left), type_of(right)}
    if isinstance(left, Literal):
        relation, left, right = MIRRORED[relation], right, left
    holds, unlike = RELATIONS[relation], relation == "<>"
    if BOOLEAN in types and (NUMBER in types or relation not in ("=", "<>")):
        return _related(lambda a, b: unlike, compile_scalar(left), compile_scalar(right))
    if BOOLEAN in types:
        return _related(holds, _read(left, parse_boolean), _read(right, parse_boolean))
    if types != {TEXT, NUMBER}:
        return _related(holds, compile_scalar(left), compile_scalar(right))
    match right:
        case Literal(int() | float() as constant):
            return _compare_with_number(holds, unlike, left, constant)
    return _compare_as_numbers(holds, unlike, left, right)


def _related(holds: Callable[[Any, Any], bool], left: Scalar, right: Scalar) -> Predicate:
    def compare(headers: Headers) -> bool | None:
        a, b = left(headers), right(headers)
        return None if a is None or b is None else holds(a, b)

    return compare


def _compare_with_number(
    holds: Callable[[Value, Value], bool], unlike: bool, text: SelectorNode, constant: int | float
) -> Predicate:
    """Compare text with a constant number: the most frequent comparison."""
    value = compile_scalar(text)
    if isinstance(text, PropertyRef) and (name := plain_header(text.name)):

        def compare_property(headers: Headers) -> bool | None:
            known = headers.get(name)
            if known is None:
                return None
            read = parse_number(known)
            return unlike if read is None else holds(read, constant)

        return compare_property

    def compare(headers: Headers) -> bool | None:
        known = value(headers)
        if known is None:
            return None
        read = parse_number(known)
        return unlike if read is None else holds(read, constant)

    return compare


def _compare_as_numbers(
    holds: Callable[[Value, Value], bool], unlike: bool, left: SelectorNode, right: SelectorNode
) -> Predicate:
    """Compare text with a number; text that is not a number is unlike it."""
    read_left: Callable[[Any], Any] = parse_number if type_of(left) is TEXT else _same
    read_right: Callable[[Any], Any] = parse_number if type_of(right) is TEXT else _same

    def compare(a: Value, b: Value) -> bool:
        x, y = read_left(a), read_right(b)
        return unlike if x is None or y is None else holds(x, y)

    return _related(compare, compile_scalar(left), compile_scalar(right))


def _read(node: SelectorNode, reading: Callable[[str], Value | None]) -> Scalar:
    """Compile an operand; text is converted by `reading`."""
    return _converted(compile_scalar(node), reading) if type_of(node) is TEXT else compile_scalar(node)


def _converted(value: Scalar, reading: Callable[[Any], Any]) -> Scalar:
    def convert(headers: Headers) -> Any:  # as `reading`
        known = value(headers)
        return None if known is None else reading(known)

    return convert


def _same(value: Any) -> Any:  # as it is
    return value


# -- arithmetic


def _double(node: SelectorNode) -> Scalar:
    """Compile an operand to a finite double: text is read as a number; truth and NULL are unknown."""
    match type_of(node):
        case ValueType.TEXT:
            return _converted(_converted(compile_scalar(node), parse_number), _finite)
        case ValueType.NUMBER:
            return _converted(compile_scalar(node), _finite)
    return lambda headers: None


def _finite(value: float) -> float | None:
    result = float(value)
    return result if math.isfinite(result) else None


def _compute(operation: Callable[[float, float], float], left: Scalar, right: Scalar) -> Scalar:
    def compute(headers: Headers) -> float | None:
        a, b = left(headers), right(headers)
        if a is None or b is None:
            return None
        try:
            return _finite(operation(a, b))
        except (ZeroDivisionError, ValueError):
            return None

    return compute


# -- functions


def _call(node: Call) -> Predicate:
    """Compile a function that is a condition. XQUERY is never true, as in ActiveMQ."""
    match node:
        case Call("REGEX", (Literal(str(pattern)), value)):
            return _converted(compile_scalar(value), RegexPattern(pattern).is_in)
        case Call("INLIST", (Call("MAKELIST", members), value)):
            return any_of([_compare("=", value, each) for each in members])
        case Call("INLIST", (Call("SPLIT", (text, Literal(str(pattern)))), value)):
            parts = _converted(compile_scalar(text), RegexPattern(pattern).parts)
            read = _READINGS.get(type_of(value), _same)
            return _related(lambda known, wanted: wanted in map(read, known), parts, compile_scalar(value))
        case Call("XPATH", (Literal(str(expression)),)):
            return compile_xpath(expression)
    return lambda headers: False


#: How text is read that is compared with a value of this type.
_READINGS: dict[ValueType, Callable[[str], Value | None]] = {NUMBER: parse_number, BOOLEAN: parse_boolean}
