"""Update counters whose values are kept elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.model.stats_records import DestinationStats

if TYPE_CHECKING:
    from brokerapp.core.ports import Destinations, DurablesPort, TopicSubscribers


class DestinationGauges:
    """Reads depths, consumers and messages in flight."""

    def __init__(self, *, subscribers: TopicSubscribers, durables: DurablesPort, queues: Destinations) -> None:
        self._subscribers, self._durables, self._queues = subscribers, durables, queues

    def update(self, stats: DestinationStats) -> None:
        """Bring the gauges of a destination up to date."""
        destination = stats.destination
        if not destination.is_queue:
            online = sum(len(each.log.consumers) for each in self._durables.of_topic(destination))
            stats.ConsumerCount = len(self._subscribers.of(destination)) + online
        elif destination in self._queues:  # a composite that only forwards has numbers, but no messages of its own
            log = self._queues.find(destination)
            stats.QueueSize, stats.InFlightCount, stats.Paused = log.depth, log.in_flight, log.paused
