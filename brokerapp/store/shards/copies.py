"""Decide which of several copies of a log is the newest. Pure.

A move copies a log to another shard, and a fault may leave both copies: the move was given up, its node ended, or a
shard was restored from a backup, shard 0 with its record of where logs are included. Numbers tell which copy came
later, whatever the record says: each move has a higher number than those before, and a copy has that of the move which
brought it, or of the last one that its shard knew of when the log was made there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogCopy:
    """A copy of a log in one shard."""

    number: int  #: of the move that brought it
    is_arriving: bool = False  #: that move was not known to be done: nodes have not written to this copy

    @classmethod
    def parse(cls, text: str) -> LogCopy:
        """Return a copy as the store describes it: `N`, or `N?` for one that arrives."""
        return cls(int(text.rstrip("?")), text.endswith("?"))

    def __str__(self) -> str:
        return f"{self.number}?" if self.is_arriving else str(self.number)


def newest_copy(copies: Mapping[int, LogCopy], last_moves: Mapping[int, int], recorded: int | None) -> int | None:
    """Return the shard whose copy of a log has all that the others have, or None where that is not certain.

    `last_moves` are the numbers of the last moves that the shards took part in, `recorded` is where the record of
    shards says that the log is.
    """
    if len(copies) == 1:
        return next(iter(copies))
    settled = {
        shard: copy.number
        for shard, copy in copies.items()
        if not copy.is_arriving or (shard == recorded and last_moves[0] >= copy.number)  # recorded as the move was done
    }
    newest = [shard for shard, number in settled.items() if number == max(settled.values())]
    if len(newest) != 1:
        return None
    # What arrives is a part of what its source had, unless that was restored to a state before the move.
    is_source_older = any(copy.number > last_moves[newest[0]] for shard, copy in copies.items() if shard not in settled)
    return None if is_source_older else newest[0]
