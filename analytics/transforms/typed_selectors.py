"""Translate the syntax tree of a selector to a Spark column over the typed properties of JMS messages.

The types of all properties are given: those of messages of one form. So each operand is a column of a known type, and
the rules of brokerapp.selectors.typed_values decide here already what is compared and computed, and how.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from analytics.transforms.text_selectors import (
    RELATIONS,
    Properties,
    TextCompiler,
    balanced,
    java_replacement,
    known_column,
    like_column,
    number_column,
    split_column,
    truth_column,
    unknown,
)
from brokerapp.model.jms.properties import FLOATING, WHOLE_NUMBERS, PropertyType, property_header
from brokerapp.selectors.identifiers import JMS, STOMP, identifier_for
from brokerapp.selectors.matching.functions import MAX_TEXT
from brokerapp.selectors.tree import Arithmetic, Call, In, Like, Literal, Negative, PropertyRef, SelectorNode, type_of
from brokerapp.selectors.typed import HEADERS, INTS
from brokerapp.selectors.typed_values import (
    BITS,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NEGATED,
    STRING,
    WIDTHS,
    are_numbers,
    literal_value,
)
from brokerapp.selectors.values import EXACT_DIGITS, ValueType

#: A type and a column; None: unknown for all messages.
Operand = tuple[PropertyType | None, Column] | None

#: Results of 64 bits times 64 bits fit in.
_EXACT = f"decimal({EXACT_DIGITS},0)"
_NAN = float("nan")


class TypedCompiler(TextCompiler):
    """Compiles trees for JMS messages of one form: `types` of the properties that are not text.

    `convert`: text compared with a number or a truth is read as one.
    """

    def __init__(
        self,
        ps: Properties,
        pn: Properties,
        known: Mapping[str, Column],
        *,
        types: Mapping[str, PropertyType],
        convert: bool,
    ) -> None:
        super().__init__(ps, pn, known)
        self.types, self.convert = types, convert

    # -- conditions

    def compare(self, relation: str, left: SelectorNode, right: SelectorNode) -> Column:
        first, second = self.operand(left), self.operand(right)
        if first is None or second is None:
            return unknown("boolean")
        holds, (a_type, a), (b_type, b) = RELATIONS[relation], first, second
        unlike = known_column(a, b, then=relation == "<>")
        if a_type is b_type:
            return holds(a, b)
        if self.convert and STRING in (a_type, b_type):
            return self.converted(holds, first, second, unlike)
        if a_type is STRING or b_type is STRING or not are_numbers(a_type, b_type):
            return unlike
        return holds(*_numbers(first, second))

    def converted(
        self, holds: Callable[[Column, Column], Column], left: tuple[PropertyType | None, Column],
        right: tuple[PropertyType | None, Column], unlike: Column,
    ) -> Column:  # fmt: skip
        """Compare text with a number or a truth as one."""
        (a_type, a), (b_type, b) = left, right
        other = b_type if a_type is STRING else a_type
        if other is BOOLEAN:
            return holds(*(truth_column(each) if type is STRING else each for type, each in (left, right)))
        if other not in WIDTHS:
            return unlike
        as_numbers = holds(
            *(number_column(each) if type is STRING else each.cast("double") for type, each in (left, right))
        )
        if other in WHOLE_NUMBERS:
            text = a if a_type is STRING else b
            exactly = holds(*(each.try_cast(_EXACT) if type is STRING else each for type, each in (left, right)))
            as_numbers = F.when(text.rlike(rf"\A[+-]?[0-9]{{1,{EXACT_DIGITS}}}\z"), exactly).otherwise(as_numbers)
        return F.coalesce(as_numbers, unlike)

    def text_test(self, node: Like | In) -> Column:
        operand = self.operand(node.value)
        if operand is None:
            return unknown("boolean")
        type, value = operand
        if isinstance(node, In):
            return value.isin(*node.choices) if type is STRING else unknown("boolean")
        return F.like(value, like_column(node), F.lit("\\")) if type is STRING else known_column(value, then=False)

    def is_unknown(self, operand: SelectorNode) -> Column:
        found = self.operand(operand)
        return F.lit(True) if found is None else found[1].isNull()

    def truth(self, node: SelectorNode) -> Column:
        match self.operand(node):
            case None:
                return unknown("boolean")
            case PropertyType.BOOLEAN, value:
                return value
            case _, value:
                return known_column(value, then=False)

    def regex(self, pattern: Literal, value: SelectorNode) -> Column:
        operand = self.operand(value)
        return unknown("boolean") if operand is None else F.rlike(_java_text(operand), F.lit(pattern.value))

    def in_list(self, members: Call, value: SelectorNode) -> Column:
        if members.function == "MAKELIST":
            return balanced(operator.or_, [self.compare("=", value, each) for each in members.arguments])
        text, wanted = self.operand(members.arguments[0]), self.operand(value)
        if text is None or wanted is None:
            return unknown("boolean")
        (a_type, a), (b_type, b) = text, wanted
        if a_type is not STRING or b_type is not STRING:
            return known_column(a, b, then=False)
        parts = split_column(a, members.arguments[1].value)
        return F.when(a.isNotNull() & b.isNotNull(), F.array_contains(parts, b))

    # -- operands

    def operand(self, node: SelectorNode) -> Operand:
        """Return the type and the column of an operand."""
        match node:
            case Literal(value):
                return _literal(value)
            case PropertyRef(name):
                return self.typed_property(name)
            case Arithmetic(operation, left, right):
                return _computed(operation, self.operand(left), self.operand(right))
            case Negative(value):
                return _negated(self.operand(value))
            case Call("REPLACE", (value, pattern, replacement)):
                operand = self.operand(value)
                if operand is None or operand[0] is not STRING:
                    return None
                by = F.lit(java_replacement(replacement.value))
                return STRING, F.regexp_replace(operand[1], F.lit(pattern.value), by)
        return BOOLEAN, self.condition(node)

    def typed_property(self, name: str) -> Operand:
        """Return a property; text may be missing, and then it is what a header of that name says, if that is text."""
        if name in JMS:
            return self.identifier(name)
        text, type = self.text_of(property_header(name)), self.types.get(name, STRING)
        if type is STRING and (name in STOMP or name in HEADERS):
            identifier = self.identifier(name)
            return (STRING, F.coalesce(text, identifier[1])) if identifier[0] is STRING else identifier
        if type in WHOLE_NUMBERS:
            return type, text.try_cast(_EXACT)
        match type:
            case PropertyType.FLOAT:
                return type, text.try_cast("float").cast("double")
            case PropertyType.DOUBLE:
                return type, text.try_cast("double")
            case PropertyType.BOOLEAN:
                return type, text == "true"
        return None if type is PropertyType.NULL else (type, text)

    def identifier(self, name: str) -> tuple[PropertyType | None, Column]:
        """Return a header that JMS or STOMP has a name for."""
        value = self.property(name)
        match type_of(PropertyRef(name)):
            case ValueType.NUMBER:
                return (INT if identifier_for(name) in INTS else LONG), value.try_cast(_EXACT)
            case ValueType.BOOLEAN:
                return BOOLEAN, value
        return STRING, value


def _literal(value: str | int | float | bool | None) -> Operand:
    found = literal_value(value)
    if found is None:
        return None
    type, known = found
    return type, F.lit(Decimal(known)).cast(_EXACT) if type in WHOLE_NUMBERS else F.lit(known)


def _numbers(*operands: tuple[PropertyType | None, Column]) -> list[Column]:
    """Return columns of one type: whole numbers, or doubles if one of them is."""
    if any(type in FLOATING for type, _ in operands):
        return [each.cast("double") for _, each in operands]
    return [each for _, each in operands]


def _java_text(operand: tuple[PropertyType | None, Column]) -> Column:
    """Return a value as Java writes it."""
    type, value = operand
    return value.cast("float").cast("string") if type is PropertyType.FLOAT else value.cast("string")


# -- arithmetic


def _computed(operation: str, left: Operand, right: Operand) -> Operand:
    """Return the result of an operation: whole numbers wrap around, other numbers become doubles, text is joined."""
    if left is None or right is None:
        return None
    (a_type, a), (b_type, b) = left, right
    if a_type is STRING:
        text = F.concat(a, _java_text(right))
        return (STRING, F.when(F.length(text) <= MAX_TEXT, text)) if operation == "+" else None
    if a_type not in WIDTHS or b_type not in WIDTHS:
        return None
    if operation in _WHOLE_OPERATIONS and not FLOATING & {a_type, b_type}:
        type = LONG if LONG in (a_type, b_type) else INT
        return type, _wrapped(_WHOLE_OPERATIONS[operation](a, b), type)
    return DOUBLE, _DOUBLE_OPERATIONS[operation](a.cast("double"), b.cast("double"))


def _negated(operand: Operand) -> Operand:
    if operand is None or operand[0] not in NEGATED:
        return None
    type, value = operand
    return type, _wrapped(-value, type) if type in BITS else -value


def _wrapped(whole: Column, type: PropertyType) -> Column:
    """Return what remains of a whole number in the bits of its type."""
    half, full = (F.lit(Decimal(2**bits)).cast(_EXACT) for bits in (BITS[type] - 1, BITS[type]))
    return (F.pmod(whole.cast(_EXACT) + half, full) - half).cast(_EXACT)


def _divided(a: Column, b: Column) -> Column:
    by_zero = F.when((a == 0) | F.isnan(a), F.lit(_NAN)).when(a > 0, F.lit(math.inf)).when(a < 0, F.lit(-math.inf))
    return F.when(b == 0, by_zero).otherwise(F.try_divide(a, b))


def _remainder(a: Column, b: Column) -> Column:
    return F.when((b == 0) & a.isNotNull(), F.lit(_NAN)).otherwise(F.try_mod(a, b))


_WHOLE_OPERATIONS = {"+": F.try_add, "-": F.try_subtract, "*": F.try_multiply}
_DOUBLE_OPERATIONS: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": _remainder,
}  # fmt: skip
