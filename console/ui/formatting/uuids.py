"""Parse ids of records from untrusted input."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID


def valid_ids(texts: Iterable[str]) -> list[UUID]:
    """Return the texts that are valid UUIDs."""
    found = []
    for each in texts:
        with suppress(ValueError):
            found.append(UUID(each))
    return found
