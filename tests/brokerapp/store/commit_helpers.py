"""Commit to the store and read its content, for tests."""

from __future__ import annotations

import itertools

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.message import Message
from brokerapp.store import CommitBatch, PendingWrite, StoreLimits

UNLIMITED = StoreLimits()
#: Bytes an entry counts beside its message, see ENTRY_BYTES in accounting.lua.
ENTRY = 64


def message(body=b"x", expires=0, persistent=True):
    head = b"message-id:ID\\ca\\c1\nk:v\n"
    return Message("ID:a:1", head, body, persistent=persistent, priority=4, expires=expires, born_us=17)


def append(*queues, body=b"x", original="", shown="", expires=0, persistent=True):
    """One message with a copy for each queue."""
    return message(body, expires, persistent).stored(), [(queue, original, shown) for queue in queues]


class CommittingSession:
    """Commits batches and numbers them as a node does."""

    def __init__(self, store, name="me"):
        self.store, self.name = store, name
        self._numbers = itertools.count(1)

    async def commit(self, *units, limits=UNLIMITED, **batch):
        return await self.store.commit(self.name, CommitBatch(next(self._numbers), list(units), **batch), limits)

    async def append(self, *queues, **message):
        """Append one message and return its sequence number."""
        return (await self.commit(PendingWrite([append(*queues, **message)]))).base_seq + 1

    async def settle(self, *entries):
        await self.commit(PendingWrite(settles=entries))


async def entries(store, log, after=0, count=1000):
    return [
        LogEntry(log, each.seq, each.message, each.payload, each.size, each.original, each.shown)
        for each in await store.entries.read(log, after, count)
    ]


async def bodies(store, log):
    return [each.message.body for each in await store.entries.read(log, 0, 1000)]


async def payloads(store):
    """Numbers of the payloads that are kept, with their references."""
    found = await store.client.execute("KEYS", store.keys.payload_prefix + "*")
    return {int(key.rsplit(b":", 1)[1]): int(await store.client.execute("HGET", key, "c")) for key in found}


async def used(store):
    """Bytes accounted for: in all, and by log."""
    total = await store.client.execute("HGET", store.keys.state, "bytes")
    rows = await store.client.execute("HVALS", store.keys.used)
    return int(total or 0), sum(map(int, rows))
