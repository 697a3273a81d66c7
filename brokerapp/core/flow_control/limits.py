"""Return the limits of each destination by its policy, for the store's writer and flow control.

A queue or named subscription is bounded in the store. A topic stores nothing: what waits in memory for the slowest of
its subscribers is what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.policy.send_timeout import ByteLimit, memory_limit_of, store_limit_of
from brokerapp.errors import InvalidDestination
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.store import SHARED, STORE, TEMP

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DurablesPort, RoutingPort, TopicSubscribers

#: Bytes a message that waits for a subscriber of a topic counts beside its body, so that many empty ones are many.
#: ActiveMQ counts as much for what is no body.
MESSAGE_BYTES = 1024
#: Logs whose bounds are remembered: their names come from clients.
MAX_REMEMBERED = 100_000


class DestinationLimits:
    """Reads the limits of destinations from the policies in force. A part of the broker."""

    def __init__(
        self, *, context: BrokerContext, subscribers: TopicSubscribers, durables: DurablesPort, routing: RoutingPort
    ) -> None:
        self._commits = context.commits
        self._subscribers, self._durables, self._routing = subscribers, durables, routing
        self.of_topics = self.of_logs = False  #: whether some topic, some log is bounded: else nobody needs to ask
        self._of_logs: dict[str, int] = {}  # as far as they were asked
        self.refresh()

    def refresh(self) -> None:
        """Other policies are in force."""
        policies = self._routing.table.definitions.policies
        self._of_logs.clear()
        self.of_logs = any(store_limit_of(each).bytes for each in policies)
        self.of_topics = any(
            each.destination.kind is DestinationKind.TOPIC and memory_limit_of(each).bytes for each in policies
        )

    def policy_of(self, name: str) -> PolicyEntry | None:
        """The policy of a log or topic; that of a named subscription is its first topic's. An odd name has none."""
        try:
            destination = Destination.parse(name)
        except InvalidDestination:  # whoever asks is in the middle of a batch, and is not to fail for a name
            return None
        if destination.kind is DestinationKind.SUBSCRIPTION:
            durable = self._durables.known(name)
            if durable is None:
                return None
            destination = durable.identity.topics[0]
        return self._routing.table.policy_for(destination)

    def of_log(self, name: str) -> int:
        """Bytes a log may hold in the store; 0: no limit of its own. Asked for every log of every batch."""
        if not self._routing.table.definitions.policies:
            return 0
        known = self._of_logs.get(name)
        if known is None:
            if len(self._of_logs) >= MAX_REMEMBERED:
                self._of_logs.clear()
            known = self._of_logs[name] = store_limit_of(self.policy_of(name)).bytes
        return known

    @property
    def is_disk_low(self) -> bool:
        """Whether the store accepts no messages for want of disk space."""
        return self._commits.limits.is_disk_low

    def is_full(self, topic: Destination) -> bool:
        """Whether one of its subscribers has as much waiting as the topic may hold."""
        bound = memory_limit_of(self._routing.table.policy_for(topic)).bytes
        return bound > 0 and self._waiting(topic) >= bound

    def room(self, place: str) -> float:
        """Bytes that may still go to a topic; to all else as much as the store takes: nothing where its disk is low."""
        if place == STORE and self.is_disk_low:
            return 0
        destination = None if place in SHARED else Destination.parse(place)
        if destination is None or destination.is_queue:
            return float("inf")
        bound = memory_limit_of(self._routing.table.policy_for(destination)).bytes
        return bound - self._waiting(destination) if bound else float("inf")

    def full_topic(self, placed: Sequence[RoutedBatch]) -> str | None:
        """The first topic on the way of these messages that is full."""
        topics = (copy.destination for each in placed for copy in each.route.topics)
        return next((str(topic) for topic in topics if self.is_full(topic)), None)

    def _waiting(self, topic: Destination) -> int:
        waiting = (each.pending.bytes + MESSAGE_BYTES * len(each.pending) for each in self._subscribers.of(topic))
        return max(waiting, default=0)

    def describe(self, place: str) -> str:
        """That a place is full, for whoever is told so."""
        if place == STORE:
            return self._commits.limits.disk.shortage if self.is_disk_low else "the broker's store is full"
        if place == TEMP:
            limit = self._commits.limits.temp
            return f"the broker's memory for non-persistent messages is full (tempUsage {limit} bytes)"
        bound = self._bound(place)
        return f"{place} is full ({bound.name} {bound.bytes} bytes)"

    def _bound(self, place: str) -> ByteLimit:
        is_queue = Destination.parse(place).is_queue
        return (store_limit_of if is_queue else memory_limit_of)(self.policy_of(place))
