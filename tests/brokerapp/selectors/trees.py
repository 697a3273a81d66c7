"""Generate random selector trees and headers, and evaluate a tree in the simplest way.

`verdict` shares nothing with the code it judges: it walks the tree for every message and looks at the types of values
as they come.
"""

import math
import re
from random import Random

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
)

PROPERTIES = ["a", "b", "c", "flag"]
IDENTIFIERS = ["JMSPriority", "priority", "JMSDeliveryMode", "persistent", "JMSType", "JMSRedelivered", "JMSExpiration"]
TEXTS = [
    "",
    "5",
    "5.0",
    "-3",
    "007",
    "1e3",
    "five",
    "true",
    "TRUE",
    "false",
    "it's",
    "a%b",
    "a_b",
    "x\ny",
    "grün",
    "🙂",
    "1e999",
]
NUMBERS = [0, 5, -3, 7, 2.5, 1000, 1e3, 0.1, 1e200]
PATTERNS = ["%", "_", "5%", "%e", "a!%b", "a!_b", "%_%", "!!", "", "x%y", "_rün", "\\%", "."]
HEADERS = {
    **dict.fromkeys(PROPERTIES, TEXTS),
    "priority": ["0", "4", "9"],
    "persistent": ["true", "false"],
    "type": ["5", "order"],
    "redelivered": ["true", "false"],
    "expires": ["0", "1700000000000"],
}


def random_headers(random: Random) -> dict[str, str]:
    """Headers of a message; each is missing now and then."""
    return {name: random.choice(values) for name, values in HEADERS.items() if random.random() < 0.7}


def random_condition(random: Random, depth: int = 3):
    """A condition of at most so many levels."""
    return random.choice(_TESTS + _CONNECTIVES * (depth > 0))(random, depth - 1)


def _conditions(random: Random, depth: int) -> tuple:
    return tuple(random_condition(random, depth) for _ in range(random.randint(2, 3)))


_CONNECTIVES = [
    lambda random, depth: And(_conditions(random, depth)),
    lambda random, depth: Or(_conditions(random, depth)),
    lambda random, depth: Not(random_condition(random, depth)),
    lambda random, depth: IsNull(random_condition(random, depth)),
    lambda random, depth: Compare(random.choice(["=", "<>"]), And(_conditions(random, depth)), PropertyRef("flag")),
] * 2

_TESTS = [
    *[lambda random, depth: _equality(random)] * 3,
    *[lambda random, depth: Compare(random.choice(["<", "<=", ">", ">="]), *_orderables(random, 2))] * 3,
    lambda random, depth: Between(*_orderables(random, 3)),
    *[lambda random, depth: Like(_scalar(random), random.choice(PATTERNS), random.choice([None, "!", "\\"]))] * 2,
    lambda random, depth: In(_property_of(random), tuple(random.choices(TEXTS, k=2))),
    lambda random, depth: IsNull(_scalar(random)),
    lambda random, depth: Call("REGEX", (Literal(random.choice(["^5", "e", "[a-f]+$"])), _text(random))),
    lambda random, depth: Call("INLIST", (_list(random), _scalar(random, 0))),
    lambda random, depth: random.choice([_property_of(random), Literal(random.choice([True, False, None]))]),
]


def _property_of(random: Random) -> PropertyRef:
    return PropertyRef(random.choice(PROPERTIES * 2 + IDENTIFIERS))


def _scalar(random: Random, depth: int = 1):
    """A value: a property more often than not."""
    return random.choice(_VALUES + _COMPUTED * (depth > 0))(random, depth - 1)


_VALUES = [
    *[lambda random, depth: _property_of(random)] * 3,
    lambda random, depth: Literal(random.choice(NUMBERS)),
    lambda random, depth: Literal(random.choice(TEXTS)),
    lambda random, depth: Literal(random.choice([True, False])),
]
_COMPUTED = [
    lambda random, depth: Arithmetic(random.choice("+-*/%"), _scalar(random, depth), _scalar(random, depth)),
    lambda random, depth: Negative(_property_of(random)),
    lambda random, depth: Call("REPLACE", (_text(random), Literal("[e5]"), Literal("7"))),
]


def _orderables(random: Random, count: int) -> list:
    """Values that may stand beside < and >."""
    arithmetic = Arithmetic(random.choice("+-*/%"), _scalar(random, 0), _scalar(random, 0))
    return random.choices([_property_of(random), Literal(random.choice(NUMBERS)), arithmetic], k=count)


def _equality(random: Random):
    left, right = _scalar(random), _scalar(random)
    truths = [isinstance(each, Literal) and isinstance(each.value, bool) for each in (left, right)]
    if isinstance(left, Literal) and isinstance(right, Literal) and truths[0] != truths[1]:
        left = PropertyRef("a")
    return Compare(random.choice(["=", "<>"]), left, right)


def _text(random: Random):
    return PropertyRef(random.choice([*PROPERTIES, "JMSType"]))


def _list(random: Random):
    if random.random() < 0.5:
        return Call("SPLIT", (_text(random), Literal("[%_e]")))
    return Call("MAKELIST", tuple(_scalar(random, 0) for _ in range(random.randint(1, 3))))


# -- what it means


def meaning(node, headers):
    """True, False, None, text, a number, or a list."""
    return _MEANINGS[type(node)](node, headers)


def as_number(value):
    """The number a value is, None for text that is none."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        return float(value)
    return None


def _property(node, headers):
    match node.name:
        case "JMSPriority" | "priority":
            return float(headers.get("priority", "4"))
        case "JMSExpiration":
            return float(headers.get("expires", "0"))
        case "JMSRedelivered":
            return headers.get("redelivered", "false") == "true"
        case "persistent":
            return headers.get("persistent", "false") == "true"
        case "JMSDeliveryMode":
            return "PERSISTENT" if headers.get("persistent") == "true" else "NON_PERSISTENT"
        case "JMSType":
            return headers.get("type")
    return headers.get(node.name)


def _condition(node, headers):
    """A node where a condition stands: text is true when it says so, numbers never are."""
    value = meaning(node, headers)
    if isinstance(value, str):
        return value.lower() == "true"
    return value if isinstance(value, bool) or value is None else False


def _three(values, winner):
    return winner if winner in values else (None if None in values else not winner)


def _negated(value):
    return None if value is None else not value


def _related(operator, a, b):
    if a is None or b is None:
        return None
    unlike = operator == "<>"
    kinds = {bool if isinstance(each, bool) else str if isinstance(each, str) else float for each in (a, b)}
    if bool in kinds and (float in kinds or operator not in ("=", "<>")):
        return unlike
    if bool in kinds:
        a, b = (each.lower() == "true" if isinstance(each, str) else each for each in (a, b))
    elif float in kinds:
        a, b = as_number(a), as_number(b)
        if a is None or b is None:
            return unlike
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def _compare(node, headers):
    return _related(node.operator, meaning(node.left, headers), meaning(node.right, headers))


def _between(node, headers):
    value, low, high = (meaning(each, headers) for each in (node.value, node.low, node.high))
    return _three([_related(">=", value, low), _related("<=", value, high)], False)


def _like(node, headers):
    value = meaning(node.value, headers)
    if value is None:
        return None
    return isinstance(value, str) and _is_like(value, node.pattern, node.escape)


def _is_like(text, pattern, escape):
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == escape and rest and rest[0] in ("%", "_", escape):
        return text[:1] == rest[0] and _is_like(text[1:], rest[1:], escape)
    if head == "%":
        return any(_is_like(text[start:], rest, escape) for start in range(len(text) + 1))
    return text != "" and (text[0] == head or head == "_") and _is_like(text[1:], rest, escape)


def _in(node, headers):
    value = meaning(node.value, headers)
    return value in node.choices if isinstance(value, str) else None


def _arithmetic(node, headers):
    return _computed(node.operator, meaning(node.left, headers), meaning(node.right, headers))


def _computed(operator, a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return None
    a, b = as_number(a), as_number(b)
    if a is None or b is None or (operator in "/%" and b == 0):
        return None
    a, b = float(a), float(b)
    if math.isinf(a) or math.isinf(b):  # a number too large for a double cannot be calculated with
        return None
    operations = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}
    result = math.fmod(a, b) if operator == "%" else operations[operator]()
    return result if math.isfinite(result) else None


def _call(node, headers):
    arguments = [meaning(each, headers) for each in node.arguments]
    match node.function:
        case "MAKELIST":
            return arguments
        case "INLIST":
            members, value = arguments
            return (
                None if members is None else _three([_related("=", value, each) for each in members] or [False], True)
            )
        case "REGEX":
            return None if arguments[1] is None else bool(re.search(arguments[0], arguments[1]))
        case "SPLIT":
            return None if arguments[0] is None else (re.split(arguments[1], arguments[0].rstrip("%_e")) or [""])
        case "REPLACE":
            return None if arguments[0] is None else re.sub(arguments[1], arguments[2], arguments[0])


_MEANINGS = {
    Literal: lambda node, headers: node.value,
    PropertyRef: _property,
    And: lambda node, headers: _three([_condition(each, headers) for each in node.operands], False),
    Or: lambda node, headers: _three([_condition(each, headers) for each in node.operands], True),
    Not: lambda node, headers: _negated(_condition(node.operand, headers)),
    Compare: _compare,
    Between: _between,
    Like: _like,
    In: _in,
    IsNull: lambda node, headers: meaning(node.operand, headers) is None,
    Arithmetic: _arithmetic,
    Negative: lambda node, headers: _computed("-", 0, meaning(node.operand, headers)),
    Call: _call,
}


def verdict(tree, headers):
    """What a whole selector comes to."""
    return _condition(tree, headers)
