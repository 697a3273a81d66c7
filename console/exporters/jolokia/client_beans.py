"""Combine connections and durable subscriptions into one bean for each consumer. Pure.

A durable subscription is a consumer whether somebody is there for it or not. STOMP's producers have no destination of
their own, so that each connection is one that names its destination with every message, as in ActiveMQ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import ConsumerStats, SubscriptionStats
from console.destinations.clients.clients import ConnectionView, destinations_of

#: What ActiveMQ says in place of what is not known.
NOT_SET = "NOTSET"


@dataclass(frozen=True, slots=True)
class ConsumerBean:
    """Represent a subscription of a connection (`peer`, `stats`), a durable one (`kept`), or both."""

    destinations: tuple[Destination, ...]
    peer: ConnectionView | None = None
    stats: ConsumerStats | None = None
    kept: SubscriptionStats | None = None

    @property
    def kind(self) -> DestinationKind:
        """Return the kind of the first destination."""
        return self.destinations[0].kind if self.destinations else DestinationKind.QUEUE

    @property
    def name(self) -> str:
        """Return the names of the destinations."""
        return ",".join(each.name for each in self.destinations)

    @property
    def client_id(self) -> str:
        """Return the client id of the subscriber."""
        return self.kept.subscription.client_id if self.kept else self.peer.name

    @property
    def id(self) -> str:
        """Return the id of the subscription within its client."""
        if self.kept:
            return f"Durable({self.client_id}_{self.kept.subscription.name})"
        return f"{self.stats.connection}:{self.stats.id}"

    @property
    def bean_kind(self) -> str:
        """Return the kind of the bean."""
        if self.kept:
            return "durable"
        return "topic-consumer" if self.kind in (DestinationKind.TOPIC, DestinationKind.TEMP_TOPIC) else "consumer"

    @property
    def selector(self) -> str | None:
        """Return the selector; None for all messages."""
        return (self.kept.subscription.condition if self.kept else self.stats.selector) or None

    @property
    def pending(self) -> int:
        """Return the number of messages to deliver; for a queue, those of the whole queue."""
        return self.kept.numbers.QueueSize if self.kept else self.stats.pending

    @property
    def in_flight(self) -> int:
        """Return the number of dispatched and unacknowledged messages."""
        return self.kept.numbers.InFlightCount if self.kept else self.stats.in_flight

    @property
    def dispatched(self) -> int:
        """Return the number of dispatched messages."""
        return self.kept.numbers.DispatchCount if self.kept else self.stats.delivered

    @property
    def enqueued(self) -> int:
        """Return the number of messages enqueued for the subscription."""
        return self.kept.numbers.EnqueueCount if self.kept else self.stats.delivered + self.stats.pending

    @property
    def dequeued(self) -> int:
        """Return the number of acknowledged messages."""
        return self.kept.numbers.DequeueCount if self.kept else self.stats.acked

    @property
    def is_active(self) -> bool:
        """Return whether the subscription has a consumer."""
        return self.peer is not None or self.kept.numbers.ConsumerCount > 0

    def has(self, field: str, default: object) -> object:
        """Return a field that the connection reports; the default while the subscription is offline."""
        return getattr(self.stats, field) if self.stats else default


def consumer_beans(peers: Iterable[ConnectionView], durables: Iterable[SubscriptionStats]) -> list[ConsumerBean]:
    """Return consumers of connections, then offline durable subscriptions in their order."""
    durables = list(durables)
    kept = {str(each.numbers.destination) for each in durables}
    there: dict[str, tuple[ConnectionView, ConsumerStats]] = {}
    found = []
    for peer in peers:
        for stats in peer.consumers:
            if stats.log in kept:
                there.setdefault(stats.log, (peer, stats))
            else:
                found.append(ConsumerBean(tuple(destinations_of(stats)), peer, stats))
    for each in durables:
        peer, stats = there.get(str(each.numbers.destination), (None, None))
        found.append(ConsumerBean(each.subscription.topics, peer, stats, each))
    return found


def consumers_by_destination(found: Iterable[ConsumerBean]) -> Mapping[Destination, list[ConsumerBean]]:
    """Map each destination or pattern to its consumers."""
    by_destination: dict[Destination, list[ConsumerBean]] = {}
    for each in found:
        for destination in each.destinations:
            by_destination.setdefault(destination, []).append(each)
    return by_destination
