"""Send one batch after the other to the store, ask it questions between two batches, and report what it answered.

A batch whose answer was lost is sent again until the store answers; the store does it once. Where replicas confirm
batches, the next ones are sent meanwhile, and each is done when it is confirmed, in order (unconfirmed_batches.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from brokerapp.core.commits.batch_reports import follow
from brokerapp.core.commits.store_calls import StoreCalls
from brokerapp.core.commits.unconfirmed_batches import AnsweredBatch, UnconfirmedBatches
from brokerapp.core.ports.commit_store import Question
from brokerapp.store import CommitBatch, CommitResult, PendingWrite

#: Called with logs that a batch declares, and their attributes, or None of those that it removes.
DeclarationHandler = Callable[[Sequence[tuple[str, str | None]]], Awaitable[None]]


@dataclass(slots=True)
class PendingRead:
    """A question to the store, to be asked when the last unit submitted before it is done."""

    question: Question
    callback: Callable[[Any], None]
    after: PendingWrite | None


@dataclass(frozen=True, slots=True)
class NextWork:
    """What to do in one round: a batch, if there is anything for one, with so many submitted units; then the reads."""

    batch: CommitBatch | None
    unit_count: int
    reads: Sequence[PendingRead]


class WorkSource(Protocol):
    """What was asked of the store and is not under way yet."""

    @property
    def wake(self) -> asyncio.Event: ...

    @property
    def is_asked(self) -> bool: ...

    @property
    def needs_numbers(self) -> bool: ...

    def take(self, answered: int) -> NextWork: ...

    def on_rest(self, *, is_all_done: bool) -> None: ...

    def on_batch_done(self, ended: AnsweredBatch) -> None: ...


class CommitLoop:
    """Does what a source asks of the store. `after_batch` is called after each round.

    `claim` is told of logs before they are declared or removed, `announce` afterwards, and what follows of the batch
    waits until all nodes know of it.
    """

    def __init__(
        self,
        source: WorkSource,
        calls: StoreCalls,
        *,
        after_batch: Callable[[], None],
        claim: DeclarationHandler | None,
        announce: DeclarationHandler | None,
    ) -> None:
        self._source, self._calls, self._after_batch = source, calls, after_batch
        self._claim, self._announce = claim, announce
        self._unconfirmed = UnconfirmedBatches(calls.store, calls.session, calls.commit, calls.until_answered)
        self._answered = 0  # the number of the last batch that the store answered

    async def run(self) -> None:
        """Serve until cancelled. Raises Fenced when another node took over."""
        source = self._source
        while True:
            await self._until_work()
            source.wake.clear()
            while source.is_asked or self._unconfirmed.is_oldest_due:
                if self._unconfirmed.is_oldest_due:
                    await self._end_oldest()
                    self._after_batch()
                    continue
                await asyncio.sleep(0)  # what was given out on the way here leaves before the commit is made
                await self._round()
            source.on_rest(is_all_done=not self._unconfirmed)

    async def _until_work(self) -> None:
        """Wait until something is asked, or replicas have confirmed the oldest batch."""
        if not self._unconfirmed:
            await self._source.wake.wait()
            return
        asked = asyncio.ensure_future(self._source.wake.wait())
        try:
            confirmed = map(asyncio.ensure_future, self._unconfirmed.oldest_confirmations)
            await asyncio.wait({asked, *confirmed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()

    async def _round(self) -> None:
        if self._unconfirmed and self._source.needs_numbers:
            await self._end_all()
        work = self._source.take(self._answered)
        if work.batch is not None:
            await self._commit(work.batch, work.unit_count)
        if work.reads:
            await self._end_all()
            await self._ask(work.reads)
        self._after_batch()

    async def _commit(self, batch: CommitBatch, unit_count: int) -> None:
        committed = CommitResult(0)
        if batch.declarations and self._claim is not None:
            await self._calls.until_answered(partial(self._claim, batch.declarations))
        if batch.makes_changes:
            committed = await self._unconfirmed.commit_next(batch)
            self._answered = batch.number
        self._unconfirmed.append(AnsweredBatch(batch, committed, unit_count))
        if batch.declarations:  # what follows waits until all nodes know of them
            await self._end_all()
        while self._unconfirmed.is_oldest_due:
            await self._end_oldest()

    async def _ask(self, reads: Sequence[PendingRead]) -> None:
        answers = await self._calls.until_answered(
            lambda: asyncio.gather(*(each.question(self._calls.store) for each in reads))
        )
        for each, answer in zip(reads, answers, strict=True):
            follow(each.callback, answer)

    async def _end_all(self) -> None:
        while self._unconfirmed:
            await self._end_oldest()

    async def _end_oldest(self) -> None:
        """Report how the oldest batch ended, when replicas have confirmed it."""
        ended = await self._unconfirmed.pop_oldest()
        if ended.batch.declarations and self._announce is not None:
            await self._announce(ended.batch.declarations)
        self._source.on_batch_done(ended)
