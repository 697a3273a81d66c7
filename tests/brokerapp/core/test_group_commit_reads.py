"""Test that reads see everything that was submitted before them."""

import asyncio

from brokerapp.core.commits.batch_limits import MAX_UNITS
from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.store import CommitResult, PendingWrite, StoreLimits


class Store:
    """Takes everything, and remembers how many messages it has."""

    def __init__(self):
        self.stored = 0
        self.entries = self

    async def commit(self, _session, batch, _limits):
        await asyncio.sleep(0)
        base = self.stored
        self.stored += sum(unit.count for _, unit in batch.numbered_writes)
        return CommitResult(base)

    async def read(self, _log, _after, _count):
        return [self.stored]


def message():
    return PendingWrite([(b"x", [("queue://a", "", "")])])


async def test_a_read_is_answered_while_more_comes_than_one_batch_takes():
    store, answers = Store(), []

    def more(*_):
        if not answers and store.stored < 100 * MAX_UNITS:
            for _ in range(MAX_UNITS):
                committer.submit(message())

    committer = GroupCommit(store, "s", StoreLimits(), lambda: None, on_batch=more)
    running = asyncio.create_task(committer.run())
    for _ in range(3 * MAX_UNITS):
        committer.submit(message())
    committer.submit(PendingWrite(callback=more))
    committer.read("queue://a", 0, 1, answers.extend)
    async with asyncio.timeout(30):
        while not answers:
            await asyncio.sleep(0)
    running.cancel()
    assert 3 * MAX_UNITS <= answers[0] < 20 * MAX_UNITS


async def test_a_fault_with_one_unit_keeps_nobody_else_waiting():
    heard = []
    committer = GroupCommit(Store(), "s", StoreLimits(), lambda: None)
    running = asyncio.create_task(committer.run())
    committer.submit(PendingWrite(callback=lambda *_: 1 / 0))
    committer.submit(PendingWrite(callback=lambda *_: heard.append("unit")))
    committer.read("queue://a", 0, 1, lambda _: 1 / 0)
    committer.read("queue://a", 0, 1, lambda _: heard.append("read"))
    async with asyncio.timeout(30):
        while len(heard) < 2:
            await asyncio.sleep(0)
    assert not running.done()
    running.cancel()
