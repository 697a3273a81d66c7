"""Converts the text of headers to values: numbers and truths.

STOMP headers are text; what a selector compares them with decides how they are read. This module is the one home of
that reading, for the broker, for recorded traffic (the typed columns that Spark sees) and for explanations.
"""

from __future__ import annotations

import re
from enum import StrEnum

#: What an expression of a selector can come to; None stands for unknown.
Value = str | int | float | bool


class ValueType(StrEnum):
    """Type of an expression, as far as it is known."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    NOTHING = "nothing"  #: the literal NULL


#: Text that is a decimal number. No blanks, no type suffix, no hexadecimal form, no NaN.
DECIMAL_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

#: Whole numbers of at most so many digits are kept exactly, others as doubles.
EXACT_DIGITS = 38

_is_decimal_number = re.compile(DECIMAL_NUMBER).fullmatch
_is_whole = re.compile(rf"[+-]?[0-9]{{1,{EXACT_DIGITS}}}").fullmatch


def parse_number(text: str) -> int | float | None:
    """Parse a decimal number, None if it is not one: `007` is 7, `1e3` is 1000.0, `five` is None."""
    if len(text) <= EXACT_DIGITS and text.isdigit() and text.isascii():
        return int(text)
    if _is_decimal_number(text) is None:
        return None
    return int(text) if _is_whole(text) else float(text)


def parse_boolean(text: str) -> bool:
    """Return whether this text is `true`, in any case of letters."""
    return text.lower() == "true"
