"""Keeps what functions of texts return: a cache is bounded by its entries, and so each of them must be."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

#: Characters of the longest text whose result is kept: two of the longest names. Longer ones are few, or meant to fill
#: the cache.
MAX_CACHED_TEXT: Final = 2048

Function = TypeVar("Function", bound=Callable[..., Any])


def cached_if_short(maxsize: int) -> Callable[[Function], Function]:
    """Keep so many of the results of a function whose first argument is a text, where that is not long."""

    def decorate(function: Function) -> Function:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def of(text: str, *others: Any) -> Any:
            return (kept if len(text) <= MAX_CACHED_TEXT else function)(text, *others)

        return cast("Function", of)

    return decorate
