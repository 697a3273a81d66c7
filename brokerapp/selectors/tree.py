"""The tree of a selector, built by the parser and read by all backends (predicate, Spark column, explanation).

    selector   a condition: And, Or, Not, Compare, Between, Like, In, IsNull, a boolean Call, a Property, a Literal
    operand    Literal, Property, Arithmetic, Negative, Call, or a condition where its truth is compared

`x NOT IN (..)`, `x NOT LIKE ..` and `x IS NOT NULL` are Not(..): in three-valued logic that is the same. And and Or
hold all operands of a chain, so that long chains do not make deep trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from brokerapp.selectors.identifiers import identifier_for
from brokerapp.selectors.values import ValueType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is NULL."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """A user property or JMS identifier of the message, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE and FALSE exchanged; unknown stays unknown."""

    operand: SelectorNode


@dataclass(frozen=True, slots=True)
class And:
    """FALSE if an operand is, else unknown if one is, else TRUE. Two operands or more."""

    operands: tuple[SelectorNode, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE if an operand is, else unknown if one is, else FALSE. Two operands or more."""

    operands: tuple[SelectorNode, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """`operator` is one of = <> < <= > >=."""

    operator: str
    left: SelectorNode
    right: SelectorNode


@dataclass(frozen=True, slots=True)
class Between:
    """value >= low AND value <= high."""

    value: SelectorNode
    low: SelectorNode
    high: SelectorNode


@dataclass(frozen=True, slots=True)
class Like:
    """Text like a pattern of % (any run) and _ (any character); `escape` makes the next %, _ or itself literal."""

    value: SelectorNode
    pattern: str
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class In:
    """Text that is one of the choices."""

    value: PropertyRef
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """TRUE if the operand is unknown, else FALSE; never unknown itself."""

    operand: SelectorNode


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`operator` is one of + - * / %. Computed in doubles; what cannot be computed is unknown."""

    operator: str
    left: SelectorNode
    right: SelectorNode


@dataclass(frozen=True, slots=True)
class Negative:
    """Minus the operand."""

    operand: SelectorNode


@dataclass(frozen=True, slots=True)
class Call:
    """Call of one of FUNCTIONS with its arguments; patterns are text literals."""

    function: str
    arguments: tuple[SelectorNode, ...]


SelectorNode = (
    Literal | PropertyRef | Not | And | Or | Compare | Between | Like | In | IsNull | Arithmetic | Negative | Call
)

#: ActiveMQ's functions and what they give.
FUNCTIONS: dict[str, ValueType] = {
    "REGEX": ValueType.BOOLEAN,  # REGEX('pattern', text): whether the pattern is found
    "INLIST": ValueType.BOOLEAN,  # INLIST(list, value)
    "MAKELIST": ValueType.LIST,  # MAKELIST(value, ...)
    "SPLIT": ValueType.LIST,  # SPLIT(text, 'pattern')
    "XPATH": ValueType.BOOLEAN,  # XPATH 'expression': whether it holds for the body; never unknown
    "XQUERY": ValueType.BOOLEAN,  # XQUERY 'expression': never
    "REPLACE": ValueType.TEXT,  # REPLACE(text, 'pattern', 'replacement'), $1 being the first group
}


def type_of(node: SelectorNode) -> ValueType:
    """Return the type of the node's value, as far as it is known."""
    match node:
        case Literal(None):
            return ValueType.NOTHING
        case Literal(bool()):
            return ValueType.BOOLEAN
        case Literal(str()):
            return ValueType.TEXT
        case Literal() | Arithmetic() | Negative():
            return ValueType.NUMBER
        case PropertyRef(name):
            return identifier_for(name).form.type
        case Call(function):
            return FUNCTIONS[function]
    return ValueType.BOOLEAN


def children(node: SelectorNode) -> Iterator[SelectorNode]:
    """Yield the nodes directly under this one, in the order of the text."""
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, SelectorNode):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, SelectorNode))


def properties(node: SelectorNode) -> frozenset[str]:
    """Return the names of all properties and JMS identifiers in the tree."""
    found, waiting = set(), [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, PropertyRef):
            found.add(node.name)
        waiting += children(node)
    return frozenset(found)
