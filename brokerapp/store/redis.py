"""RedisStore: the store on Redis 7 or Valkey 7.2 and later, one server-side function a verb (functions/)."""

from __future__ import annotations

from brokerapp.store import Batch, Committed, Limits
from brokerapp.store.client.libraries import Libraries
from brokerapp.store.commit_codec import commit_call, committed
from brokerapp.store.connectors import Connectors
from brokerapp.store.entries import Entries
from brokerapp.store.history_rings import Rings
from brokerapp.store.logs import Logs
from brokerapp.store.nodes import Nodes
from brokerapp.store.records import Records
from brokerapp.store.requests import Requests
from brokerapp.store.schedules import Moments
from brokerapp.store.server.rewriting import Rewriting
from brokerapp.store.stats_snapshots import Numbers
from brokerapp.store.versions import Versions

#: Trace batches kept when no archiver takes them: at up to 32,768 events each, some 8 million events.
TRACE_BATCHES = 250


class RedisStore(Connectors, Entries, Libraries, Logs, Moments, Nodes, Numbers, Records, Requests, Rewriting, Versions):
    """See brokerapp.store: all that is asked of a store, each part in a module of its own."""

    def __init__(self, url: str, broker: str) -> None:
        super().__init__(url, broker)
        self.rings = Rings(self.keys, self._do, self._many)

    async def commit(self, session: str, batch: Batch, limits: Limits) -> Committed:
        """Do a batch of units, whole or not at all each. Repeating the same batch does nothing more."""
        logs, keys, args = commit_call(self.keys, session, batch, limits)
        done = committed(*await self._commit(keys, args), logs)
        self.continuity.saw(done.changes, done.base + sum([unit.count for unit in batch.units]))
        return done

    async def record(self, batch: bytes, count: int) -> None:
        """Keep a trace batch for the archiver; the oldest go when nobody takes them."""
        await self._do("XADD", self.keys.trace, "MAXLEN", "~", TRACE_BATCHES, "*", "b", batch, "n", count)
