"""Test that batches are done in their order, each once, when replicas have them, whatever primary takes over."""

from __future__ import annotations

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.core.commits import store_calls
from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.errors import StoreUnavailable
from brokerapp.store import CommitResult, PendingWrite, StoreLimits
from brokerapp.store.client.connection import retrieve_error

UNITS = 40


class ReplicatedStore:
    """A primary and what its replicas have: the first so many of its batches. Faults come by chance.

    A failover leaves what replicas have. A batch is refused if the one before it is missing, as by the real store.
    """

    def __init__(self, random: Random, faults: int) -> None:
        self._random, self._faults = random, faults
        self.batches: list[tuple[int, list[str], CommitResult]] = []  # of the primary
        self.confirmed = 0  #: batches that replicas have
        self.lost_after_confirmation = False
        self._life = 0

    def _may_fail(self) -> None:
        if self._faults and self._random.random() < 0.3:
            self._faults -= 1
            # Replicas may have more than was confirmed, never less.
            self.confirmed = self._random.randint(self.confirmed, len(self.batches))
            del self.batches[self.confirmed :]
            self._life += 1
            raise StoreUnavailable("the primary is gone")

    async def commit(self, _session, batch, _limits):
        await self._pause()
        self._may_fail()
        last = await self.last_batch(_session)
        if last != batch.number:
            if last != batch.previous_batch:
                self.lost_after_confirmation |= not batch.follows_unconfirmed
                raise StoreUnavailable("it lacks the batch before")
            base = self.batches[-1][2].base_seq + len(self.batches[-1][1]) if self.batches else 0
            bodies = [each.decode() for unit in batch.writes for stored, _ in unit.runs for each in stored]
            self.batches.append((batch.number, bodies, CommitResult(base)))
            if self._faults and self._random.random() < 0.3:  # its answer is lost, and whether it was done is not known
                self._faults -= 1
                if self._random.random() < 0.5:
                    raise StoreUnavailable("the connection is gone")
                self._may_fail()
        done, life = len(self.batches), self._life
        base = self.batches[-1][2].base_seq
        confirmation = asyncio.ensure_future(self._confirm(done, life))
        confirmation.add_done_callback(retrieve_error)
        return CommitResult(base, confirmation=confirmation)

    async def _confirm(self, done: int, life: int) -> None:
        await self._pause()
        self._may_fail()
        if life != self._life:
            raise StoreUnavailable("the connection is gone")
        self.confirmed = max(self.confirmed, done)

    async def last_batch(self, _session):
        return self.batches[-1][0] if self.batches else 0

    async def _pause(self) -> None:
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)


@settings(max_examples=400)
@given(st.integers(0, 2**32), st.integers(0, 12))
def test_each_write_is_done_once_in_order_and_not_before_replicas_have_it(seed, faults):
    random = Random(seed)
    store = ReplicatedStore(random, faults)
    done: list[tuple[str, int]] = []
    early: list[str] = []  # what was done before replicas had it

    def finished(body):
        def note(seq, refused):
            done.append((body, 0 if refused else seq))
            if body not in [each for _, bodies, _ in store.batches[: store.confirmed] for each in bodies]:
                early.append(body)

        return note

    async def run() -> None:
        committer = GroupCommit(store, "s", StoreLimits(), lambda: None)
        running = asyncio.create_task(committer.run())
        try:
            async with asyncio.timeout(30):
                for number in range(UNITS):
                    body = f"m{number}"
                    committer.submit(PendingWrite([(body.encode(), [("queue://a", "", "")])], callback=finished(body)))
                    for _ in range(random.randrange(6)):
                        await asyncio.sleep(0)
                drained = asyncio.ensure_future(committer.drain())
                await asyncio.wait({drained, running}, return_when=asyncio.FIRST_COMPLETED)
                assert drained.done(), running.exception()
        finally:
            running.cancel()

    pause, store_calls.RETRY_SECONDS = store_calls.RETRY_SECONDS, 0
    try:
        asyncio.run(run())
    finally:
        store_calls.RETRY_SECONDS = pause
    stored = [each for _, bodies, _ in store.batches for each in bodies]
    assert [body for body, _ in done] == stored == [f"m{number}" for number in range(UNITS)]
    assert [seq for _, seq in done] == list(range(1, UNITS + 1))
    assert early == []
    assert not store.lost_after_confirmation
