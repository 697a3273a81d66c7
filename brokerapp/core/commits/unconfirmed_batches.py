"""Hold batches that the store's primary has until its replicas confirm them, and commit them again if it is replaced.

A primary that takes over has the first of these batches, as the former one did them, or none: what it lacks is
committed again before anything else (decision 29).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.store import CommitBatch, CommitResult, Confirmation

#: Batches that wait for replicas while the next is committed. Two keep the primary busy, as a replica takes about as
#: long as it does; each more delays what depends on the store's numbers.
MAX_UNCONFIRMED = 2


@dataclass(slots=True)
class AnsweredBatch:
    """A batch that the store's primary has, and perhaps not yet enough replicas."""

    batch: CommitBatch
    committed: CommitResult
    unit_count: int = 0  #: of those that were submitted

    @property
    def confirmations(self) -> tuple[Confirmation, ...]:
        """Return what to wait for before it is done: nothing where no replicas confirm it."""
        return () if self.committed.confirmation is None else (self.committed.confirmation,)


class UnconfirmedBatches:
    """Batches in the order of their commits, of which the oldest is confirmed first. False when there is none.

    `commit` commits one batch; `until_answered` repeats a call until the store is available.
    """

    def __init__(
        self,
        store: CommitStore,
        session: str,
        commit: Callable[[CommitBatch], Awaitable[CommitResult]],
        until_answered: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
    ) -> None:
        self._store, self._session, self._commit, self._until_answered = store, session, commit, until_answered
        self._batches: deque[AnsweredBatch] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    def append(self, answered: AnsweredBatch) -> None:
        """Add the batch that was committed last."""
        self._batches.append(answered)

    @property
    def oldest_confirmations(self) -> tuple[Confirmation, ...]:
        """Return what the oldest batch waits for."""
        return self._batches[0].confirmations

    @property
    def is_oldest_due(self) -> bool:
        """Return whether the oldest batch waits for nothing, or its confirmation came or failed, or too many wait."""
        if len(self._batches) > MAX_UNCONFIRMED:
            return True
        return bool(self._batches) and all(each.done() for each in self.oldest_confirmations)

    async def commit_next(self, batch: CommitBatch) -> CommitResult:
        """Commit a batch after all of these, and return its result."""
        sent, is_retry = AnsweredBatch(batch, CommitResult(0)), False

        async def attempt() -> None:
            nonlocal is_retry
            batch.follows_unconfirmed = any(each.confirmations for each in self._batches)
            if is_retry and batch.follows_unconfirmed:
                await self._commit_again([*self._batches, sent])
                return
            is_retry = True
            sent.committed = await self._commit(batch)

        await self._until_answered(attempt)
        return sent.committed

    async def pop_oldest(self) -> AnsweredBatch:
        """Remove and return the oldest batch when it is confirmed; have all confirmed again if that fails."""
        is_retry = False

        async def attempt() -> None:
            nonlocal is_retry
            if is_retry:
                await self._commit_again(list(self._batches))
                return
            is_retry = True
            await _wait_for(self.oldest_confirmations)

        if self.oldest_confirmations:
            await self._until_answered(attempt)
        return self._batches.popleft()

    async def _commit_again(self, batches: list[AnsweredBatch]) -> None:
        """Commit those of these batches that the store lacks, and wait until all are confirmed.

        They are all that were sent and not confirmed, in order.
        """
        last = await self._store.last_batch(self._session)
        # The last one that it has is answered from memory. Its confirmation is for those before it, too.
        missing = [each for each in batches if each.batch.number >= last and each.batch.makes_changes]
        for each in missing:
            each.batch.follows_unconfirmed = each is not batches[0]
            each.committed = await self._commit(each.batch)
        for each in missing:
            await _wait_for(each.confirmations)
        for each in batches:
            each.committed = replace(each.committed, confirmation=None)


async def _wait_for(confirmations: Iterable[Confirmation]) -> None:
    for each in confirmations:
        await each
