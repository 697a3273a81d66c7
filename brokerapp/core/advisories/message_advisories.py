"""Publish advisories about messages, as far as policies ask for them, and about blocked producers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.audience import AdvisoryAudience
from brokerapp.core.advisories.documents import Document
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_topics import topic_of
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, RoutingPort


def _named(event: str, destination: Destination, message: Message) -> Document:
    """Return the headers that name the message, as far as ActiveMQ has them at such an event; in its spelling."""
    if event == topics.DEAD_LETTERED:
        return {}
    named: Document = {"orignalMessageId": message.id}
    return named if event == topics.EXPIRED else {**named, "orignalDestination": destination}


class MessageAdvisories:
    """Publishes advisories about messages, slow consumers and blocked producers."""

    def __init__(
        self, *, context: BrokerContext, audience: AdvisoryAudience, publisher: AdvisoryPublisher, routing: RoutingPort
    ) -> None:
        self._name, self._audience, self._publisher, self._routing = context.name, audience, publisher, routing
        self.watching = False  #: whether somebody receives what happens to each message

    def on_subscribers_changed(self) -> None:
        """Look again who receives what: the subscribers of topics, or the definitions, have changed."""
        self._audience.refresh()
        self.watching = self._audience.watches_messages()

    def expired(self, destination: Destination, message: Message) -> None:
        """Tell that a message has expired."""
        self._tell_of_message(topics.EXPIRED, destination, message)

    def dead_lettered(self, destination: Destination, message: Message) -> None:
        """Tell that a message is dead-lettered."""
        self._tell_of_message(topics.DEAD_LETTERED, destination, message)

    def delivered(self, place: Destination, messages: Iterable[Message], *, heard: bool = True) -> None:
        """Tell that messages reached their destination; non-persistent ones without a consumer are published whole."""
        if place.kind is DestinationKind.SUBSCRIPTION:  # its topic is where they were delivered
            return
        if not heard and self._audience.asks_for(topics.NO_CONSUMER, place):
            for message in messages:
                if not message.persistent:
                    self._publisher.publish(message, topic_of(topics.NO_CONSUMER, place))
        for message in messages:
            self._tell_of_message(topics.DELIVERED, place, message)

    def dispatched(self, place: Destination, entries: Iterable[LogEntry]) -> None:
        """Tell that messages were given to a consumer."""
        self._tell_of_messages(topics.DISPATCHED, place, entries)

    def consumed(self, place: Destination, entries: Iterable[LogEntry]) -> None:
        """Tell that a consumer acknowledged messages."""
        self._tell_of_messages(topics.CONSUMED, place, entries)

    def discarded(self, subscription: Subscription, entry: LogEntry) -> None:
        """Tell that a message of a topic was dropped for a subscriber that is too slow."""
        consumer = documents.id_text(documents.consumer_id(subscription, self._name))
        about = {"consumerId": consumer, "discardedCount": subscription.pending.discarded_count}
        self._tell_of_message(topics.DISCARDED, Destination.parse(entry.shown_destination), entry.message, about)

    def _tell_of_messages(self, event: str, place: Destination, entries: Iterable[LogEntry]) -> None:
        """Something happened to messages in the log of a queue or of a named subscription, or straight from a topic."""
        for entry in entries:
            destination = (
                Destination.parse(entry.shown_destination) if place.kind is DestinationKind.SUBSCRIPTION else place
            )
            self._tell_of_message(event, destination, entry.message)

    def _tell_of_message(
        self, event: str, destination: Destination, message: Message, headers: Document | None = None
    ) -> None:
        if not self._audience.asks_for(event, destination):
            return
        policy = self._routing.table.policy_for(destination)
        with_body = policy is not None and policy.include_body_for_advisory
        about = {**_named(event, destination, message), **(headers or {})}
        document = documents.message_document(message, destination, with_body=with_body)
        self._publisher.publish(self._publisher.message(about, document), topic_of(event, destination))

    # -- pressure

    def slow_consumer(self, subscription: Subscription, destination: Destination) -> None:
        """Tell that a consumer does not keep up: once, until it does again."""
        if self._audience.asks_for(topics.SLOW_CONSUMER, destination):
            broker = self._name
            headers = {"consumerId": documents.id_text(documents.consumer_id(subscription, broker))}
            topic = topic_of(topics.SLOW_CONSUMER, destination)
            self._publisher.tell(topic, lambda: documents.consumer_info(subscription, broker), lambda: headers)

    def fast_producer(self, client: Client, destination: Destination) -> None:
        """Tell that a producer is blocked: once, until it is not any more."""
        if self._audience.asks_for(topics.FAST_PRODUCER, destination):
            document = documents.producer_info(client, destination, self._name)
            headers = {"producerId": documents.id_text(document["ProducerInfo"]["producerId"])}
            self._publisher.tell(topic_of(topics.FAST_PRODUCER, destination), lambda: document, lambda: headers)

    def full(self, destination: Destination, usage: str) -> None:
        """Tell that what is sent to a destination exceeds a limit; `usage` names it."""
        if self._audience.asks_for(topics.FULL, destination):
            self._publisher.tell(
                topic_of(topics.FULL, destination), lambda: documents.NOTHING, lambda: {"usageName": usage}
            )
