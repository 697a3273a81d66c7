"""Rewrites a tree for strict typing, as in ActiveMQ's own filters: text never stands for a number or a truth.

The tree itself is changed, so that all its readers agree: a comparison that has only one possible value when the text
is there becomes a comparison of the text with itself, which is unknown while the text is missing.
"""

from __future__ import annotations

from brokerapp.selectors.tree import (
    And,
    Arithmetic,
    Between,
    Compare,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    PropertyRef,
    SelectorNode,
    type_of,
)
from brokerapp.selectors.values import ValueType


def apply_strict_typing(node: SelectorNode) -> SelectorNode:
    """Return the condition with text headers as text only."""
    match node:
        case And(operands):
            return And(tuple(map(apply_strict_typing, operands)))
        case Or(operands):
            return Or(tuple(map(apply_strict_typing, operands)))
        case Not(operand):
            return Not(apply_strict_typing(operand))
        case PropertyRef() if _is_text(node):
            return _never(node)
        case Compare(relation, left, right) if (text := _text_against_other(left, right)) is not None:
            return Compare("=" if relation == "<>" else "<>", text, text)
        case Compare(relation, left, right):
            return Compare(relation, _operand(left), _operand(right))
        case Between(value, low, high):
            return And(
                (apply_strict_typing(Compare(">=", value, low)), apply_strict_typing(Compare("<=", value, high)))
            )
        case IsNull(operand):
            return IsNull(_operand(operand))
    return node


def _operand(node: SelectorNode) -> SelectorNode:
    match node:
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _number(left), _number(right))
        case Negative(operand):
            return Negative(_number(operand))
        case And() | Or() | Not() | Compare() | Between() | IsNull():
            return apply_strict_typing(node)
    return node


def _number(node: SelectorNode) -> SelectorNode:
    """Return an operand of arithmetic, in which text is unknown."""
    return Literal(None) if _is_text(node) else _operand(node)


def _text_against_other(left: SelectorNode, right: SelectorNode) -> PropertyRef | None:
    """Return the text property that is compared with a number or a truth, or None."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, PropertyRef) and _is_text(one) and type_of(other) in (ValueType.NUMBER, ValueType.BOOLEAN):
            return one
    return None


def _never(text: SelectorNode) -> SelectorNode:
    """Build a condition that is FALSE when the text is there, else unknown."""
    return Compare("<>", text, text)


def _is_text(node: SelectorNode) -> bool:
    return type_of(node) is ValueType.TEXT
