"""Explains why a selector is TRUE, FALSE or unknown for a message: its clauses with values and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.jms.properties import PropertyType
from brokerapp.selectors import Predicate, Selector
from brokerapp.selectors.identifiers import header_reader
from brokerapp.selectors.matching.xml_body import SelectorView
from brokerapp.selectors.render import render_clause
from brokerapp.selectors.tree import And, Call, Not, Or, SelectorNode, children, properties, type_of
from brokerapp.selectors.typed import compile_typed_predicate, typed_reader
from brokerapp.selectors.typed_values import value_text
from brokerapp.selectors.untyped import compile_predicate
from brokerapp.selectors.values import ValueType, parse_number

_WORDS = {True: "true", False: "false", None: "unknown"}
_MISSING = "is missing"
#: Java's names of the types of properties; of text none is given.
_JAVA_TYPES = {
    PropertyType.BYTE: "byte", PropertyType.SHORT: "short", PropertyType.INT: "int", PropertyType.LONG: "long",
    PropertyType.FLOAT: "float", PropertyType.DOUBLE: "double", PropertyType.CHAR: "char",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClauseExplanation:
    """Value of one condition of a selector for a message, with the reason and the conditions that it consists of."""

    text: str
    value: bool | None
    reason: str
    clauses: tuple[ClauseExplanation, ...] = ()


def explain(selector: Selector, headers: Mapping[str, str]) -> ClauseExplanation:
    """Explain a selector for a message with these headers."""
    if JMS_HEADER in headers:
        return _explain(selector.written, headers, partial(compile_typed_predicate, convert=selector.converts))
    return _explain(selector.tree, headers, compile_predicate)


def _explain(
    node: SelectorNode, headers: Mapping[str, str], compiling: Callable[[SelectorNode], Predicate]
) -> ClauseExplanation:
    value = compiling(node)(headers)
    match node:
        case And(operands) | Or(operands):
            parts = tuple(_explain(each, headers, compiling) for each in operands)
            return ClauseExplanation(render_clause(node), value, _decisive(value, parts, isinstance(node, And)), parts)
        case Not(operand):
            part = _explain(operand, headers, compiling)
            return ClauseExplanation(render_clause(node), value, f"{part.text} is {_WORDS[part.value]}", (part,))
        case Call("XPATH" | "XQUERY" as language):
            return ClauseExplanation(render_clause(node), value, _of_body(language, headers))
    return ClauseExplanation(render_clause(node), value, "; ".join(_facts(node, value, headers)))


def _decisive(value: bool | None, parts: tuple[ClauseExplanation, ...], conjunction: bool) -> str:
    """Return the reason for the value of a chain: the first decisive clause, or all clauses."""
    if value is conjunction:
        return f"all {len(parts)} are {_WORDS[value]}"
    first = next(part for part in parts if part.value is value)
    return f"{first.text} is {_WORDS[value]}"


def _of_body(language: str, headers: Mapping[str, str]) -> str:
    """Return the reason for the value of a condition on the body."""
    if language != "XPATH":
        return f"{language} never holds, as in ActiveMQ"
    if not isinstance(headers, SelectorView):
        return "the message has no body"
    return "evaluated on the body" if headers.body.is_readable else "the body is not XML"


def _facts(node: SelectorNode, value: bool | None, headers: Mapping[str, str]) -> Iterator[str]:
    """Return the values of the properties that a condition reads."""
    numeric = any(type_of(each) is ValueType.NUMBER for each in _below(node))
    missing = False
    for name in sorted(properties(node)):
        described = _described_typed(name, headers) if JMS_HEADER in headers else _described(name, headers, numeric)
        missing = missing or described == _MISSING
        yield f"{name} {described}"
    if value is None and not missing:
        yield "this cannot be computed"
    elif not properties(node):
        yield "it does not depend on the message"


def _below(node: SelectorNode) -> Iterator[SelectorNode]:
    for each in children(node):
        yield each
        yield from _below(each)


def _described(name: str, headers: Mapping[str, str], numeric: bool) -> str:
    match header_reader(name)(headers):
        case None:
            return _MISSING
        case bool(known):
            return f"is {_WORDS[known]}"
        case str(known):
            return f"is '{known}'" + (", which is not a number" if numeric and parse_number(known) is None else "")
        case known:
            return f"is {known}"


def _described_typed(name: str, headers: Mapping[str, str]) -> str:
    match typed_reader(name)(headers):
        case None:
            return _MISSING
        case None, text:
            return f"is the text '{text}'"
        case type, known:
            written = value_text((type, known))
            return f"is the {_JAVA_TYPES[type]} {written}" if type in _JAVA_TYPES else f"is {written}"
