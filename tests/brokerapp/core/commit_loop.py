"""A group commit that runs, with a store that remembers its batches."""

import asyncio
from contextlib import asynccontextmanager

from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.engine.entries.log_entry import UNCOMMITTED, LogEntry
from brokerapp.model.message import Message
from brokerapp.store import CommitResult, PendingWrite, StoreLimits

LOG = "queue://a"


class Store:
    """Remembers what each batch appended and settled; answers when it may."""

    def __init__(self):
        self.batches, self.last, self.open = [], 0, asyncio.Event()
        self.writes, self.declared = [], []  # of each batch
        self.open.set()

    async def commit(self, _session, batch, _limits):
        await self.open.wait()
        settled = [entry.seq for unit in batch.writes for entry in unit.settles]
        appended = sum(unit.count for _, unit in batch.numbered_writes)
        self.batches.append((appended, settled))
        self.writes.append(batch.writes)
        self.declared.append(batch.declarations)
        base, self.last = self.last, self.last + appended
        return CommitResult(base, used_bytes=100 * self.last, log_bytes={LOG: 10 * self.last})

    async def settled(self):
        return [seq for _, settled in self.batches for seq in settled]


@asynccontextmanager
async def running(**options):
    store = Store()
    committer = GroupCommit(store, "s", StoreLimits(), lambda: None, **options)
    task = asyncio.create_task(committer.run())
    try:
        async with asyncio.timeout(10):
            yield store, committer
    finally:
        task.cancel()


def given():
    return LogEntry(LOG, UNCOMMITTED, Message("ID:1", b"", b""), size=10)


class EarlyWrite(PendingWrite):
    """A write whose message consumers were given early."""

    __slots__ = ("given",)


def bringing(entry, then=lambda: None, early=False):
    """The write that brings it to the store."""

    def done(seq, refused):
        entry.seq = 0 if refused else seq
        then()

    write = EarlyWrite([(b"x", [(LOG, "", "")])], callback=done)
    write.given = {LOG: [entry]} if early else {}
    return write
