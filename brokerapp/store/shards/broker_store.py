"""BrokerStore: the store of a broker, which is one, or several shards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from brokerapp.store import CommitBatch, CommitResult, StoreLimits
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.family_moves import FamilyMoves
from brokerapp.store.shards.members import ShardedMembers
from brokerapp.store.shards.parts import ShardedEntries, ShardedLogs, ShardedSchedules
from brokerapp.store.shards.router import ANSWER_SECONDS, ShardRouter, answered


class BrokerStore:
    """Store of one broker: as RedisStore, whatever shards it has. The URL is that of shard 0, which knows the others.

    `entries`, `logs` and `schedules` find the shard of each log, `nodes` cares for the members of all; everything else
    is in shard 0.
    """

    def __init__(self, url: str, broker: str, replicas: int = 0) -> None:
        self.main = main = RedisStore(url, broker, replicas)
        self.shards = shards = ShardRouter(main, broker, replicas)
        self.shard_record = shards.record_store  #: which shards there are, and where logs are
        self.entries, self.logs, self.schedules = ShardedEntries(shards), ShardedLogs(shards), ShardedSchedules(shards)
        self.nodes, self.moves = ShardedMembers(shards), FamilyMoves(shards)
        self.url, self.client, self.keys = main.url, main.client, main.keys
        self.branches, self.requests, self.definitions = main.branches, main.requests, main.definitions
        self.connectors, self.cluster_record = main.connectors, main.cluster_record
        self.stats, self.rings, self.server, self.libraries = main.stats, main.rings, main.server, main.libraries

    async def open(self) -> None:
        """Connect, and find the shards. Raises what the handshake raises, and StoreUnavailable where one is silent."""
        await self.main.open()
        await self.shards.refresh()
        others = self.shards.others()
        await asyncio.gather(*(answered(store, store.open(), ANSWER_SECONDS) for store in others))

    async def close(self) -> None:
        """Close all connections."""
        for store in self.shards.stores.values():
            await store.close()

    async def commit(self, session: str, batch: CommitBatch, limits: StoreLimits) -> CommitResult:
        """Commit a batch to shard 0; see RedisStore."""
        return await self.main.commit(session, batch, limits)

    @property
    def payload_base(self) -> int:
        """Return what is added to the number of a message for that of its payload."""
        return self.keys.payload_base

    async def last_batch(self, session: str) -> int:
        """Return the number of the last batch of this session that shard 0 has; see RedisStore."""
        return await self.main.last_batch(session)

    async def write_trace(self, batch: bytes, count: int) -> None:
        """Add a trace batch for the archiver; see RedisStore."""
        await self.main.write_trace(batch, count)

    def signals(self) -> AsyncIterator[str]:
        """Yield `subscribed`, then each signal as it is published; see RedisStore."""
        return self.main.signals()
