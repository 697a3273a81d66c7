"""Compiles a tree for messages of JMS clients, whose properties have types, as ActiveMQ evaluates it.

Types are those of each message, so operands are pairs of a type and a value (`typed_values.py`). What has no value, and
what cannot be computed, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from brokerapp.model.jms.form import JMS_HEADER, JmsForm
from brokerapp.model.jms.properties import property_header
from brokerapp.selectors.conditions import RELATIONS, Headers, Predicate, any_of, compile_condition
from brokerapp.selectors.identifiers import JMS, STOMP, header_reader, identifier_for
from brokerapp.selectors.matching.functions import RegexPattern
from brokerapp.selectors.matching.like import like_pattern
from brokerapp.selectors.matching.xml_body import compile_xpath
from brokerapp.selectors.tree import Arithmetic, Call, Literal, Negative, PropertyRef, SelectorNode
from brokerapp.selectors.typed_values import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    TypedValue,
    compare_values,
    compute,
    literal_value,
    negate,
    typed_value,
    value_text,
)

Operand = Callable[[Headers], TypedValue | None]
T = TypeVar("T")

#: Identifiers whose value is an int; other whole numbers are longs.
INTS = frozenset({JMS["JMSPriority"], JMS["JMSXDeliveryCount"], JMS["JMSXGroupSeq"]})
#: Headers that are identifiers by their own names.
HEADERS = frozenset({"JMSXGroupID", "JMSXUserID"})


class JmsRules:
    """Text, numbers and truths are different things; `convert`: text compared with the others is read as one."""

    def __init__(self, convert: bool) -> None:
        self._convert = convert

    def compare(self, relation: str, left: SelectorNode, right: SelectorNode) -> Predicate:
        first, second = self.operand(left), self.operand(right)
        holds, unlike, convert = RELATIONS[relation], relation == "<>", self._convert

        def compare(headers: Headers) -> bool | None:
            a, b = first(headers), second(headers)
            return None if a is None or b is None else compare_values(holds, unlike, a, b, convert)

        return compare

    def like(self, value: SelectorNode, pattern: str, escape: str | None) -> Predicate:
        fits = like_pattern(pattern, escape).fullmatch
        return _of_text(self.operand(value), lambda text: fits(text) is not None, otherwise=False)

    def is_in(self, value: SelectorNode, choices: tuple[str, ...]) -> Predicate:
        return _of_text(self.operand(value), frozenset(choices).__contains__, otherwise=None)

    def is_unknown(self, operand: SelectorNode) -> Predicate:
        value = self.operand(operand)
        return lambda headers: value(headers) is None

    def call(self, call: Call) -> Predicate:
        match call:
            case Call("REGEX", (Literal(str(pattern)), value)):
                found, text = RegexPattern(pattern).is_in, self._text(value)
                return lambda headers: None if (known := text(headers)) is None else found(known)
            case Call("INLIST", (Call("MAKELIST", members), value)):
                return any_of([self.compare("=", value, each) for each in members])
            case Call("INLIST", (Call("SPLIT", (text, Literal(str(pattern)))), value)):
                return self._in_parts(text, RegexPattern(pattern), value)
            case Call("XPATH", (Literal(str(expression)),)):
                return compile_xpath(expression)
        return lambda headers: False  # XQUERY is never true, as in ActiveMQ

    def truth(self, node: SelectorNode) -> Predicate:
        """Compile a literal or property as a condition: only what is the truth itself is TRUE."""
        operand = self.operand(node)

        def truth(headers: Headers) -> bool | None:
            value = operand(headers)
            return None if value is None else value[0] is BOOLEAN and value[1]

        return truth

    def operand(self, node: SelectorNode) -> Operand:
        """Compile an operand to a function of a message's headers."""
        match node:
            case Literal(value):
                constant = literal_value(value)
                return lambda headers: constant
            case PropertyRef(name):
                return typed_reader(name)
            case Arithmetic(operation, left, right):
                return self._computed(operation, left, right)
            case Negative(operand):
                number = self.operand(operand)
                return lambda headers: None if (known := number(headers)) is None else negate(known)
            case Call("REPLACE", (text, Literal(str(pattern)), Literal(str(replacement)))):
                replaced = _of_text(self.operand(text), RegexPattern(pattern, replacement).replaced, otherwise=None)
                return lambda headers: None if (known := replaced(headers)) is None else (STRING, known)
        condition = compile_condition(node, self)
        return lambda headers: None if (known := condition(headers)) is None else (BOOLEAN, known)

    def _computed(self, operation: str, left: SelectorNode, right: SelectorNode) -> Operand:
        first, second = self.operand(left), self.operand(right)

        def computed(headers: Headers) -> TypedValue | None:
            a, b = first(headers), second(headers)
            return None if a is None or b is None else compute(operation, a, b)

        return computed

    def _text(self, node: SelectorNode) -> Callable[[Headers], str | None]:
        operand = self.operand(node)
        return lambda headers: None if (known := operand(headers)) is None else value_text(known)

    def _in_parts(self, text: SelectorNode, pattern: RegexPattern, value: SelectorNode) -> Predicate:
        none: list[str] = []
        parts, operand = _of_text(self.operand(text), pattern.parts, otherwise=none), self.operand(value)

        def in_parts(headers: Headers) -> bool | None:
            known, wanted = parts(headers), operand(headers)
            return None if known is None or wanted is None else wanted[0] is STRING and wanted[1] in known

        return in_parts


_STRICT, _CONVERTING = JmsRules(convert=False), JmsRules(convert=True)


def compile_typed_predicate(node: SelectorNode, convert: bool) -> Predicate:
    """Compile a condition to a function of the headers of a message that came from a JMS client."""
    return compile_condition(node, _CONVERTING if convert else _STRICT)


def typed_reader(name: str) -> Operand:
    """Return a function from the headers of a JMS message to the value of `name`, None when unknown.

    A property comes before what STOMP calls by its name; JMS identifiers are no names of properties.
    """
    if name in JMS:
        return _identifier_reader(name)
    line = property_header(name)
    identifier = _identifier_reader(name) if name in STOMP or name in HEADERS else None

    def read_property(headers: Headers) -> TypedValue | None:
        text = headers.get(line)
        if text is None:
            return identifier(headers) if identifier is not None else None
        return typed_value(JmsForm.parse(headers[JMS_HEADER]).types.get(name), text)

    return read_property


def _identifier_reader(name: str) -> Operand:
    read, number = header_reader(name), INT if identifier_for(name) in INTS else LONG

    def read_identifier(headers: Headers) -> TypedValue | None:
        match read(headers):
            case None:
                return None
            case bool(truth):
                return BOOLEAN, truth
            case str(text):
                return STRING, text
            case value:
                return number, value

    return read_identifier


def _of_text(operand: Operand, known: Callable[[str], T | None], otherwise: T | None) -> Callable[[Headers], T | None]:
    """Compile what is known of an operand that is text, and is `otherwise` of any other value."""

    def of_text(headers: Headers) -> T | None:
        value = operand(headers)
        if value is None:
            return None
        return known(value[1]) if value[0] is STRING else otherwise

    return of_text
