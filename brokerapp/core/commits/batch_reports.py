"""Tell those who asked for the writes of a batch how these ended."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

from brokerapp.store import CommitBatch, CommitResult, PendingWrite, WriteOwner

logger = logging.getLogger(__name__)


def report_batch(batch: CommitBatch, committed: CommitResult) -> None:
    """Tell all units how they ended; their owner at once, of those that follow each other and are stored."""
    seq = committed.base_seq + 1
    odd = {*committed.refused, *committed.dropped, *committed.duplicates}

    def owner_of_stored(numbered: tuple[int, PendingWrite]) -> WriteOwner | None:
        position, unit = numbered
        is_odd = odd and not odd.isdisjoint(range(position, position + unit.unit_count))
        return None if is_odd else unit.owner

    for owner, numbered in itertools.groupby(batch.numbered_writes, owner_of_stored):
        if owner is not None:
            units = [unit for _, unit in numbered]
            follow(owner.on_stored, units, seq)
            seq += sum([unit.count for unit in units])
            continue
        for position, unit in numbered:
            follow(unit.on_batch_done, seq, position, committed)
            seq += unit.count


def follow(step: Callable[..., None], *facts: Any) -> None:
    """Do what follows from the store's answer: a fault of ours in it keeps nobody else waiting, nor ends the node."""
    try:
        step(*facts)
    except Exception:
        logger.exception("what follows from an answer of the store could not be done")
