"""Advisories: a part of the broker that is told what happens and publishes it, as far as somebody listens.

Who has news calls the method named after it. Nothing is made, and hardly anything asked, while nobody subscribes to
advisory topics and no composite forwards them; `watching` guards what happens to each message. Whoever starts to listen
is told what exists already. Advisory topics, their consumers and their messages are no news themselves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.documents import Document
from brokerapp.core.advisories.remote_advisories import RemoteAdvisories
from brokerapp.core.advisories.replay import AdvisoryReplay
from brokerapp.core.advisories.virtual_consumers import VirtualConsumers
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_topics import is_advisory, topic_of
from brokerapp.engine.routing.destination_trie import matches, overlap
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy, escape
from brokerapp.model.transformations import ADVISORY_JSON, HEADER

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        BrokerMessages,
        DispatcherPort,
        DuplicatesPort,
        DurablesPort,
        GaugesPort,
        Placement,
        RoutingPort,
    )

#: Messages tell their own story only where the policy of their destination says so.
_ASKED_FOR: dict[str, Callable[[PolicyEntry], bool]] = {
    topics.DELIVERED: lambda policy: policy.advisory_for_delivery,
    topics.DISPATCHED: lambda policy: policy.advisory_for_dispatched,
    topics.CONSUMED: lambda policy: policy.advisory_for_consumed,
    topics.DISCARDED: lambda policy: policy.advisory_for_discarding_messages,
    topics.NO_CONSUMER: lambda policy: policy.send_advisory_if_no_consumers,
    topics.SLOW_CONSUMER: lambda policy: policy.advisory_for_slow_consumers,
    topics.FAST_PRODUCER: lambda policy: policy.advisory_for_fast_producers,
    topics.FULL: lambda policy: policy.advisory_when_full,
}
#: Those of them that concern each message on its ordinary way.
_PER_MESSAGE = (topics.DELIVERED, topics.DISPATCHED, topics.CONSUMED, topics.NO_CONSUMER)


class Advisories:
    """What the broker tells about itself."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        dispatcher: DispatcherPort,
        placement: Placement,
        publisher: BrokerMessages,
        routing: RoutingPort,
        url: Callable[[], str],
        clients: Mapping[str, Client],
        duplicates: DuplicatesPort,
        durables: DurablesPort,
        gauges: GaugesPort,
    ) -> None:
        self._name, self._settings, self._counters = context.name, context.settings, context.counters
        self._authorizer, self._dispatcher, self._placement = authorizer, dispatcher, placement
        self._publisher, self._routing, self._url = publisher, routing, url
        self.broker_id = f"ID:{context.name}-{context.session}"  #: as others know this run of the broker
        self._origin = {"originBrokerId": self.broker_id, "originBrokerName": context.name}
        self._numbers = 0
        self._virtual = VirtualConsumers(
            context=context,
            clients=clients,
            duplicates=duplicates,
            durables=durables,
            routing=routing,
            broker_id=self.broker_id,
            tell=self._tell,
        )
        self.elsewhere = RemoteAdvisories(
            placement=placement, here=lambda: self._existing.of_clients(), tell=self._tell_here
        )
        self._existing = AdvisoryReplay(
            context=context,
            clients=clients,
            duplicates=duplicates,
            durables=durables,
            gauges=gauges,
            virtual=self._virtual,
            elsewhere=self.elsewhere,
        )
        self._heard: dict[str, bool] = {}
        self.watching = False  #: whether somebody wants to hear what happens to each message

    # -- whether somebody listens

    def listeners_changed(self) -> None:
        """Subscriptions to topics are others now."""
        self._heard.clear()
        self.watching = self._is_heard(topics.ALL) and any(
            _ASKED_FOR[event](policy) for policy in self._routing.table.definitions.policies for event in _PER_MESSAGE
        )

    def redefined(self) -> None:
        """The definitions are others now."""
        self.listeners_changed()
        self._virtual.redefined()

    def _is_heard(self, topic: str) -> bool:
        """Whether somebody gets what is published on such a topic (a name, or all that match a pattern)."""
        if not self._settings.advisory_support:
            return False
        heard = self._heard.get(topic)
        if heard is None:
            if len(self._heard) >= MAX_REMEMBERED:
                self._heard.clear()
            destination = Destination.topic(topic)
            topology = self._routing.table
            heard = self._heard[topic] = bool(
                self._dispatcher.has_subscribers(destination)
                or topology.feeds_of(topic)
                or topology.may_forward(destination)
            )
        return heard

    def _asks_for(self, event: str, destination: Destination) -> bool:
        """Whether somebody wants to hear of such an event at this destination."""
        if is_advisory(destination) or not self._is_heard(topics.ALL):
            return False
        wanted = _ASKED_FOR.get(event)
        if wanted is not None:
            policy = self._routing.table.policy_for(destination)
            if policy is None or not wanted(policy):
                return False
        return self._is_heard(topic_of(event, destination))

    # -- connections, destinations, consumers, producers

    def connected(self, client: Client) -> None:
        """A client logged in."""
        self._tell(topics.CONNECTION, lambda: documents.connection_info(client, self._name))

    def disconnected(self, client: Client) -> None:
        """A client is gone, with all it had."""
        self._tell(topics.CONNECTION, lambda: documents.connection_gone(client, self._name))

    def destination_added(self, destination: Destination) -> None:
        """A queue or topic came to exist, or the log of a subscription, of which nothing is told."""
        self._tell_destination(destination, documents.ADDED)
        self._virtual.added(destination)

    def destination_removed(self, destination: Destination) -> None:
        """A queue or topic exists no more; nor do the topics about it."""
        self._tell_destination(destination, documents.REMOVED)
        self._virtual.removed(destination)
        if not is_advisory(destination) and destination.kind in topics.OF_KIND:
            for event in topics.EVENTS:
                topic = Destination.topic(topic_of(event, destination))
                if self._counters.find(topic) is not None:
                    self._counters.remove(topic)

    def _tell_destination(self, destination: Destination, operation: int) -> None:
        topic = topics.OF_KIND.get(destination.kind)
        if topic is not None and not is_advisory(destination):
            self._tell(topic, lambda: documents.destination_info(destination, operation))

    def consumer_started(self, subscription: Subscription) -> None:
        """A subscription is served from now on. When it is one to advisories, it is told what exists."""
        if any(
            overlap(each.name, topics.ALL) for each in subscription.destinations if each.kind is DestinationKind.TOPIC
        ):
            self._replay(subscription)
        self._tell_consumer(subscription, lambda: documents.consumer_info(subscription, self._name))
        self._virtual.started(subscription)

    def consumer_is_for(self, subscription: Subscription) -> None:
        """The consumer of a bridge is there for others than was told, who may be nearer: bridges of brokers farther on
        hear of them so.
        """
        if not any(map(is_advisory, subscription.destinations)):
            topic = topic_of(topics.BRIDGE_CONSUMER, *subscription.destinations)
            self._tell(topic, lambda: documents.consumer_is_for(subscription, self._name))

    def consumer_stopped(self, subscription: Subscription) -> None:
        """A subscription is served no more."""
        self._tell_consumer(subscription, lambda: documents.consumer_gone(subscription, self._name))
        self._virtual.stopped(subscription)

    def subscription_removed(self, client_id: str, name: str, topic: Destination) -> None:
        """A durable subscription was deleted, with what it kept."""
        self._tell(
            topic_of(topics.CONSUMER, topic),
            lambda: documents.subscription_gone(client_id, name),
            lambda: self._existing.consumer_count([topic]),
        )
        self._virtual.forgotten(client_id, name, topic)

    def _tell_consumer(self, subscription: Subscription, document: Callable[[], Document]) -> None:
        destinations = subscription.destinations
        if not any(map(is_advisory, destinations)):
            self._tell(
                topic_of(topics.CONSUMER, *destinations), document, lambda: self._existing.consumer_count(destinations)
            )

    def producer_started(self, client: Client, destination: Destination) -> None:
        """A client sends to a destination for the first time."""
        self._tell_producer(destination, lambda: documents.producer_info(client, destination, self._name))

    def producer_stopped(self, client: Client, destination: Destination) -> None:
        """A client that sent to a destination is gone."""
        self._tell_producer(destination, lambda: documents.producer_gone(client, self._name))

    def _tell_producer(self, destination: Destination, document: Callable[[], Document]) -> None:
        if not is_advisory(destination):
            self._tell(
                topic_of(topics.PRODUCER, destination), document, lambda: self._existing.producer_count(destination)
            )

    # -- messages

    def expired(self, destination: Destination, message: Message) -> None:
        """A message is past its time."""
        self._tell_of_message(topics.EXPIRED, destination, message)

    def dead_lettered(self, destination: Destination, message: Message) -> None:
        """A message goes to where dead letters go."""
        self._tell_of_message(topics.DEAD_LETTERED, destination, message)

    def delivered(self, place: Destination, messages: Iterable[Message], *, heard: bool = True) -> None:
        """Messages reached their destination. Non-persistent ones are told of as they are where nobody hears them."""
        if place.kind is DestinationKind.SUBSCRIPTION:  # its topic is where they were delivered
            return
        if not heard and self._asks_for(topics.NO_CONSUMER, place):
            for message in messages:
                if not message.persistent:
                    self._publish(message, topic_of(topics.NO_CONSUMER, place))
        for message in messages:
            self._tell_of_message(topics.DELIVERED, place, message)

    def dispatched(self, place: Destination, entries: Iterable[LogEntry]) -> None:
        """Messages were handed to a consumer."""
        self._tell_of_messages(topics.DISPATCHED, place, entries)

    def consumed(self, place: Destination, entries: Iterable[LogEntry]) -> None:
        """A consumer is done with messages."""
        self._tell_of_messages(topics.CONSUMED, place, entries)

    def discarded(self, subscription: Subscription, entry: LogEntry) -> None:
        """A message of a topic was dropped for a subscriber that is too slow."""
        consumer = documents.id_text(documents.consumer_id(subscription, self._name))
        about = {"consumerId": consumer, "discardedCount": subscription.discarded_count}
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
        if not self._asks_for(event, destination):
            return
        policy = self._routing.table.policy_for(destination)
        with_body = policy is not None and policy.include_body_for_advisory
        # their spelling
        about = {"orignalMessageId": message.id, "orignalDestination": destination, **(headers or {})}
        document = documents.message_document(message, destination, with_body=with_body)
        self._publish(self._message(about, document), topic_of(event, destination))

    # -- pressure

    def slow_consumer(self, subscription: Subscription, destination: Destination) -> None:
        """A consumer does not keep up: once, until it does again."""
        if self._asks_for(topics.SLOW_CONSUMER, destination):
            broker = self._name
            headers = {"consumerId": documents.id_text(documents.consumer_id(subscription, broker))}
            topic = topic_of(topics.SLOW_CONSUMER, destination)
            self._tell(topic, lambda: documents.consumer_info(subscription, broker), lambda: headers)

    def fast_producer(self, client: Client, destination: Destination) -> None:
        """A producer is held back: once, until it is not any more."""
        if self._asks_for(topics.FAST_PRODUCER, destination):
            document = documents.producer_info(client, destination, self._name)
            headers = {"producerId": documents.id_text(document["ProducerInfo"]["producerId"])}
            self._tell(topic_of(topics.FAST_PRODUCER, destination), lambda: document, lambda: headers)

    def full(self, destination: Destination, usage: str) -> None:
        """A limit stands in the way of what is sent to a destination; `usage` names it."""
        if self._asks_for(topics.FULL, destination):
            self._tell(topic_of(topics.FULL, destination), lambda: documents.NOTHING, lambda: {"usageName": usage})

    # -- bridges to other brokers

    def bridge_started(self, key: str, name: str, url: str, *, by_duplex: bool) -> None:
        """A bridge to the broker of this name works; `key` tells it from other bridges."""
        self._existing.bridges[key] = name, {"createdByDuplex": by_duplex, "remoteIp": url}
        self._tell_bridge(key, started=True)

    def bridge_stopped(self, key: str) -> None:
        """It works no more, if it did."""
        if key in self._existing.bridges:
            self._tell_bridge(key, started=False)
            del self._existing.bridges[key]

    def _tell_bridge(self, key: str, *, started: bool) -> None:
        name, about = self._existing.bridges[key]
        document = documents.bridge_info(name, str(about["remoteIp"]))
        self._tell(topics.NETWORK_BRIDGE, lambda: document, lambda: {"started": started, **about})

    def forward_failed(self, headers: Mapping[str, str], body: bytes, cause: str) -> None:
        """Another broker refused a message, which a bridge has as a MESSAGE of these headers."""
        destination = Destination.parse(headers["destination"])
        head = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in headers.items())
        message = Message(headers["message-id"], head.encode(), body, headers.get("persistent") == "true")
        document = documents.message_document(message, destination, with_body=True)
        self._tell(topics.FORWARD_FAILURE, lambda: document, lambda: {"cause": cause})

    # -- what exists already, for whoever starts to listen

    def _replay(self, listener: Subscription) -> None:
        """Tell this subscription, and nobody else, what exists of what it wants to hear of."""
        if not self._settings.advisory_support:
            return
        wanted = [each for each in listener.destinations if each.kind is DestinationKind.TOPIC]
        told, is_bridge = 0, bool(listener.client.bridge)
        for family, existing in self._existing.news(to_bridge=is_bridge).items():
            if not any(overlap(each.name, family) for each in wanted):
                continue
            for name, headers, document in existing():
                topic = Destination.topic(name)
                if any(matches(each.name, name) for each in wanted) and self._authorizer.may(listener, "read", topic):
                    self._dispatcher.offer_to_subscriber(listener, self._message(headers, document), RoutedCopy(topic))
                    told += 1
        self.elsewhere.listen(wanted, lambda: self._tell_all_told(listener, told))

    def _tell_all_told(self, listener: Subscription, told: int) -> None:
        """Let a bridge know that it knows all consumers now, those of other nodes' clients too."""
        client = listener.client
        if client.bridge and client.subscriptions.get(listener.name) is listener:
            message, topic = self._message({}, documents.all_told(told)), topics.PREFIX + topics.BRIDGE_CONSUMER
            self._dispatcher.offer_to_subscriber(listener, message, RoutedCopy(Destination.topic(topic)))
            self._placement.request_dispatch()

    def _tell_here(self, topic: str, document: Document) -> None:
        """Tell listeners at this node, and nobody else."""
        self._dispatcher.publish_locally(self._message({}, document), RoutedCopy(Destination.topic(topic)), None)

    # -- publishing

    def _tell(self, topic: str, document: Callable[[], Document], headers: Callable[[], Document] = dict) -> None:
        """Publish what `document` and `headers` say, if somebody hears it."""
        if self._is_heard(topics.ALL) and self._is_heard(topic):
            self._publish(self._message(headers(), document()), topic)

    def _publish(self, message: Message, topic: str) -> None:
        self._publisher.publish_internal(message, Destination.topic(topic))

    def _message(self, headers: Document, document: Document) -> Message:
        """An advisory. As in ActiveMQ its headers bear no time; trace and counters know it all the same."""
        self._numbers += 1
        id = f"{self.broker_id}-advisory:{self._numbers}"
        lines = {
            "message-id": id, "expires": 0, "priority": 0, "timestamp": 0, "type": "Advisory",
            HEADER: ADVISORY_JSON, **self._origin, "originBrokerURL": self._url(), **headers,
        }  # fmt: skip
        head = "".join(f"{name}:{escape(_text(value))}\n" for name, value in lines.items())
        body = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        return Message(id, head.encode(), body.encode(), priority=0, born_us=time.time_ns() // 1000)


#: Topics remembered as heard or not: their names come from clients.
MAX_REMEMBERED = 10_000


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
