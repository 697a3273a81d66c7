"""Explains why a selector is TRUE, FALSE or unknown for a message: its clauses with values and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from brokerapp.selectors import Selector
from brokerapp.selectors.evaluate import compile_predicate
from brokerapp.selectors.identifiers import header_reader
from brokerapp.selectors.render import render_clause
from brokerapp.selectors.tree import And, Call, Not, Or, SelectorNode, children, properties, type_of
from brokerapp.selectors.values import ValueType, parse_number
from brokerapp.selectors.xml_body import SelectorView

_WORDS = {True: "true", False: "false", None: "unknown"}


@dataclass(frozen=True, slots=True)
class ClauseExplanation:
    """Value of one condition of a selector for a message, with the reason and the conditions that it consists of."""

    text: str
    value: bool | None
    reason: str
    clauses: tuple[ClauseExplanation, ...] = ()


def explain(selector: Selector, headers: Mapping[str, str]) -> ClauseExplanation:
    """Explain a selector for a message with these STOMP headers."""
    return _explain(selector.tree, headers)


def _explain(node: SelectorNode, headers: Mapping[str, str]) -> ClauseExplanation:
    value = compile_predicate(node)(headers)
    match node:
        case And(operands) | Or(operands):
            parts = tuple(_explain(each, headers) for each in operands)
            return ClauseExplanation(render_clause(node), value, _decisive(value, parts, isinstance(node, And)), parts)
        case Not(operand):
            part = _explain(operand, headers)
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
        known = header_reader(name)(headers)
        missing = missing or known is None
        yield f"{name} {_described(known, numeric)}"
    if value is None and not missing:
        yield "this cannot be computed"
    elif not properties(node):
        yield "it does not depend on the message"


def _below(node: SelectorNode) -> Iterator[SelectorNode]:
    for each in children(node):
        yield each
        yield from _below(each)


def _described(known: object, numeric: bool) -> str:
    match known:
        case None:
            return "is missing"
        case bool():
            return f"is {_WORDS[known]}"
        case str():
            return f"is '{known}'" + (", which is not a number" if numeric and parse_number(known) is None else "")
    return f"is {known}"
