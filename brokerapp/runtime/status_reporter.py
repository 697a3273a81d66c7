"""StatusReporter: publishes a node's heartbeat, statistics and trace once a second."""

from __future__ import annotations

import itertools
import json
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from brokerapp.admin.handlers.connection_reports import connection_counts, connection_of
from brokerapp.core.broker import Broker
from brokerapp.errors import StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import NetworkStats
from brokerapp.model.stats_records import NodeStatus
from brokerapp.nodes.ownership.status import ownership_status
from brokerapp.runtime.listeners import Listeners
from brokerapp.store import StoreLimits
from brokerapp.store.memory_limits import server_limit
from brokerapp.store.redis import RedisStore
from brokerapp.system.clock import now_ms
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.recorder import BATCH_EVENTS
from brokerapp.tracing.sampling import EVERYTHING, SamplingRule, sample_batch, sampling_rule
from brokerapp.tracing.schema import CHANGED, START

#: Connections listed in a node's status.
MAX_LISTED_CONNECTIONS = 1_000


class StatusReporter:
    """Publishes a node's heartbeat, statistics and trace once a second.

    `rollbacks`: those of the store so far. Another one ends the node.
    """

    def __init__(
        self,
        broker: Broker,
        store: RedisStore,
        listeners: Listeners,
        limits: StoreLimits,
        snapshot: int,
        rollbacks: Mapping[str, int],
        beat: Callable[[Mapping[str, Any]], Awaitable[None]],
        network: Callable[[], NetworkStats],
    ) -> None:
        self._broker, self._store, self._listeners, self._limits = broker, store, listeners, limits
        self._snapshot, self._beat, self._network = snapshot, beat, network
        self._rollbacks = rollbacks
        self._stats, self._recorder, self._depths = broker.counters, broker.tracer, DepthRecorder(broker.tracer)
        self._started_ms = now_ms()

    async def publish(self) -> None:
        """Write statistics and trace, unless acknowledgements have no disk space."""
        if not self._limits.disk.may_commit:
            return
        await self.write_stats()
        if self._depths.is_due(time.time_ns() // 1000):
            self.record_depths()
        await self.flush_trace()

    async def publish_final(self) -> None:
        """Write what is left when the node stops."""
        self.record_depths(CHANGED)
        await self.flush_trace(everything=True)
        while self._stats.changed:
            await self.write_stats()

    async def send_heartbeat(self) -> None:
        """Write the node's status as a heartbeat, and read how much memory the store's server has left."""
        if not self._limits.disk.may_report:
            return
        memory = await self._store.server.memory()
        self._limits.server = server_limit(memory)
        trace, clients = self._recorder, itertools.islice(self._broker.clients.values(), MAX_LISTED_CONNECTIONS)
        status = NodeStatus(
            node=self._broker.session,
            broker=self._broker.name,
            started_ms=self._started_ms,
            seen_ms=now_ms(),
            address=self._listeners.addresses,
            listeners=[each.to_json() for each in self._listeners.stats()],
            connections=[connection_of(client).to_json() for client in clients],
            connected=connection_counts(self._broker.clients.values()),
            trace={"recorded": trace.recorded, "dropped": trace.dropped, "pending": trace.pending},
            store={
                **memory, "message_limit": self._limits.total, "temp_limit": self._limits.temp or self._limits.total,
                "temp_used": self._broker.commits.temp, "kept": self._broker.settings.keeps_messages,
                "disk": self._limits.disk.to_json(), **self._rollbacks,
            },
            memory={"used": self._broker.quotas.held, "limit": self._broker.quotas.memory},
            network=self._network().to_json(),
            cluster=self._broker.cluster.status(brief=True).to_json() if self._broker.cluster is not None else {},
            homes=ownership_status(self._broker),
            definitions=self._broker.routing.table.definitions.version,
        )  # fmt: skip
        whereabouts = {"host": socket.gethostname(), "pid": os.getpid()}
        await self._beat({**status.to_json(), **whereabouts})

    async def write_stats(self) -> None:
        """Write the statistics of destinations that changed."""
        changed, gone = self._stats.take_changes()
        if not changed and not gone:
            return
        homes = self._broker.placement
        homes.stats_aggregation.forget(gone)
        if homes.other_sessions:  # each node tells of what is at home there
            changed = homes.stats_aggregation.report(changed)
            gone = [each for each in gone if homes.is_local(str(each))]
        for each in changed:
            each.version = self._snapshot + 1
            self._broker.gauges.update(each)
        rows = {
            str(each.destination): json.dumps(homes.stats_aggregation.with_remote_parts(each).to_json())
            for each in changed
        }
        forgotten = self._stats.long_gone(self._snapshot)
        try:
            self._snapshot = await self._store.stats.write(rows, list(map(str, gone)), list(map(str, forgotten)))
        except StoreUnavailable:
            self._stats.give_back(changed, gone)
            raise
        self._stats.forget_gone(forgotten)
        self._stats.told_gone(gone, self._snapshot)

    def record_depths(self, why: str = "") -> None:
        """Record the depths of queues: of all for this reason, else of those that changed."""
        self._depths.forget(log.name for log in self._broker.queues if log.away)
        depths = {log.name: log.depth for log in self._broker.queues if not log.away}
        if why == START:
            self._broker.dispatcher.consumers.on_broker_started()
        self._depths.record(time.time_ns() // 1000, depths, why)

    async def flush_trace(self, everything: bool = False) -> None:
        """Write waiting trace events in batches; a batch the store does not take is dropped and counted."""
        while (batch := self._recorder.take_batch(BATCH_EVENTS)) is not None:
            if self._broker.routing.table.samples_traces:
                batch = sample_batch(batch, self._choice_of)
            try:
                if batch.count:
                    await self._store.write_trace(batch.encode(), batch.count)
            except StoreUnavailable:
                self._recorder.count_lost(batch)
                raise
            if not everything and self._recorder.pending < BATCH_EVENTS:
                return

    def _choice_of(self, original: str) -> SamplingRule:
        """Return the sampling rule for messages sent to this destination."""
        policy = self._broker.routing.table.policy_for(Destination.parse(original))
        return EVERYTHING if policy is None else sampling_rule(policy.record_one_in, policy.record_properties)
