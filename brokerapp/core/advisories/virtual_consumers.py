"""Find the consumers that virtual destinations feed, for bridges with useVirtualDestSubs.

A consumer of a queue to which a virtual topic or a composite copies stands for one of that topic or composite; with
useVirtualDestSubsOnCreation so does the queue itself, or a durable subscription that is offline. Bridges of other
brokers are told, so that they pass on what is sent to the virtual destination there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.documents import Document
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_topics import is_advisory, topic_of
from brokerapp.engine.routing.consumer_queues import virtual_destinations_behind
from brokerapp.model.destination import Destination, DestinationKind

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DuplicatesPort, DurablesPort, RoutingPort
    from brokerapp.engine.clients.client import Client

#: How the keys of causes that are consumers begin.
_CONSUMER = "consumer "


@dataclass(frozen=True, slots=True)
class _VirtualConsumerSource:
    """Somebody, or something, that gets messages at these destinations."""

    key: str  #: unlike that of any other
    targets: tuple[Destination, ...]
    info: Callable[[], Document]  #: the ConsumerInfo it is told as, but for id and destination


class VirtualConsumers:
    """Publishes the consumers of virtual destinations. Does nothing while the broker's useVirtualDestSubs is off."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        clients: Mapping[str, Client],
        duplicates: DuplicatesPort,
        durables: DurablesPort,
        publisher: AdvisoryPublisher,
        routing: RoutingPort,
    ) -> None:
        self._name, self._counters = context.name, context.counters
        self._clients, self._duplicates, self._durables = clients, duplicates, durables
        self._routing = routing
        self._broker_id, self._tell = publisher.broker_id, publisher.tell
        self._on = context.settings.use_virtual_dest_subs
        self._on_creation = self._on and context.settings.use_virtual_dest_subs_on_creation
        self._told: dict[tuple[str, Destination], _VirtualConsumerSource] = {}  # by whom and virtual destination

    def started(self, subscription: Subscription) -> None:
        """Tell of the virtual destinations that feed a consumer that is served from now on."""
        if self._on:
            self._begin(self._of(subscription))

    def stopped(self, subscription: Subscription) -> None:
        """Tell that a consumer is served no more."""
        if self._on:
            self._end(self._of(subscription))

    def added(self, destination: Destination) -> None:
        """Tell of the virtual destinations that feed a new queue."""
        if self._on_creation and destination.kind is DestinationKind.QUEUE:
            self._begin(self._queue(destination))

    def removed(self, destination: Destination) -> None:
        """Tell that a queue exists no more."""
        if self._on_creation and destination.kind is DestinationKind.QUEUE:
            self._end(self._queue(destination))

    def forgotten(self, client_id: str, name: str, topic: Destination) -> None:
        """Tell that a durable subscription was deleted."""
        if not self._on:
            return
        self._end(self._durable(client_id, name, (topic,)))
        for each in self._behind((topic,)):
            about = topic_of(topics.VIRTUAL_CONSUMER, each)
            self._tell(about, lambda: documents.subscription_gone(client_id, name))

    def redefined(self) -> None:
        """Virtual destinations are others now."""
        if not self._on:
            return
        now = {(cause.key, each): cause for cause in self._causes() for each in self._behind(cause.targets)}
        for key in [key for key in self._told if key not in now]:
            self._gone(*key)
        for (_, each), cause in now.items():
            self._came(cause, each)

    def existing(self) -> Iterator[tuple[str, Document, Document]]:
        """Yield topic, headers and body of all of them, for a new subscriber."""
        for (_, each), cause in self._told.items():
            yield topic_of(topics.VIRTUAL_CONSUMER, each), {}, self._document(cause, each)

    def of_clients(self) -> Iterator[tuple[str, Document]]:
        """Yield topics and bodies of those that consumers of this node's clients cause."""
        for (key, each), cause in self._told.items():
            if key.startswith(_CONSUMER):
                yield topic_of(topics.VIRTUAL_CONSUMER, each), self._document(cause, each)

    # -- who is one

    def _causes(self) -> Iterator[_VirtualConsumerSource]:
        for client in self._clients.values():
            served = (each for each in client.subscriptions.values() if not self._duplicates.is_suppressed(each))
            yield from map(self._of, served)
        if self._on_creation:
            yield from [
                self._queue(each) for each in self._counters.destinations() if each.kind is DestinationKind.QUEUE
            ]
            for durable in self._durables:
                named = durable.identity
                yield self._durable(named.client_id, named.name, named.topics)

    def _of(self, subscription: Subscription) -> _VirtualConsumerSource:
        info = documents.consumer_info
        key = f"{_CONSUMER}{subscription.client.id} {subscription.key}"
        targets = () if subscription.browse_cursor is not None else subscription.destinations
        return _VirtualConsumerSource(key, targets, lambda: info(subscription, self._name)["ConsumerInfo"])

    def _queue(self, queue: Destination) -> _VirtualConsumerSource:
        return _VirtualConsumerSource(str(queue), (queue,), dict)

    def _durable(self, client_id: str, name: str, of: tuple[Destination, ...]) -> _VirtualConsumerSource:
        return _VirtualConsumerSource(f"durable {client_id} {name}", of, lambda: {"subscriptionName": name})

    def _behind(self, targets: Iterable[Destination]) -> Iterator[Destination]:
        definitions = self._routing.table.definitions
        for target in targets:
            if not is_advisory(target):
                yield from virtual_destinations_behind(definitions, target)

    # -- telling

    def _begin(self, cause: _VirtualConsumerSource) -> None:
        for each in self._behind(cause.targets):
            self._came(cause, each)

    def _end(self, cause: _VirtualConsumerSource) -> None:
        for each in self._behind(cause.targets):
            self._gone(cause.key, each)

    def _came(self, cause: _VirtualConsumerSource, virtual: Destination) -> None:
        if (cause.key, virtual) not in self._told:
            self._told[cause.key, virtual] = cause
            self._tell(topic_of(topics.VIRTUAL_CONSUMER, virtual), lambda: self._document(cause, virtual))

    def _gone(self, key: str, virtual: Destination) -> None:
        if self._told.pop((key, virtual), None) is not None:
            gone = documents.gone_by_id(self._id(key, virtual))
            self._tell(topic_of(topics.VIRTUAL_CONSUMER, virtual), lambda: gone)

    def _id(self, key: str, virtual: Destination) -> Document:
        return {"connectionId": f"{self._broker_id} {key} {virtual}", "sessionId": -1, "value": 1}

    def _document(self, cause: _VirtualConsumerSource, virtual: Destination) -> Document:
        """As a ConsumerInfo. It has no selector: the target keeps what its consumer does not take."""
        about = {"prefetchSize": 0, "browser": False, "priority": 0, **cause.info()}
        about.pop("selector", None)
        return {"ConsumerInfo": {
            **about,
            "consumerId": self._id(cause.key, virtual),
            "destination": documents.destination_document(virtual),
        }}  # fmt: skip
