"""Recounts logs whose depth may be wrong, as messages came or went while nobody could count them.

The store is asked when nothing moves there any more. A part of OwnershipCoordinator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_log import MessageLog

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker


class DepthRecount:
    """Recounts queues whose depth may be stale after a lost link."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._depths: dict[MessageLog, int] = {}  # what each was when it was looked at last

    def mark_stale(self, log: MessageLog) -> None:
        """The depth of this log may be wrong."""
        self._depths[log] = -1

    def recount_idle(self) -> None:
        """Asked once a second: count where nothing has moved since."""
        for log, depth in list(self._depths.items()):
            if log.is_remote or not self._broker.queues.holds(log):
                del self._depths[log]
            elif depth == log.depth:
                self._recount(log)
            else:
                self._depths[log] = log.depth

    def _recount(self, log: MessageLog) -> None:
        tenure, depth = log.handoff_count, log.depth

        def found(depths: Mapping[str, int]) -> None:
            if (log.handoff_count, log.depth) == (tenure, depth):
                log.depth = max(depths[log.name], log.in_flight)
                self._broker.counters.mark_changed(log.counts)
                self._depths.pop(log, None)

        self._broker.commits.read_with(lambda store: store.logs.depths([log.name]), found)
