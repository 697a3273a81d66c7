"""Recounts logs whose depth may be wrong, as messages came or went while nobody could count them."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.core.ports import BrokerContext, Destinations
from brokerapp.engine.dispatch.message_log import MessageLog


class DepthRecount:
    """Recounts logs whose depth may be stale after a lost link, once nothing moves there any more."""

    def __init__(self, *, context: BrokerContext, queues: Destinations) -> None:
        self._commits, self._counters, self._queues = context.commits, context.counters, queues
        self._depths: dict[MessageLog, int] = {}  # what each was at the last look

    def mark_stale(self, log: MessageLog) -> None:
        """Recount a log when it is idle."""
        self._depths[log] = -1

    def recount_idle(self) -> None:
        """Count logs where nothing has moved since the last call; called once a second."""
        for log, depth in list(self._depths.items()):
            if log.is_remote or not self._queues.holds(log):
                del self._depths[log]
            elif depth == log.depth:
                self._recount(log)
            else:
                self._depths[log] = log.depth

    def _recount(self, log: MessageLog) -> None:
        before = log.handoff_count, log.depth

        def on_read(depths: Mapping[str, int]) -> None:
            if (log.handoff_count, log.depth) == before:
                log.depth = max(depths[log.name], log.in_flight)
                self._counters.mark_changed(log.counts)
                self._depths.pop(log, None)

        self._commits.read_with(lambda store: store.logs.depths([log.name]), on_read, log.name)
