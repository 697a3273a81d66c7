"""Compiles the connectives of a tree: three-valued logic, which is the same whatever the types of properties."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Protocol

from brokerapp.selectors.tree import And, Between, Call, Compare, In, IsNull, Like, Not, Or, SelectorNode

Headers = Mapping[str, str]
#: From a message's headers to TRUE, FALSE or unknown (None). Never raises.
Predicate = Callable[[Headers], bool | None]

RELATIONS = {
    "=": operator.eq, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class TypeRules(Protocol):
    """Compiles the conditions whose outcome depends on the types of values."""

    def compare(self, relation: str, left: SelectorNode, right: SelectorNode) -> Predicate:
        """Compile a comparison of two operands."""

    def like(self, value: SelectorNode, pattern: str, escape: str | None) -> Predicate:
        """Compile a comparison of an operand with a pattern."""

    def is_in(self, value: SelectorNode, choices: tuple[str, ...]) -> Predicate:
        """Compile a test whether an operand is one of these texts."""

    def is_unknown(self, operand: SelectorNode) -> Predicate:
        """Compile a test whether an operand has no value."""

    def call(self, call: Call) -> Predicate:
        """Compile a function that is a condition."""

    def truth(self, node: SelectorNode) -> Predicate:
        """Compile a literal or property that stands where a condition does."""


def compile_condition(node: SelectorNode, rules: TypeRules) -> Predicate:
    """Compile a condition to a function of a message's headers."""
    match node:
        case And(operands):
            predicates = [compile_condition(each, rules) for each in operands]
            return both(*predicates) if len(predicates) == 2 else _all(predicates)
        case Or(operands):
            return any_of([compile_condition(each, rules) for each in operands])
        case Not(operand):
            return _not(compile_condition(operand, rules))
        case Compare(relation, left, right):
            return rules.compare(relation, left, right)
        case Between(value, low, high):
            return both(rules.compare(">=", value, low), rules.compare("<=", value, high))
        case Like(value, pattern, escape):
            return rules.like(value, pattern, escape)
        case In(value, choices):
            return rules.is_in(value, choices)
        case IsNull(operand):
            return rules.is_unknown(operand)
        case Call():
            return rules.call(node)
    return rules.truth(node)


def both(left: Predicate, right: Predicate) -> Predicate:
    """Connect two predicates with AND."""

    def both_hold(headers: Headers) -> bool | None:
        first = left(headers)
        if first is False:
            return False
        second = right(headers)
        return False if second is False else first and second

    return both_hold


def _all(predicates: list[Predicate]) -> Predicate:
    def all_of(headers: Headers) -> bool | None:
        result: bool | None = True
        for each in predicates:
            value = each(headers)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return all_of


def any_of(predicates: list[Predicate]) -> Predicate:
    """Connect predicates with OR."""

    def any_holds(headers: Headers) -> bool | None:
        result: bool | None = False
        for each in predicates:
            value = each(headers)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return any_holds


def _not(operand: Predicate) -> Predicate:
    def negation(headers: Headers) -> bool | None:
        value = operand(headers)
        return None if value is None else not value

    return negation
