"""Parses patterns of LIKE."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise


class Wildcard(Enum):
    """The two characters of a pattern that are not themselves."""

    ANY_RUN = "%"
    ANY_CHARACTER = "_"


_WILDCARDS = {each.value: each for each in Wildcard}


def pattern_elements(pattern: str, escape: str | None) -> Iterator[str | Wildcard]:
    """Yield the literal characters and wildcards of a pattern, in order.

    The escape character makes a following %, _ or itself literal; before others, and at the end, it is what it is
    without ESCAPE, also a wildcard.
    """
    escaped = False
    for character, following in pairwise((*pattern, "")):
        if escaped:
            yield character
            escaped = False
        elif character == escape and (following in _WILDCARDS or following == escape):
            escaped = True
        else:
            yield _WILDCARDS.get(character, character)
