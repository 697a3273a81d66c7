"""Write recorded events and the depths of queues to the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from brokerapp.core.ports import Destinations, RoutingPort
from brokerapp.errors import StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.tracing.consumers import ConsumerRecorder
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.encoding import BatchCompressor
from brokerapp.tracing.recorder import BATCH_EVENTS, EventBatch, TraceRecorder
from brokerapp.tracing.sampling import EVERYTHING, SamplingRule, sample_batch, sampling_rule
from brokerapp.tracing.schema import START


class TraceWriter:
    """Writes trace events in batches."""

    def __init__(
        self,
        *,
        recorder: TraceRecorder,
        routing: RoutingPort,
        queues: Destinations,
        consumers: ConsumerRecorder,
        write: Callable[[bytes, int], Awaitable[object]],
    ) -> None:
        self._recorder, self._routing, self._queues = recorder, routing, queues
        self._consumers, self._write, self._depths = consumers, write, DepthRecorder(recorder)

    @property
    def has_full_batch(self) -> bool:
        """Return whether as many events wait as a batch holds."""
        return self._recorder.pending >= BATCH_EVENTS

    def record_depths(self, why: str = "") -> None:
        """Record the depths of queues: of all for this reason, else of those that changed."""
        self._depths.forget(log.name for log in self._queues if log.is_remote)
        depths = {log.name: log.depth for log in self._queues if not log.is_remote}
        if why == START:
            self._consumers.on_broker_started()
        self._depths.record(time.time_ns() // 1000, depths, why)

    def record_due_depths(self) -> None:
        """Record the depths of queues that changed if a minute has passed."""
        if self._depths.is_due(time.time_ns() // 1000):
            self.record_depths()

    async def flush(self, *, everything: bool = False) -> None:
        """Write waiting trace events in batches; a batch the store does not take is dropped and counted."""
        while (batch := self._recorder.take_batch(BATCH_EVENTS)) is not None:
            if self._routing.table.samples_traces:
                batch = sample_batch(batch, self._sampling_of)
            try:
                if batch.count:
                    await self._write(await _encoded(batch), batch.count)
            except StoreUnavailable:
                self._recorder.count_lost(batch)
                raise
            if not everything and not self.has_full_batch:
                return

    def _sampling_of(self, original: str) -> SamplingRule:
        """Return the sampling rule for messages sent to this destination."""
        policy = self._routing.table.policy_for(Destination.parse(original))
        return EVERYTHING if policy is None else sampling_rule(policy.record_one_in, policy.record_properties)


async def _encoded(batch: EventBatch) -> bytes:
    """Encode a batch while clients are served: at once it would take milliseconds, which their messages would wait."""
    compressor = BatchCompressor()
    for part in batch.packed_parts():
        compressor.add(part)
        await asyncio.sleep(0)
    return compressor.finish()
