"""Remove destinations from all parts that know them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        CreationPort,
        ProducersPort,
        QueueLifecycle,
        RetainedPort,
        RoutingPort,
        TopicSubscribers,
    )


class DestinationRemoval:
    """Removes empty queues and topics without subscribers."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        creation: CreationPort,
        subscribers: TopicSubscribers,
        producers: ProducersPort,
        queues: QueueLifecycle,
        retained: RetainedPort,
        routing: RoutingPort,
    ) -> None:
        self._counters, self._creation, self._producers = context.counters, creation, producers
        self._queues, self._retained, self._routing = queues, retained, routing
        self._subscribers = subscribers

    def delete(self, log: MessageLog) -> None:
        """Remove an empty queue that has no consumers and nothing on its way."""
        self._producers.forget(log.destination)
        self._queues.delete(log)

    def delete_topics(self, topics: Collection[Destination]) -> None:
        """Remove topics that have no subscribers."""
        for topic in topics:
            self._creation.forget(topic)
            self._retained.forget(topic)
            self._counters.remove(topic)
        self._producers.forget(*topics)

    def delete_mirror(self, queue: Destination) -> None:
        """Remove the topic that gets copies of what is sent to a queue, unless it has subscribers."""
        mirror = self._routing.table.mirror_of(queue)
        if mirror is not None and not self._subscribers.of(mirror):
            self.delete_topics([mirror])
