"""Call the store until it answers, and commit only what its disk has space for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.store import CommitBatch, CommitResult, StoreLimits

logger = logging.getLogger(__name__)

#: Bytes that a batch, a copy of a message and an acknowledgement add to the append-only file beside messages, at most.
FIXED_BYTES, COPY_BYTES, SETTLED_BYTES = 4_000, 300, 200
#: Seconds between attempts to reach a store that does not answer.
RETRY_SECONDS = 0.1

_Answer = TypeVar("_Answer")


class StoreCalls:
    """Calls the store for one session of a node."""

    def __init__(self, store: CommitStore, session: str, limits: StoreLimits) -> None:
        self.store, self.session, self.limits = store, session, limits
        self.waiting_since: float | None = None  #: loop time at which the store stopped answering

    async def commit(self, batch: CommitBatch) -> CommitResult:
        """Commit a batch once when the disk has space for it. Raises Fenced, StoreUnavailable."""
        limits = self.limits
        size, limits.committing_bytes = _size(batch) if limits.disk.is_scarce else 0, 0
        # A server that can't write ends, and is no longer there to be read from.
        while not limits.has_space_for(size):
            await asyncio.sleep(RETRY_SECONDS)
        limits.committing_bytes = size
        committed = await self.store.commit(self.session, batch, limits)
        limits.committed_bytes, limits.committing_bytes = limits.committed_bytes + size, 0
        return committed

    async def until_answered(self, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Repeat a call until the store is available, and return its answer. Raises Fenced."""
        while True:
            try:
                answer = await call()
            except Fenced:
                raise
            except StoreUnavailable as error:
                if self.waiting_since is None:
                    self.waiting_since = asyncio.get_running_loop().time()
                    logger.warning("the store does not answer: %s; trying again until it does", error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                if self.waiting_since is not None:
                    logger.warning("the store answers again")
                    self.waiting_since = None
                return answer


def _size(batch: CommitBatch) -> int:
    """About how many bytes a batch adds to the append-only file."""
    weights = [unit.cost for unit in batch.writes]
    settled = sum(len(unit.settles) for unit in batch.writes)
    return FIXED_BYTES + sum(size + COPY_BYTES * copies for copies, size in weights) + SETTLED_BYTES * settled
