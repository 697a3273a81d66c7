"""Renders a tree as text in its plainest form, with no more parentheses than necessary.

`parse(render(tree))` is the tree again.
"""

from __future__ import annotations

from brokerapp.model.selector_prefixes import HYPHENATED
from brokerapp.selectors.precedence import LEVELS, Level
from brokerapp.selectors.tokens import is_plain_name
from brokerapp.selectors.tree import (
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
    properties,
)


def render(tree: SelectorNode) -> str:
    """Return the text of a selector, with a prefix if a name needs it."""
    plain = all(map(is_plain_name, properties(tree)))
    return ("" if plain else HYPHENATED) + render_clause(tree)


def render_clause(node: SelectorNode) -> str:
    """Return the text of a part of a selector."""
    return _render(node)[0]


def _render(node: SelectorNode) -> tuple[str, Level]:
    match node:
        case And(operands):
            return " AND ".join(_operand(each, Level.NOT) for each in operands), Level.AND
        case Or(operands):
            return " OR ".join(_operand(each, Level.AND) for each in operands), Level.OR
        case Not(Like() | In() | IsNull() as test):
            return _test(test, "NOT ")
        case Not(operand):
            return f"NOT {_operand(operand, Level.NOT)}", Level.NOT
        case Like() | In() | Between() | IsNull():
            return _test(node, "")
        case Compare(operator, left, right) | Arithmetic(operator, left, right):
            level = LEVELS[operator]
            return f"{_operand(left, level)} {operator} {_operand(right, Level(level + 1))}", level
        case Negative(operand):
            text = _operand(operand, Level.SIGN)
            return f"- {text}" if text.startswith("-") else f"-{text}", Level.SIGN
        case Call("XPATH" | "XQUERY" as language, (Literal(str(expression)),)):
            return f"{language} {_text(expression)}", Level.ATOM
        case Call(function, arguments):
            return f"{function}({', '.join(map(render_clause, arguments))})", Level.ATOM
    return _atom(node), Level.ATOM


def _operand(node: SelectorNode, level: Level) -> str:
    """Return the node's text, in parentheses when its operator binds looser than `level`."""
    text, own = _render(node)
    return text if own >= level else f"({text})"


def _test(node: Like | In | Between | IsNull, negation: str) -> tuple[str, Level]:
    match node:
        case IsNull(operand):
            return f"{_operand(operand, Level.EQUALITY)} IS {negation}NULL", Level.EQUALITY
        case Like(value, pattern, escape):
            ending = "" if escape is None else f" ESCAPE {_text(escape)}"
            after = f"LIKE {_text(pattern)}{ending}"
        case In(value, choices):
            after = f"IN ({', '.join(map(_text, choices))})"
        case Between(value, low, high):
            after = f"BETWEEN {_operand(low, Level.SUM)} AND {_operand(high, Level.SUM)}"
    return f"{_operand(value, Level.RELATION)} {negation}{after}", Level.RELATION


def _atom(node: Literal | PropertyRef) -> str:
    match node:
        case PropertyRef(name):
            return name if is_plain_name(name) else '"' + name.replace('"', '""') + '"'
        case Literal(None):
            return "NULL"
        case Literal(bool(value)):
            return str(value).upper()
        case Literal(str(value)):
            return _text(value)
    return repr(node.value)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
