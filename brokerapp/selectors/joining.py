"""Combine the selectors of several consumers into one. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.model.selector_prefixes import CONVERT, HYPHENATED, split_prefixes

#: Selectors that become one; instead of more everything is taken, which costs less than asking so many.
MAX_JOINED = 32


def join_selectors(selectors: Iterable[str | None]) -> str | None:
    """Combine selectors with OR; return None, which selects all, if one of them is None or there are too many.

    The result converts if one of them does. What has hyphens is combined with its like only.
    """
    different = list(dict.fromkeys(selectors))
    if not different or len(different) > MAX_JOINED:
        return None
    parts = [split_prefixes(each) for each in different if each is not None]
    if len(parts) < len(different) or len({HYPHENATED in prefixes for prefixes, _ in parts}) > 1:
        return None
    if len(parts) == 1:
        return different[0]
    asked = frozenset().union(*(prefixes for prefixes, _ in parts))
    conditions = dict.fromkeys(condition for _, condition in parts)
    joined = " OR ".join(f"({each})" for each in conditions) if len(conditions) > 1 else parts[0][1]
    return "".join(each for each in (CONVERT, HYPHENATED) if each in asked) + joined
