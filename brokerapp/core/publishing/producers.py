"""Track which clients send to which destinations, for statistics, advisories and temporary destinations.

A client is a producer from its first message to a destination until it leaves, or sends to very many others. A client
that names its connection opens and closes its producers itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.errors import LimitExceeded
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, BrokerEvents, RoutingPort, TemporariesPort

#: Destinations that one client is known to send to; the numbers of producers leave out those beyond.
MAX_PRODUCING_TO = 10_000
#: Producers that one client may have open: a bound on what a peer can make us keep.
MAX_PRODUCERS = 100_000


class ProducerRegistry:
    """Knows which clients send to which destinations. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        clients: Mapping[str, Client],
        events: BrokerEvents,
        routing: RoutingPort,
        temporaries: TemporariesPort,
    ) -> None:
        self._counters = context.counters
        self._clients, self._events, self._routing = clients, events, routing
        self._temporaries = temporaries

    def began(self, client: Client, destination: Destination) -> None:
        """A client begins to send there; where it sends to many places one of the others is forgotten."""
        if len(client.producing_to) >= MAX_PRODUCING_TO:
            self._ended(client, client.producing_to.pop())
        client.producing_to.add(destination)
        if not client.connection_id:
            self._started(client, destination)

    def opened(self, client: Client, producer: str, destinations: Sequence[Destination]) -> None:
        """A client opens a producer of this id. Raises LimitExceeded."""
        if producer in client.producers:
            return
        if len(client.producers) >= MAX_PRODUCERS:
            raise LimitExceeded(f"a connection has at most {MAX_PRODUCERS} producers")
        client.producers[producer] = list(destinations)
        for each in destinations:
            self._started(client, each, producer)

    def closed(self, client: Client, producer: str) -> None:
        """A client closes a producer."""
        for each in client.producers.pop(producer, ()):
            self._stopped(client, each, producer)

    def left(self, client: Client) -> None:
        """A client sends nowhere any more."""
        for producer in list(client.producers):
            self.closed(client, producer)
        while client.producing_to:
            self._ended(client, client.producing_to.pop())  # it was not deleted: see `forget`

    def _ended(self, client: Client, destination: Destination) -> None:
        self._temporaries.remove_producer(client, destination)
        if not client.connection_id:
            self._stopped(client, destination)

    def _started(self, client: Client, destination: Destination, producer: str = "") -> None:
        self._count(destination, 1)
        self._events.producer_started(client, destination, producer)

    def _stopped(self, client: Client, destination: Destination, producer: str = "") -> None:
        self._count(destination, -1)
        self._events.producer_stopped(client, destination, producer)

    def _count(self, destination: Destination, change: int) -> None:
        stats = self._counters.of(destination.physical)
        stats.ProducerCount += change
        self._counters.mark_changed(stats)

    def forget(self, *destinations: Destination) -> None:
        """These are deleted: who sends there again begins anew."""
        gone = {name for destination in destinations for name in self._names_of(destination)}
        for client in self._clients.values():
            if not client.producing_to.isdisjoint(gone):
                client.producing_to -= gone
            for producer, open_at in client.producers.items():
                client.producers[producer] = [each for each in open_at if each not in gone]

    def _names_of(self, destination: Destination) -> Iterator[Destination]:
        """A destination by all names that clients may have sent to it by."""
        yield destination
        name = destination.name
        if destination.is_queue:
            binding = self._routing.table.bindings.of(name)
            for full in (f"::{name}", f"{name}::{name}", *([binding.id] if binding else [])):
                yield from (Destination.queue(full), Destination.topic(full))
