"""List what exists for new subscribers of advisories, and count consumers and producers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.documents import Document
from brokerapp.core.advisories.virtual_consumers import VirtualConsumers
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_subjects import ADDED, is_of_destination, kind_of, subject_of
from brokerapp.engine.routing.advisory_topics import is_advisory, topic_of
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.broker_path import BRIDGE_DURABLE_PREFIX, Path
from brokerapp.model.destination import Destination, DestinationKind

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DuplicatesPort, DurablesPort, GaugesPort, Placement
    from brokerapp.engine.clients.client import Client

#: Patterns of topics.
_CONSUMERS, _VIRTUAL, _PRODUCERS = (
    f"{topics.PREFIX}{each}.>" for each in (topics.CONSUMER, topics.VIRTUAL_CONSUMER, topics.PRODUCER)
)
#: One thing to tell: topic, headers of its own, body.
News = tuple[str, Document, Document]


class ExistingState:
    """Lists connections, destinations, consumers, producers and bridges as they are now."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        clients: Mapping[str, Client],
        duplicates: DuplicatesPort,
        durables: DurablesPort,
        gauges: GaugesPort,
        virtual: VirtualConsumers,
        placement: Placement,
        path_of: Callable[[Destination], Path],
    ) -> None:
        self._name, self._counters = context.name, context.counters
        self._clients, self._duplicates, self._durables = clients, duplicates, durables
        self._gauges, self._path_of = gauges, path_of
        self._virtual, self._placement = virtual, placement
        #: What tells a bridge from others -> the broker it leads to, and what its advisories say in headers.
        self.bridges: dict[str, tuple[str, Document]] = {}

    def news(self, *, to_bridge: bool) -> dict[str, Callable[[], Iterator[News]]]:
        """Topics, by name or pattern -> what a new listener is told; a bridge of durable subscriptions in full."""
        return {
            topics.CONNECTION: self._everywhere(self._connections, topics.CONNECTION),
            **{
                topic: self._everywhere(partial(self._destinations, kind), topic)
                for kind, topic in topics.OF_KIND.items()
            },
            _CONSUMERS: self._everywhere(self._wanting if to_bridge else self._consumers, _CONSUMERS),
            _VIRTUAL: self._everywhere(self._virtual.existing, _VIRTUAL),
            _PRODUCERS: self._everywhere(self._producers, _PRODUCERS),
            topics.MASTER_BROKER: lambda: iter([(topics.MASTER_BROKER, {}, documents.NOTHING)]),
            topics.NETWORK_BRIDGE: self._bridges_there,
        }

    def _connections(self) -> Iterator[News]:
        for client in self._clients.values():
            yield topics.CONNECTION, {}, documents.connection_info(client, self._name)

    def destination_info(self, destination: Destination, operation: int) -> Document:
        """Return the advisory of a destination, with the brokers that a temporary one comes from."""
        return documents.destination_info(destination, operation, self._path_of(destination))

    def _destinations(self, kind: DestinationKind) -> Iterator[News]:
        for each in self._counters.destinations():
            if each.kind is kind and not is_advisory(each):
                yield topics.OF_KIND[kind], {}, self.destination_info(each, ADDED)

    def has(self, document: Document) -> bool:
        """Return whether what a document is about exists here: a destination, or what a JMS client opened.

        JMS clients choose the ids of what they open, and keep them when they connect to another node.
        """
        if is_of_destination(document):
            return self._has_destination(document)
        subject, kind = subject_of(document), kind_of(document)
        return subject is not None and any(
            _has_opened(client, kind, subject.id)
            for client in self._clients.values()
            if client.connection_id and subject.id.startswith(client.connection_id)
        )

    def _has_destination(self, document: Document) -> bool:
        """Return whether a document is about a destination that has counters here."""
        about = document.get("DestinationInfo", {}).get("destination")
        if about is None:
            return False
        kind = documents.KINDS.get(about["@class"])
        return kind is not None and Destination(kind, about["string"]) in self._counters

    def _consumers(self) -> Iterator[News]:
        for client in self._clients.values():
            for each in client.subscriptions.values():
                if not (any(map(is_advisory, each.destinations)) or self._duplicates.is_suppressed(each)):
                    headers = self.consumer_count(each.destinations)
                    topic = topic_of(topics.CONSUMER, *each.destinations)
                    yield topic, headers, documents.consumer_info(each, self._name)

    def at_this_node(self) -> Iterator[tuple[str, Document]]:
        """Yield what is at this node, as other nodes are told of it: topics and bodies."""
        destinations = map(self._destinations, topics.OF_KIND)
        for listed in (self._connections(), *destinations, self._consumers(), self._producers()):
            for topic, _, document in listed:
                yield topic, document
        yield from self._virtual.of_clients()

    def _everywhere(self, here: Callable[[], Iterator[News]], family: str) -> Callable[[], Iterator[News]]:
        """Return what lists the same of this node and of all others."""

        def listed() -> Iterator[News]:
            yield from here()
            for topic, document in self._placement.remote_advisories.known(family):
                yield topic, {}, document

        return listed

    def _wanting(self) -> Iterator[News]:
        """Consumers, and durable subscriptions that nobody consumes, but for those of bridges."""
        yield from self._consumers()
        for each in self._durables:
            named = each.identity
            if not each.is_active and named.durable and not named.name.startswith(BRIDGE_DURABLE_PREFIX):
                for topic in named.topics:
                    document = documents.offline(named, topic, self._name)
                    yield topic_of(topics.CONSUMER, topic), self.consumer_count((topic,)), document

    def _producers(self) -> Iterator[News]:
        for client in self._clients.values():
            open_at = client.producers if client.connection_id else {"": client.producing_to}
            for producer, destinations in open_at.items():
                for each in destinations:
                    if not is_advisory(each):
                        document = documents.producer_info(client, each, self._name, producer)
                        yield topic_of(topics.PRODUCER, each), self.producer_count(each), document

    def _bridges_there(self) -> Iterator[News]:
        for name, about in self.bridges.values():
            headers = {"started": True, **about}
            yield topics.NETWORK_BRIDGE, headers, documents.bridge_info(name, str(about["remoteIp"]))

    def consumer_count(self, destinations: Iterable[Destination]) -> Document:
        """Return the header that says how many consume from these destinations."""
        return {"consumerCount": sum(map(self._count_consumers, destinations))}

    def _count_consumers(self, destination: Destination) -> int:
        """Consumers of a destination, durable ones that are away included, or of all that exist and match a pattern."""
        if not destination.is_pattern:
            return self._consumers_of_one(destination)
        known = (each for each in self._counters.destinations() if each.kind is destination.kind)
        return sum(self._consumers_of_one(each) for each in known if matches(destination.name, each.name))

    def _consumers_of_one(self, destination: Destination) -> int:
        """The same where a name that looks like a pattern is meant literally: there are queues, and topics about
        patterns, of such names.
        """
        numbers = self._counters.find(destination)
        if numbers is None:
            return 0
        self._gauges.update(numbers)
        offline = sum(not each.is_active for each in self._durables.of_topic(destination))
        return numbers.ConsumerCount + (0 if destination.is_queue else offline)

    def producer_count(self, destination: Destination) -> Document:
        """Return the header that says how many send to this destination."""
        numbers = self._counters.find(destination)
        return {"producerCount": numbers.ProducerCount if numbers is not None else 0}


def _has_opened(client: Client, kind: str, id: str) -> bool:
    """Return whether a JMS client has a connection, consumer or producer of this id."""
    if kind == "ConsumerId":
        return id in client.subscriptions
    return id in client.producers if kind == "ProducerId" else id == client.connection_id
