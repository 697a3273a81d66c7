"""Translate the syntax tree of a selector to a Spark column over headers that are text.

A recorded message has two maps: `ps` holds the text of every property, `pn` the value of those that are numbers, as
doubles (brokerapp.selectors.values says which). The column is TRUE, FALSE, or NULL for unknown; `where` keeps the TRUE.

Every part of the column gives NULL where the predicate gives None, and none raises, also under ANSI rules: no cast but
try_cast, no division but try_divide. Whole numbers beyond 2^53 are exact where text is compared with a literal.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from brokerapp.selectors.identifiers import NON_PERSISTENT, PERSISTENT, TEMPORARY, IdentifierType, identifier_for
from brokerapp.selectors.matching.like import Wildcard, pattern_elements
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
    type_of,
)
from brokerapp.selectors.values import DECIMAL_NUMBER, EXACT_DIGITS, ValueType, parse_number

#: The properties of messages by name: a column with a map, or a column for each name that is asked for.
Properties = Column | Mapping[str, Column]

TEXT, NUMBER, BOOLEAN = ValueType.TEXT, ValueType.NUMBER, ValueType.BOOLEAN

RELATIONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": operator.eq, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

_OPERATIONS: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": F.try_divide, "%": F.try_mod,
}  # fmt: skip

#: Doubles hold all whole numbers below this.
_EXACT_DOUBLES = 2**53
_EXACT = f"decimal({EXACT_DIGITS},0)"
_WHOLE = rf"\A[+-]?[0-9]{{1,{EXACT_DIGITS}}}\z"
_DECIMAL = rf"\A(?:{DECIMAL_NUMBER})\z"
_INFINITY = float("inf")


class NotRecorded(ValueError):
    """The selector uses data that is not recorded, so it cannot be a column."""


class TextCompiler:
    """Compiles trees for messages whose headers are text. `known` are headers that are not in the maps."""

    def __init__(self, ps: Properties, pn: Properties, known: Mapping[str, Column]) -> None:
        self.ps, self.pn, self.known = ps, pn, known
        self.conditions = {
            "REGEX": self.regex, "INLIST": self.in_list, "XPATH": self.xpath, "XQUERY": lambda _: F.lit(False),
        }  # fmt: skip

    # -- conditions

    def condition(self, node: SelectorNode) -> Column:
        match node:
            case And(operands):
                return balanced(operator.and_, [self.condition(each) for each in operands])
            case Or(operands):
                return balanced(operator.or_, [self.condition(each) for each in operands])
            case Not(operand):
                return ~self.condition(operand)
            case Compare(relation, left, right):
                return self.compare(relation, left, right)
            case Between(value, low, high):
                return self.compare(">=", value, low) & self.compare("<=", value, high)
            case IsNull(operand):
                return self.is_unknown(operand)
            case Call(function, arguments):
                return self.conditions[function](*arguments)
            case Like() | In():
                return self.text_test(node)
        return self.truth(node)

    def is_unknown(self, operand: SelectorNode) -> Column:
        return self.value(operand).isNull()

    def truth(self, node: SelectorNode) -> Column:
        """Return a literal or property as a condition."""
        value = self.value(node)
        match type_of(node):
            case ValueType.TEXT:
                return truth_column(value)
            case ValueType.NUMBER:
                return known_column(value, then=False)
            case ValueType.NOTHING:
                return unknown("boolean")
        return value

    def compare(self, relation: str, left: SelectorNode, right: SelectorNode) -> Column:
        types, holds, unlike = {type_of(left), type_of(right)}, RELATIONS[relation], relation == "<>"
        if ValueType.NOTHING in types:
            return unknown("boolean")
        if BOOLEAN in types and (NUMBER in types or relation not in ("=", "<>")):
            return known_column(self.value(left), self.value(right), then=unlike)
        if BOOLEAN in types:
            return holds(self.as_truth(left), self.as_truth(right))
        if types == {TEXT, NUMBER}:
            compared = self.compare_as_numbers(holds, left, right)
            return F.coalesce(compared, known_column(self.value(left), self.value(right), then=unlike))
        return holds(self.value(left), self.value(right))

    def as_truth(self, node: SelectorNode) -> Column:
        return truth_column(self.value(node)) if type_of(node) is TEXT else self.value(node)

    def compare_as_numbers(
        self, holds: Callable[[Column, Column], Column], left: SelectorNode, right: SelectorNode
    ) -> Column:
        """Compare operands as numbers; NULL for text that is not a number. Large integers are compared exactly."""
        rounded = holds(self.number(left), self.number(right))
        literal, text = (left, right) if isinstance(left, Literal) else (right, left)
        if type_of(text) is not TEXT or not isinstance(literal, Literal) or not _is_large(literal.value):
            return rounded
        columns = {text: self.value(text).try_cast(_EXACT), literal: F.lit(Decimal(int(literal.value))).cast(_EXACT)}
        return F.when(self.value(text).rlike(_WHOLE), holds(columns[left], columns[right])).otherwise(rounded)

    def text_test(self, node: Like | In) -> Column:
        value, is_text = self.value(node.value), type_of(node.value) is TEXT
        if isinstance(node, In):
            return value.isin(*node.choices) if is_text else unknown("boolean")
        return F.like(value, like_column(node), F.lit("\\")) if is_text else known_column(value, then=False)

    # -- values

    def value(self, node: SelectorNode) -> Column:
        """Return the operand: text, double or boolean as its type is; NULL when unknown."""
        match node:
            case Literal(None):
                return unknown("string")
            case Literal(bool(value) | str(value)):
                return F.lit(value)
            case Literal(value):
                return F.lit(float(value))
            case PropertyRef(name):
                return self.property(name)
            case Arithmetic() | Negative():
                computed = self.computed(node)
                return F.when(F.abs(computed) < _INFINITY, computed)
            case Call("REPLACE", (value, pattern, replacement)):
                by = F.lit(java_replacement(replacement.value))
                return F.regexp_replace(self.value(value), F.lit(pattern.value), by)
        return self.condition(node)

    def property(self, name: str) -> Column:
        known = identifier_for(name)
        text = _first(*map(self.text_of, known.headers))
        value = _first(text, *(() if known.default is None else (F.lit(known.default),)))
        match known.form:
            case IdentifierType.NUMBER:
                default = unknown("double") if known.default is None else F.lit(float(known.default))
                return F.when(text.isNull(), default).otherwise(self.number_of(known.headers[0]))
            case IdentifierType.BOOLEAN:
                return truth_column(value)
            case IdentifierType.DELIVERY_MODE:
                return F.when(truth_column(value), PERSISTENT).otherwise(NON_PERSISTENT)
            case IdentifierType.DESTINATION:
                return _native(value)
        return value

    def text_of(self, header: str) -> Column:
        return self.known[header] if header in self.known else self.ps[header]

    def number_of(self, header: str) -> Column:
        return number_column(self.known[header]) if header in self.known else self.pn[header]

    def number(self, node: SelectorNode) -> Column:
        """Return the operand as a double; NULL for text that is no number, and for truth."""
        match node:
            case PropertyRef(name) if identifier_for(name).form is IdentifierType.TEXT:
                return self.number_of(identifier_for(name).headers[0])
            case Literal(str(text)):
                known = parse_number(text)
                return unknown("double") if known is None else F.lit(float(known))
        match type_of(node):
            case ValueType.NUMBER:
                return self.value(node)
            case ValueType.TEXT:
                return number_column(self.value(node))
        return unknown("double")

    # -- arithmetic

    def computed(self, node: SelectorNode) -> Column:
        """Return a double, NULL or infinity; infinity stays infinite, and the whole becomes NULL at the end."""
        match node:
            case Arithmetic(operation, left, right):
                divisor = self.computed(right)
                if operation in "/%":
                    divisor = _not_infinite(divisor)
                return _OPERATIONS[operation](self.computed(left), divisor)
            case Negative(operand):
                return -self.computed(operand)
        return self.number(node)

    # -- functions

    def regex(self, pattern: Literal, value: SelectorNode) -> Column:
        return F.rlike(self.value(value), F.lit(pattern.value))

    def in_list(self, members: Call, value: SelectorNode) -> Column:
        if members.function == "MAKELIST":
            return balanced(operator.or_, [self.compare("=", value, each) for each in members.arguments])
        text, wanted = self.value(members.arguments[0]), self.value(value)
        parts = split_column(text, members.arguments[1].value)
        read = {NUMBER: number_column, BOOLEAN: truth_column}.get(type_of(value), _same)
        found = F.exists(parts, lambda part: F.coalesce(read(part) == wanted, F.lit(False)))
        return F.when(text.isNotNull() & wanted.isNotNull(), found)

    def xpath(self, expression: Literal) -> Column:
        raise NotRecorded(f"XPATH {expression.value!r} asks for bodies, and what is recorded of messages has none")


# -- pieces of columns


def balanced(connect: Callable[[Column, Column], Column], columns: list[Column]) -> Column:
    """Return all columns connected, as a tree of little depth: Spark's planner recurses."""
    while len(columns) > 1:
        columns = [reduce(connect, columns[i : i + 2]) for i in range(0, len(columns), 2)]
    return columns[0]


def _first(*columns: Column) -> Column:
    return F.coalesce(*columns) if len(columns) > 1 else columns[0]


def _same(column: Column) -> Column:
    return column


def unknown(type: str) -> Column:
    return F.lit(None).cast(type)


def known_column(*columns: Column, then: bool) -> Column:
    """Return `then` where all columns are known, else NULL."""
    return F.when(reduce(operator.and_, (each.isNotNull() for each in columns)), F.lit(then))


def truth_column(text: Column) -> Column:
    return F.lower(text) == "true"


def number_column(text: Column) -> Column:
    return F.when(text.rlike(_DECIMAL), text.try_cast("double"))


def _is_large(value: object) -> bool:
    return not isinstance(value, bool) and _EXACT_DOUBLES <= abs(value) < 10**EXACT_DIGITS


def _not_infinite(column: Column) -> Column:
    """Convert infinity to NaN, which stays NaN in all operations. Uses `column` once, for deeply nested divisions."""
    return F.replace(column.cast("string"), F.lit("Infinity"), F.lit("NaN")).try_cast("double")


def _native(text: Column) -> Column:
    """Return a destination header in native form, as brokerapp.model.destination has it."""
    form = r"(?s)\A(?:/(queue|topic)/|(queue|topic)://)?(.*)\z"
    kind = F.concat(F.regexp_extract(text, form, 1), F.regexp_extract(text, form, 2))
    name = F.regexp_replace(F.regexp_extract(text, form, 3), F.lit(r"\A\s+|\s+\z"), F.lit(""))
    temporary = rf"\A{TEMPORARY}\z"
    return (
        F.when(text.rlike(temporary), F.regexp_replace(text, F.lit(temporary), F.lit("$1://$2")))
        .when(name == "", text)
        .otherwise(F.concat(F.when(kind == "", "queue").otherwise(kind), F.lit("://"), name))
    )


def like_column(node: Like) -> Column:
    """Return the pattern as Spark wants it: a backslash before each %, _ and backslash that is meant literally."""
    parts = (
        each.value if isinstance(each, Wildcard) else re.sub(r"([%_\\])", r"\\\1", each)
        for each in pattern_elements(node.pattern, node.escape)
    )
    return F.lit("".join(parts))


def java_replacement(text: str) -> str:
    """Return a replacement in which only `$1` to `$9` mean something to Java."""
    return re.sub(r"\$(?![0-9])", r"\\$", text.replace("\\", "\\\\"))


def split_column(text: Column, pattern: str) -> Column:
    """Return the parts of a text, empty ones at the end left out."""
    whole = F.regexp_replace(text, F.lit(rf"(?:{pattern})+\z"), F.lit(""))
    return F.when((whole == "") & (text != ""), F.array().cast("array<string>")).otherwise(F.split(whole, pattern, -1))
