"""Decide how many of the writes that wait make the next batch."""

from __future__ import annotations

from collections.abc import Sequence

from brokerapp.core.commits.pending_settles import settles_uncommitted
from brokerapp.store import PendingWrite

#: Units in one batch: bounds how long the store is busy with one call (some 10 ms).
MAX_UNITS = 2_000
#: Copies and bytes of messages in one batch, for the same reason.
MAX_COPIES = 5_000
MAX_BYTES = 8 * 1024 * 1024


def units_of_next_batch(units: Sequence[PendingWrite]) -> int:
    """Return how many of the units make a batch; at least one, if there is any.

    One that settles what is on its way to the store comes in a later batch than that.
    """
    if len(units) == 1:
        return 1
    copies = size = 0
    for count, unit in enumerate(units[:MAX_UNITS]):
        of_unit, bytes_of_unit = unit.cost
        copies += of_unit
        size += bytes_of_unit
        if count and (copies > MAX_COPIES or size > MAX_BYTES or settles_uncommitted(unit)):
            return count
    return min(len(units), MAX_UNITS)
