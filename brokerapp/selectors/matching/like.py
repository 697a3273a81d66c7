"""Parses patterns of LIKE, and compiles them."""

from __future__ import annotations

import re
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


def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """Compile the pattern to a regular expression that takes linear time for each %.

    A run ends at the first place where what follows it up to the next % fits: all that stands between two % has a fixed
    length, so no later place can do better, and the atomic groups keep the matcher from trying them.
    """
    runs = [""]
    for each in pattern_elements(pattern, escape):
        if each is Wildcard.ANY_RUN:
            runs.append("")
        else:
            runs[-1] += "." if each is Wildcard.ANY_CHARACTER else re.escape(each)
    first, *middle = runs
    last = middle.pop() if middle else None
    return re.compile(
        first + "".join(f"(?>.*?{each})" for each in middle if each) + ("" if last is None else f".*{last}"), re.DOTALL
    )
