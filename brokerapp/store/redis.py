"""RedisStore: the store on Redis 7 or Valkey 7.2 and later, one server-side function a verb (functions/)."""

from __future__ import annotations

from brokerapp.store import CommitBatch, CommitResult, StoreLimits
from brokerapp.store.client.libraries import FunctionLibraries
from brokerapp.store.commit_codec import commit_call, committed
from brokerapp.store.connectors import ConnectorStore
from brokerapp.store.entries import EntryStore
from brokerapp.store.history_rings import HistoryRings
from brokerapp.store.logs import LogStore
from brokerapp.store.nodes import NodeStore
from brokerapp.store.records import ClusterRecordStore
from brokerapp.store.requests import RequestStore
from brokerapp.store.schedules import ScheduleStore
from brokerapp.store.server.rewriting import AppendOnlyFileControl
from brokerapp.store.stats_snapshots import StatisticsStore
from brokerapp.store.versions import DefinitionStore

#: Trace batches kept when no archiver takes them: at up to 32,768 events each, some 8 million events.
TRACE_BATCHES = 250


class RedisStore(
    ConnectorStore,
    EntryStore,
    FunctionLibraries,
    LogStore,
    ScheduleStore,
    NodeStore,
    StatisticsStore,
    ClusterRecordStore,
    RequestStore,
    AppendOnlyFileControl,
    DefinitionStore,
):
    """See brokerapp.store: all that is asked of a store, each part in a module of its own."""

    def __init__(self, url: str, broker: str) -> None:
        super().__init__(url, broker)
        self.rings = HistoryRings(self.keys, self._do, self._many)

    async def commit(self, session: str, batch: CommitBatch, limits: StoreLimits) -> CommitResult:
        """Do a batch of units, whole or not at all each. Repeating the same batch does nothing more."""
        logs, keys, args = commit_call(self.keys, session, batch, limits)
        done = committed(*await self._commit(keys, args), logs)
        self.continuity.saw(done.changes, done.base + sum([unit.count for unit in batch.units]))
        return done

    async def record(self, batch: bytes, count: int) -> None:
        """Keep a trace batch for the archiver; the oldest go when nobody takes them."""
        await self._do("XADD", self.keys.trace, "MAXLEN", "~", TRACE_BATCHES, "*", "b", batch, "n", count)
