"""RedisStore: the store on Redis 7 or Valkey 7.2 and later, one server-side function per verb (functions/)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace

from brokerapp.store import CommitBatch, CommitResult, StoreLimits
from brokerapp.store.client.client import StoreClient
from brokerapp.store.client.connection import retrieve_error
from brokerapp.store.client.continuity import FORMATS
from brokerapp.store.client.libraries import FunctionLibraries
from brokerapp.store.commit_codec import decode_result, encode_call
from brokerapp.store.connectors import ConnectorStore
from brokerapp.store.entries import EntryStore
from brokerapp.store.history_rings import HistoryRings
from brokerapp.store.logs import LogStore
from brokerapp.store.nodes import NodeStore
from brokerapp.store.prepared_branches import PreparedBranchStore
from brokerapp.store.records import ClusterRecordStore
from brokerapp.store.requests import RequestStore
from brokerapp.store.schedules import ScheduleStore
from brokerapp.store.server.server_status import ServerStatus
from brokerapp.store.stats_snapshots import StatisticsStore
from brokerapp.store.versions import DefinitionStore
from brokerapp.system.formats import SupportedFormats

#: Trace batches kept when no archiver takes them: at up to 32,768 events each, some 8 million events.
TRACE_BATCHES = 250


class RedisStore:
    """Store of one broker, or one of its shards: connections to its server, and a named part for each kind of data.

    Every verb is atomic. Belongs to the event loop it is first used on. `replicas`, `formats`: see StoreClient.
    """

    def __init__(
        self, url: str, broker: str, replicas: int = 0, shard: int = 0, formats: SupportedFormats = FORMATS
    ) -> None:
        self.client = client = StoreClient(url, broker, replicas, shard, formats)
        self.url, self.keys = url, client.keys
        self.entries = EntryStore(client)  #: messages of logs, read
        self.logs = LogStore(client)  #: which logs there are, their attributes and sizes
        self.schedules = ScheduleStore(client)  #: scheduled jobs, and entries that expire
        self.branches = PreparedBranchStore(client)  #: branches of transactions that are prepared
        self.nodes = NodeStore(client)  #: members of the broker and their heartbeats
        self.requests = RequestStore(client)  #: what operators ask of nodes, and the answers
        self.definitions = DefinitionStore(client)  #: definitions by version
        self.connectors = ConnectorStore(client)  #: network connectors
        self.cluster_record = ClusterRecordStore(client)  #: copy of the cluster's record
        self.stats = StatisticsStore(client)  #: statistics of destinations
        self.rings = HistoryRings(client)  #: history of destinations, and leases
        self.server = ServerStatus(client)  #: memory, durability and append-only file of the server
        self.libraries = FunctionLibraries(client)  #: function libraries on the server

    async def open(self) -> None:
        """Connect and load the function library where it is missing. Raises what the handshake raises."""
        await self.client.execute("PING")

    async def close(self) -> None:
        """Close all connections to the server."""
        await self.client.close()

    async def commit(self, session: str, batch: CommitBatch, limits: StoreLimits) -> CommitResult:
        """Commit a batch of writes, each whole or not at all. Repeating the last batch has no further effect."""
        logs, keys, args = encode_call(self.keys, session, batch, limits)
        answer, confirmation = await self.client.call_commit(keys, args, may_be_behind=batch.follows_unconfirmed)
        result = decode_result(logs, *answer)
        reached = result.change_count, result.base_seq + sum([unit.count for unit in batch.writes])
        if confirmation is None:
            self.client.continuity.advance(*reached)
            return result
        confirmed = asyncio.ensure_future(self._until_confirmed(confirmation, *reached))
        confirmed.add_done_callback(retrieve_error)  # nobody waits for it when the batch is committed again
        return replace(result, confirmation=confirmed)

    async def _until_confirmed(self, confirmation: Awaitable[None], changes: int, seq: int) -> None:
        await confirmation
        self.client.continuity.advance(changes, seq)

    @property
    def payload_base(self) -> int:
        """Return what is added to the number of a message for that of its payload."""
        return self.keys.payload_base

    async def last_batch(self, session: str) -> int:
        """Return the number of the last batch of this session that the store has; 0: none."""
        return int(await self.client.execute("HGET", self.keys.state, f"batch:{session}") or 0)

    async def write_trace(self, batch: bytes, count: int) -> None:
        """Add a trace batch for the archiver; the oldest are dropped when no archiver takes them."""
        await self.client.execute("XADD", self.keys.trace, "MAXLEN", "~", TRACE_BATCHES, "*", "b", batch, "n", count)

    def signals(self) -> AsyncIterator[str]:
        """Yield `subscribed`, then each signal as it is published; ends with StoreUnavailable.

        Signals: `definitions`, `stats VERSION`, `nodes`, `connectors`, `shards`.
        """
        return self.client.subscribe(self.keys.signals)
