"""Parses the text of a selector to a tree, by operator precedence.

What cannot be meant is refused here, with its position: orderings of text, truth or NULL literals, `= NULL`, IN with
anything but text literals after a property, LIKE without a literal pattern, a value as a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from brokerapp.errors import SelectorSyntaxError
from brokerapp.selectors.matching.functions import RegexPattern
from brokerapp.selectors.matching.xml_body import compile_xpath
from brokerapp.selectors.precedence import LEVELS, Level
from brokerapp.selectors.tokens import SelectorToken, tokens
from brokerapp.selectors.tree import (
    FUNCTIONS,
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    PropertyRef,
    SelectorNode,
    type_of,
)
from brokerapp.selectors.values import ValueType

#: Levels of nesting a selector may have; chains of AND and OR count as one.
MAX_DEPTH = 64

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}

#: What each function takes: a pattern and a replacement are text literals; a last `...` repeats what is before it.
_PATTERN, _REPLACEMENT = _LITERALS = "a pattern as text literal", "a replacement as text literal"
_SCALAR, _REPEATED = "a value", "..."
_SIGNATURES: dict[str, tuple[str, ...]] = {
    "REGEX": (_PATTERN, ValueType.TEXT),
    "INLIST": (ValueType.LIST, _SCALAR),
    "MAKELIST": (_SCALAR, _REPEATED),
    "SPLIT": (ValueType.TEXT, _PATTERN),
    "REPLACE": (ValueType.TEXT, _PATTERN, _REPLACEMENT),
}


def parse(text: str) -> SelectorNode:
    """Parse a selector to a tree. Raises SelectorSyntaxError, and nothing else."""
    return _Parser(text).selector()


def _outside(value: SelectorNode, low: SelectorNode, high: SelectorNode) -> SelectorNode:
    """Build `value NOT BETWEEN low AND high`: as in JMS, text that is not a number is neither inside nor outside."""
    return Or((Compare("<", value, low), Compare(">", value, high)))


class _Part(NamedTuple):
    """A node, where its text starts, and how many levels it has."""

    node: SelectorNode
    start: int
    depth: int = 1


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = iter(tokens(text))
        self.next: SelectorToken = next(self.tokens)
        self.nesting = 0

    def selector(self) -> SelectorNode:
        if self.next.kind == "end":
            raise self.error(self.next.position, "the selector is empty")
        whole = self.condition(self.expression(Level.WHOLE))
        self.take("end", "an operator or the end")
        return whole.node

    # -- tokens

    def take(self, kind: str | None = None, wanted: str = "") -> SelectorToken:
        """Take the next token, which must be of `kind` if one is given."""
        token = self.next
        if kind is not None and token.kind != kind:
            raise self.unexpected(token, wanted or kind)
        if token.kind != "end":
            self.next = next(self.tokens)
        return token

    def took(self, kind: str) -> bool:
        """Take the next token if it is of this kind; return whether it was."""
        return self.next.kind == kind and bool(self.take())

    def unexpected(self, token: SelectorToken, wanted: str = "a condition or value") -> SelectorSyntaxError:
        if token.kind == "end":
            return self.error(token.position, f"the selector ends too early, {wanted} is missing")
        return self.error(token.position, f"unexpected {token.source!r}, expected {wanted}")

    def error(self, position: int, reason: str) -> SelectorSyntaxError:
        return SelectorSyntaxError(self.text, position, reason)

    # -- expressions

    def expression(self, level: Level) -> _Part:
        """Parse an expression of operators that bind tighter than `level`."""
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.too_deep(self.next.position)
        left = self.prefix()
        while LEVELS.get(self.next.kind, Level.WHOLE) > level:
            left = self.infix(left, self.take())
        self.nesting -= 1
        return left

    def prefix(self) -> _Part:
        token = self.take()
        match token.kind:
            case "text" | "number":
                return _Part(Literal(token.value), token.position)
            case "TRUE" | "FALSE" | "NULL":
                return _Part(Literal(_CONSTANTS[token.kind]), token.position)
            case "name" if self.next.kind == "(":
                return self.call(token)
            case "name":
                return _Part(PropertyRef(token.text), token.position)
            case "(":
                inner = self.expression(Level.WHOLE)
                self.take(")")
                return inner._replace(start=token.position)
            case "NOT":
                return self.made(Not, self.condition(self.expression(Level.NOT)), start=token.position)
            case "-":
                return self.negative(self.expression(Level.SIGN), token.position)
            case "+":
                return self.expression(Level.SIGN)
            case "XPATH" | "XQUERY":
                return self.body_test(token)
        raise self.unexpected(token)

    def body_test(self, language: SelectorToken) -> _Part:
        expression = self.take("text", "an expression as text literal")
        if language.kind == "XPATH":
            try:
                compile_xpath(expression.text)
            except ValueError as wrong:
                raise self.error(expression.position, f"XPATH cannot use its expression: {wrong}") from wrong
        return _Part(Call(language.kind, (Literal(expression.value),)), language.position)

    def infix(self, left: _Part, operator: SelectorToken) -> _Part:
        match operator.kind:
            case "OR" | "AND":
                return self.joined(left, operator.kind)
            case "=" | "<>":
                right = self.expression(Level.EQUALITY)
                self.check_equality(left, right)
                return self.made(lambda a, b: Compare(operator.kind, a, b), left, right)
            case "<" | "<=" | ">" | ">=":
                left, right = self.orderable(left), self.orderable(self.expression(Level.RELATION))
                return self.made(lambda a, b: Compare(operator.kind, a, b), left, right)
            case "+" | "-" | "*" | "/" | "%":
                left, right = self.scalar(left), self.scalar(self.expression(LEVELS[operator.kind]))
                return self.made(lambda a, b: Arithmetic(operator.kind, a, b), left, right)
            case "IS":
                negated = self.took("NOT")
                self.take("NULL")
                test = self.made(IsNull, self.scalar(left))
                return self.made(Not, test) if negated else test
            case "NOT" if self.took("BETWEEN"):
                return self.between(left, _outside)
            case "NOT":
                return self.made(Not, self.test(left, self.take()))
        return self.test(left, operator)

    def test(self, left: _Part, operator: SelectorToken) -> _Part:
        """Parse the rest of LIKE, BETWEEN or IN after the operator."""
        match operator.kind:
            case "LIKE":
                return self.like(left)
            case "BETWEEN":
                return self.between(left, Between)
            case "IN":
                return self.in_list(left)
        raise self.unexpected(operator, "LIKE, BETWEEN or IN")

    def between(self, left: _Part, make: Callable[[SelectorNode, SelectorNode, SelectorNode], SelectorNode]) -> _Part:
        low = self.expression(Level.RELATION)
        self.take("AND")
        bounds = low, self.expression(Level.RELATION)
        return self.made(make, *(self.orderable(each) for each in (left, *bounds)))

    def like(self, left: _Part) -> _Part:
        pattern, escape = self.take("text", "a pattern as text literal").text, None
        if self.took("ESCAPE"):
            token = self.take("text", "one character as text literal")
            escape = token.text
            if len(escape) != 1:
                raise self.error(token.position, "ESCAPE takes one character")
        return self.made(lambda value: Like(value, pattern, escape), self.scalar(left))

    def in_list(self, left: _Part) -> _Part:
        if not isinstance(left.node, PropertyRef):
            raise self.error(left.start, "only a property can stand before IN")
        self.take("(")
        choices = [self.take("text", "a text literal").text]
        while self.took(","):
            choices.append(self.take("text", "a text literal").text)
        self.take(")")
        return self.made(lambda value: In(value, tuple(choices)), left)

    def negative(self, operand: _Part, start: int) -> _Part:
        match operand.node:
            case Literal(int() | float() as number) if not isinstance(number, bool):
                return _Part(Literal(-number), start)
        return self.made(Negative, self.scalar(operand), start=start)

    def joined(self, left: _Part, operator: str) -> _Part:
        """Parse `left AND right AND ..` to one node for the whole chain."""
        cls, level = (And, Level.AND) if operator == "AND" else (Or, Level.OR)
        parts = [self.condition(left), self.condition(self.expression(level))]
        while self.took(operator):
            parts.append(self.condition(self.expression(level)))
        return self.made(lambda *nodes: cls(nodes), *parts)

    def call(self, name: SelectorToken) -> _Part:
        function = name.text
        if function not in FUNCTIONS:
            raise self.error(name.position, f"unknown function {function!r}; supported are {', '.join(FUNCTIONS)}")
        self.take("(")
        arguments = [self.expression(Level.WHOLE)]
        while self.took(","):
            arguments.append(self.expression(Level.WHOLE))
        self.take(")")
        self.check_arguments(name, arguments)
        return self.made(lambda *nodes: Call(function, nodes), *arguments, start=name.position)

    # -- what is made, and what is refused

    def made(self, make: Callable[..., SelectorNode], *parts: _Part, start: int | None = None) -> _Part:
        """Build a node from the parts' nodes."""
        return self.bounded(
            _Part(
                make(*(each.node for each in parts)),
                parts[0].start if start is None else start,
                1 + max(each.depth for each in parts),
            )
        )

    def bounded(self, part: _Part) -> _Part:
        if part.depth > MAX_DEPTH:
            raise self.too_deep(part.start)
        return part

    def too_deep(self, position: int) -> SelectorSyntaxError:
        return self.error(position, f"nested more than {MAX_DEPTH} levels deep")

    def condition(self, part: _Part) -> _Part:
        """Return the part if it can be TRUE or FALSE."""
        types = ValueType.BOOLEAN, ValueType.NOTHING
        if not isinstance(part.node, PropertyRef) and type_of(part.node) not in types:
            raise self.error(part.start, "this is a value, not a condition")
        return part

    def scalar(self, part: _Part) -> _Part:
        """Return the part if it is not a list."""
        if type_of(part.node) is ValueType.LIST:
            raise self.error(part.start, "a list can only stand in INLIST")
        return part

    def orderable(self, part: _Part) -> _Part:
        """Return the part if it can be smaller or larger than another."""
        node, type = self.scalar(part).node, type_of(part.node)
        constant_text = isinstance(node, Literal) and type is ValueType.TEXT
        truth = type is ValueType.BOOLEAN and not isinstance(node, PropertyRef)
        if constant_text or truth or type is ValueType.NOTHING:
            raise self.error(part.start, "only numbers and properties can be ordered")
        return part

    def check_equality(self, left: _Part, right: _Part) -> None:
        for each in (self.scalar(left), self.scalar(right)):
            if type_of(each.node) is ValueType.NOTHING:
                raise self.error(each.start, "nothing equals NULL: write IS NULL or IS NOT NULL")
        both_constant = isinstance(left.node, Literal) and isinstance(right.node, Literal)
        if both_constant and type_of(left.node) is ValueType.BOOLEAN and type_of(right.node) is not ValueType.BOOLEAN:
            raise self.error(left.start, "TRUE and FALSE can only be compared with a condition or a property")

    def check_arguments(self, name: SelectorToken, arguments: list[_Part]) -> None:
        wanted = _SIGNATURES[name.text]
        if wanted[-1] == _REPEATED:
            wanted = (wanted[0],) * len(arguments)
        if len(arguments) != len(wanted):
            raise self.error(name.position, f"{name.value} takes {len(wanted)} arguments, not {len(arguments)}")
        for part, kind in zip(arguments, wanted, strict=True):
            self.check_argument(name.text, part, kind)
        texts = zip(arguments, wanted, strict=True)
        pattern = [str(each.node.value) for each, kind in texts if kind in _LITERALS and isinstance(each.node, Literal)]
        try:
            if pattern:
                RegexPattern(*pattern)
        except ValueError as wrong:
            raise self.error(name.position, f"{name.value} cannot use its pattern: {wrong}") from wrong

    def check_argument(self, function: str, part: _Part, wanted: str) -> None:
        node, type = part.node, type_of(part.node)
        if wanted in _LITERALS:
            fits = isinstance(node, Literal) and type is ValueType.TEXT
        else:
            fits = type is not ValueType.LIST if wanted == _SCALAR else type == wanted
        if not fits:
            raise self.error(part.start, f"{function} takes {wanted} here")
