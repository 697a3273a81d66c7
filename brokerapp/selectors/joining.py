"""Combine the selectors of several consumers into one. Pure."""

from __future__ import annotations

from collections.abc import Iterable

#: Selectors that become one; instead of more everything is taken, which costs less than asking so many.
MAX_JOINED = 32


def join_selectors(selectors: Iterable[str | None]) -> str | None:
    """Combine selectors with OR; return None, which selects all, if one of them is None or there are too many."""
    different = list(dict.fromkeys(selectors))
    if not different or None in different or len(different) > MAX_JOINED:
        return None
    return different[0] if len(different) == 1 else " OR ".join(f"({each})" for each in different)
