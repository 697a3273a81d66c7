"""Ids of records as they come from outside, where anything may stand in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID


def ids_in(texts: Iterable[str]) -> Iterator[UUID]:
    """Those that are ids."""
    for each in texts:
        try:
            yield UUID(each)
        except ValueError:
            continue
