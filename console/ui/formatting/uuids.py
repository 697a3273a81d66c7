"""Ids of records as they come from outside, where anything may stand in their place."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID


def valid_ids(texts: Iterable[str]) -> list[UUID]:
    """Those that are ids."""
    found = []
    for each in texts:
        with suppress(ValueError):
            found.append(UUID(each))
    return found
