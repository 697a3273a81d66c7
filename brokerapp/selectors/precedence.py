"""Precedence of operators, from the loosest to the tightest."""

from enum import IntEnum


class Level(IntEnum):
    """NOT stands where SQL and JMS have it: looser than comparisons (ActiveMQ binds it tighter than all of them)."""

    WHOLE = 0
    OR = 1
    AND = 2
    NOT = 3
    EQUALITY = 4
    RELATION = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    ATOM = 9


#: Operators between operands, and NOT, which stands before LIKE, BETWEEN and IN. All group from the left.
LEVELS = {
    "OR": Level.OR, "AND": Level.AND, "=": Level.EQUALITY, "<>": Level.EQUALITY, "IS": Level.EQUALITY,
    "<": Level.RELATION, "<=": Level.RELATION, ">": Level.RELATION, ">=": Level.RELATION, "NOT": Level.RELATION,
    "LIKE": Level.RELATION, "BETWEEN": Level.RELATION, "IN": Level.RELATION,
    "+": Level.SUM, "-": Level.SUM, "*": Level.PRODUCT, "/": Level.PRODUCT, "%": Level.PRODUCT,
}  # fmt: skip
