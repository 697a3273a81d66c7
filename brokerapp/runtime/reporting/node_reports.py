"""Write what a node reports once a second: its status, the statistics of its destinations, and its trace events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from brokerapp.errors import StoreUnavailable
from brokerapp.runtime.reporting.heartbeat import NodeHeartbeat
from brokerapp.runtime.reporting.statistics_writer import StatisticsWriter
from brokerapp.runtime.reporting.trace_writer import TraceWriter
from brokerapp.store import StoreLimits
from brokerapp.tracing.schema import CHANGED

#: Seconds between snapshots of the numbers, heart-beats of the node, and flushes of the trace.
TICK_SECONDS = 1.0
#: Seconds between looks for a full batch of trace events: at full load almost as many come within a second as may wait.
FULL_BATCH_SECONDS = 0.2


class NodeReports:
    """Writes the reports of a node, the status at least once in `period` seconds."""

    def __init__(
        self,
        *,
        heartbeat: NodeHeartbeat,
        statistics: StatisticsWriter,
        trace: TraceWriter,
        limits: StoreLimits,
        period: float,
        recount_idle: Callable[[], None],
    ) -> None:
        self.heartbeat, self._statistics, self.trace = heartbeat, statistics, trace
        self._limits, self._period, self._recount_idle = limits, period, recount_idle
        self._lock = asyncio.Lock()  # what was taken to be written is written before the node ends

    async def run(self) -> None:
        """Write all reports periodically until cancelled. Raises StoreUnavailable."""
        while True:
            await asyncio.sleep(min(TICK_SECONDS, self._period))
            self._recount_idle()
            await self.heartbeat.send()
            async with self._lock:
                if self._limits.disk.may_commit:  # else acknowledgements have no disk space
                    await self._statistics.write()
                    self.trace.record_due_depths()
                    await self.trace.flush()

    async def run_full_batches(self) -> None:
        """Write full batches of trace events as they come, until cancelled. Raises StoreUnavailable."""
        while True:
            await asyncio.sleep(FULL_BATCH_SECONDS)
            if self.trace.has_full_batch:
                async with self._lock:
                    if self._limits.disk.may_commit:
                        await self.trace.flush()

    async def send_status(self) -> None:
        """Write the status of the node now if the store answers; else the next heartbeat does so."""
        with contextlib.suppress(StoreUnavailable):
            await self.heartbeat.send()

    async def finish(self) -> None:
        """Write all that is left if the store answers. The lock is kept: nothing is taken to be written after that."""
        await self._lock.acquire()
        with contextlib.suppress(StoreUnavailable):
            self.trace.record_depths(CHANGED)
            await self.trace.flush(everything=True)
            await self._statistics.write_all()
