"""Publish advisories about connections, destinations, consumers, producers and bridges that come and go.

Advisory topics, their consumers and their messages are not told of themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.documents import Document
from brokerapp.core.advisories.existing import ExistingState
from brokerapp.core.advisories.replay import AdvisoryReplay
from brokerapp.core.advisories.virtual_consumers import VirtualConsumers
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_subjects import ADDED, REMOVED
from brokerapp.engine.routing.advisory_topics import is_advisory, topic_of
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, escape

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, Placement


class LifecycleAdvisories:
    """Publishes advisories about what exists. New subscribers of advisories are told what exists already."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        existing: ExistingState,
        placement: Placement,
        publisher: AdvisoryPublisher,
        replay: AdvisoryReplay,
        virtual: VirtualConsumers,
    ) -> None:
        self._name, self._counters = context.name, context.counters
        self._existing, self._publisher, self._replay, self._virtual = existing, publisher, replay, virtual
        self._placement = placement

    def on_definitions_changed(self) -> None:
        """Tell which virtual destinations have consumers now, and which have none any more."""
        self._virtual.redefined()

    def existing_here(self) -> Iterator[tuple[str, Document]]:
        """Yield topics and advisories of all that exists at this node, for other nodes."""
        return self._existing.at_this_node()

    def exists_here(self, document: Document) -> bool:
        """Return whether what a document is about exists at this node."""
        return self._existing.has(document)

    def publish_here(self, topic: str, document: Document) -> None:
        """Publish an advisory about what is at another node to subscribers at this node only."""
        self._publisher.tell_local(topic, document)

    def on_client_connected(self, client: Client) -> None:
        """Tell that a client logged in."""
        self._publisher.tell(topics.CONNECTION, lambda: documents.connection_info(client, self._name))

    def on_client_disconnected(self, client: Client) -> None:
        """Tell that a client is gone, with all it had."""
        self._tell_end(client, topics.CONNECTION, lambda: documents.connection_gone(client, self._name))

    def on_destination_added(self, destination: Destination) -> None:
        """Tell that a queue or topic exists now; nothing is told of the log of a subscription."""
        self._tell_destination(destination, ADDED)
        self._virtual.added(destination)

    def on_destination_removed(self, destination: Destination) -> None:
        """Tell that a queue or topic exists no more, and forget the topics about it."""
        self._tell_destination(destination, REMOVED)
        self._virtual.removed(destination)
        if not is_advisory(destination) and destination.kind in topics.OF_KIND:
            for event in topics.EVENTS:
                topic = Destination.topic(topic_of(event, destination))
                if self._counters.find(topic) is not None:
                    self._counters.remove(topic)

    def _tell_destination(self, destination: Destination, operation: int) -> None:
        topic = topics.OF_KIND.get(destination.kind)
        if topic is None or is_advisory(destination):
            return
        document, remote = self._existing.destination_info(destination, operation), self._placement.remote_advisories
        if remote.is_known(topic, document):  # to listeners here, too, for whom it goes on
            remote.publish_there(topic, self._publisher.message({}, document))
        else:
            self._publisher.tell(topic, lambda: document)

    def on_consumer_started(self, subscription: Subscription) -> None:
        """Tell that a subscription is served from now on. One to advisories is told what exists."""
        self._replay.start(subscription)
        self._tell_consumer(subscription, lambda: documents.consumer_info(subscription, self._name))
        self._virtual.started(subscription)

    def on_consumer_moved(self, subscription: Subscription) -> None:
        """Tell bridges of other brokers that a bridge consumes for other consumers, maybe nearer ones."""
        if not any(map(is_advisory, subscription.destinations)):
            topic = topic_of(topics.BRIDGE_CONSUMER, *subscription.destinations)
            self._publisher.tell(topic, lambda: documents.consumer_moved(subscription, self._name))

    def on_consumer_stopped(self, subscription: Subscription) -> None:
        """Tell that a subscription is served no more."""
        destinations = subscription.destinations
        if not any(map(is_advisory, destinations)):
            self._tell_end(
                subscription.client,
                topic_of(topics.CONSUMER, *destinations),
                lambda: documents.consumer_gone(subscription, self._name),
                lambda: self._existing.consumer_count(destinations),
            )
        self._virtual.stopped(subscription)

    def on_durable_removed(self, client_id: str, name: str, topic: Destination) -> None:
        """Tell that a durable subscription was deleted, with what it kept."""
        self._publisher.tell(
            topic_of(topics.CONSUMER, topic),
            lambda: documents.subscription_gone(client_id, name),
            lambda: self._existing.consumer_count([topic]),
        )
        self._virtual.forgotten(client_id, name, topic)

    def _tell_end(
        self, client: Client, topic: str, document: Callable[[], Document], headers: Callable[[], Document] = dict
    ) -> None:
        """Tell that something of a client ended, unless the client has it at another node already: JMS clients keep the
        ids of what they open. Other nodes are told all the same.
        """
        remote = self._placement.remote_advisories
        if client.connection_id and remote.is_known(topic, ended := document()):
            remote.publish_there(topic, self._publisher.message({}, ended))
        else:
            self._publisher.tell(topic, document, headers)

    def _tell_consumer(self, subscription: Subscription, document: Callable[[], Document]) -> None:
        destinations = subscription.destinations
        if not any(map(is_advisory, destinations)):
            self._publisher.tell(
                topic_of(topics.CONSUMER, *destinations), document, lambda: self._existing.consumer_count(destinations)
            )

    def on_producer_started(self, client: Client, destination: Destination, producer: str) -> None:
        """Tell that a client opened a producer, or sends to a destination for the first time."""
        self._tell_producer(destination, lambda: documents.producer_info(client, destination, self._name, producer))

    def on_producer_stopped(self, client: Client, destination: Destination, producer: str) -> None:
        """Tell that a client closed a producer, or is gone that sent to a destination."""
        if not is_advisory(destination):
            self._tell_end(
                client,
                topic_of(topics.PRODUCER, destination),
                lambda: documents.producer_gone(client, self._name, producer),
                lambda: self._existing.producer_count(destination),
            )

    def _tell_producer(self, destination: Destination, document: Callable[[], Document]) -> None:
        if not is_advisory(destination):
            self._publisher.tell(
                topic_of(topics.PRODUCER, destination), document, lambda: self._existing.producer_count(destination)
            )

    # -- bridges to other brokers

    def on_bridge_started(self, key: str, name: str, url: str) -> None:
        """Tell that a bridge of another broker, which takes messages to there, too, works."""
        self.bridge_started(key, name, url, by_duplex=True)

    def bridge_started(self, key: str, name: str, url: str, *, by_duplex: bool) -> None:
        """Tell that a bridge to the broker of this name works; `key` tells it from other bridges."""
        self._existing.bridges[key] = name, {"createdByDuplex": by_duplex, "remoteIp": url}
        self._tell_bridge(key, started=True)

    def bridge_stopped(self, key: str) -> None:
        """Tell that a bridge works no more, if it did."""
        if key in self._existing.bridges:
            self._tell_bridge(key, started=False)
            del self._existing.bridges[key]

    def _tell_bridge(self, key: str, *, started: bool) -> None:
        name, about = self._existing.bridges[key]
        document = documents.bridge_info(name, str(about["remoteIp"]))
        self._publisher.tell(topics.NETWORK_BRIDGE, lambda: document, lambda: {"started": started, **about})

    def forward_failed(self, headers: Mapping[str, str], body: bytes, cause: str) -> None:
        """Tell that another broker refused a message, which a bridge has as a MESSAGE of these headers."""
        destination = Destination.parse(headers["destination"])
        head = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in headers.items())
        message = Message(headers["message-id"], head.encode(), body, headers.get("persistent") == "true")
        document = documents.message_document(message, destination, with_body=True)
        self._publisher.tell(topics.FORWARD_FAILURE, lambda: document, lambda: {"cause": cause})
