"""Whether names match patterns, for pages that show what a definition or a subscription covers."""

from __future__ import annotations

from brokerapp.destination import ANY_ELEMENT, ANY_REST, SEPARATOR


def matches(pattern: str, name: str) -> bool:
    """Whether a name, which may be a pattern itself, is covered by a pattern."""
    wanted, given = pattern.split(SEPARATOR), name.split(SEPARATOR)
    if wanted[-1] == ANY_REST:
        wanted, given = wanted[:-1], given[: len(wanted) - 1]
    return len(wanted) == len(given) and all(w in (ANY_ELEMENT, g) for w, g in zip(wanted, given, strict=True))
