"""Read the statistics of destinations, and what waits in a node's memory for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, Destinations, GaugesPort, Placement, TopicSubscribers

#: The statistics of destinations that other nodes own, as those reported them last.
Reported = Mapping[Destination, DestinationStats]


class DestinationMeasurements:
    """Reads the statistics of destinations."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        subscribers: TopicSubscribers,
        gauges: GaugesPort,
        placement: Placement,
        queues: Destinations,
    ) -> None:
        self._counters, self._subscribers, self._gauges = context.counters, subscribers, gauges
        self._placement, self._queues = placement, queues

    def of(self, destination: Destination, reported: Reported) -> DestinationStats:
        """Return the statistics of a destination; of one that another node owns, as that reported them last."""
        if destination in reported and not self._placement.is_local(str(destination)):
            return reported[destination]
        stats = self._counters.of(destination)
        self._gauges.update(stats)
        return self._placement.stats_aggregation.with_remote_parts(stats)

    def held(self, destination: Destination) -> tuple[int, int]:
        """Return bytes and number of the messages that wait in the node's memory."""
        if destination.is_queue:
            if destination not in self._queues:
                return 0, 0
            log = self._queues.find(destination)
            return log.ready_bytes + log.uncommitted_bytes, len(log.ready)
        waiting = self._subscribers.of(destination)
        return sum(each.pending.bytes for each in waiting), sum(len(each.pending) for each in waiting)
