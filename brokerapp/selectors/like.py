"""What a LIKE pattern means."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum


class Wildcard(Enum):
    """The two characters of a pattern that are not themselves."""

    ANY_RUN = "%"
    ANY_CHARACTER = "_"


_WILDCARDS = {each.value: each for each in Wildcard}


def elements(pattern: str, escape: str | None) -> Iterator[str | Wildcard]:
    """Literal characters and wildcards of a pattern, in order.

    The escape character makes a following %, _ or itself literal; before others, and at the end, it is an ordinary one.
    """
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following in _WILDCARDS or following == escape:
                yield following
                continue
            yield character
            if not following:
                return
            character = following
        yield _WILDCARDS.get(character, character)
