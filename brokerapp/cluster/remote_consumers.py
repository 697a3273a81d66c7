"""Consume at all other brokers of a cluster what clients of this one consume.

Each consumer of queues, and of a named subscription, has a subscription of its own there, with its own selector,
priority and credit: the broker that keeps a message decides who gets it. Subscribers of a topic share one.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from brokerapp.cluster.peer import ClusterPeer, ClusterPeerLink
from brokerapp.cluster.remote_message import entry_of, message_of
from brokerapp.core.ports import Authorizer, TopicDispatcherPort
from brokerapp.engine.clients.subscribe_options import CLIENT_OPTION, GROUPS_OPTION, USER_OPTION
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.engine.entries.topic_batch import TopicBatch
from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.model.broker_path import TO_HEADER, TTL_HEADER
from brokerapp.model.destination import LIST_SEPARATOR, Destination
from brokerapp.model.message import RoutedCopy
from brokerapp.selectors.joining import join_selectors
from brokerapp.system import clock
from brokerapp.system.timers import Timers

#: Messages that another broker may have on its way to one consumer here: Open MQ's consumerFlowLimit.
CONSUMER_FLOW_LIMIT = 1_000
#: Messages of topics that are known to have come, where patterns overlap: the copies follow each other closely.
MAX_DUPLICATE_IDS = 4_096
#: Between a subscription's id and its destination in its receipt, which errors name.
_ON = " on "
#: Of destinations that each broker has for itself.
LOCAL_PREFIXES = ("ActiveMQ.Advisory.", "ActiveMQ.Statistics.")


@dataclass(frozen=True, slots=True)
class RemoteConsumerRequest:
    """A subscription that this broker has at every other one."""

    id: str
    destination: str  #: or a list of them, STOMP form
    headers: Mapping[str, str]
    on_message: Callable[[ClusterPeer, Any], None]  #: of each MESSAGE


class RemoteConsumers:
    """Consumes at the other brokers for the clients of the broker of this name.

    `request_dispatch` asks for a round of dispatch at the end of this tick. What another broker refuses is requested
    again after `retry_ms`: it may not have noticed yet that the node where the client was before is gone.
    """

    def __init__(
        self,
        *,
        name: str,
        peers: Collection[ClusterPeer],
        authorizer: Authorizer,
        topic_dispatcher: TopicDispatcherPort,
        request_dispatch: Callable[[], None],
        timers: Timers,
        retry_ms: int,
    ) -> None:
        self._timers, self._retry_ms = timers, retry_ms
        self._name, self._request_dispatch = name, request_dispatch
        self._peers = [each for each in peers if each.broker != name]
        self._serving: dict[str, ClusterPeer] = {}  # by broker: the node of it that serves the consumers here
        self._authorizer, self._topic_dispatcher = authorizer, topic_dispatcher
        self._requests: dict[str, RemoteConsumerRequest] = {}  # by id
        self._id_of: dict[Subscription, str] = {}
        self._numbers = itertools.count(1)
        self._selectors: dict[Destination, Counter[str | None]] = {}  # of the subscribers of topics here
        self._seen_ids: OrderedDict[str, str] = OrderedDict()  # id of a topic's message -> the request by which it came
        self._owners = {peer: PeerEntryOwner(peer) for peer in self._peers}
        for peer in self._peers:
            peer.on_subscription_refused = partial(self._on_refused, peer)

    # -- consumers here

    def on_consumer_started(self, subscription: Subscription) -> None:
        """Consume at the other brokers for a client of this one."""
        if not _is_of_a_client(subscription):
            return
        if subscription.durable is not None:
            self._request(subscription, _text(subscription.durable.identity.topics), _named_headers(subscription))
            return
        queues = [each for each in subscription.destinations if each.is_queue and not _is_local(each)]
        if queues:
            self._request(subscription, _text(queues), {})
        for topic in _topics(subscription):
            self._selectors.setdefault(topic, Counter())[_selector(subscription)] += 1
            self._request_topic(topic)

    def on_consumer_stopped(self, subscription: Subscription) -> None:
        """Stop consuming at the other brokers for a client of this one."""
        if (id := self._id_of.pop(subscription, None)) is not None:
            self._remove(id)
        if not _is_of_a_client(subscription) or subscription.durable is not None:
            return
        for topic in _topics(subscription):
            selectors = self._selectors.get(topic)
            if selectors is None:
                continue
            selectors[_selector(subscription)] -= 1
            self._selectors[topic] = +selectors
            self._request_topic(topic)

    def _request(self, subscription: Subscription, destination: str, more: Mapping[str, str]) -> None:
        headers = {
            "ack": "client-individual",
            "activemq.prefetchSize": str(min(subscription.prefetch, CONSUMER_FLOW_LIMIT)),
            "activemq.priority": str(subscription.priority),
            "activemq.exclusive": str(subscription.exclusive).lower(),
            **more,
        }
        if self._authorizer.access is not None:  # of a pattern it gets what its user may read
            user = subscription.client.principal
            headers[f"activemq.{USER_OPTION}"] = user.name
            headers[f"activemq.{GROUPS_OPTION}"] = json.dumps(sorted(user.groups))
        if (selector := _selector(subscription)) is not None:
            headers["selector"] = selector
        id = self._id_of[subscription] = f"c{next(self._numbers)}"
        self._add(
            RemoteConsumerRequest(
                id, destination, headers, lambda peer, frame: self._on_queue_message(peer, subscription, frame)
            )
        )

    def _request_topic(self, topic: Destination) -> None:
        """Subscribe to a topic for all its subscribers here together."""
        id, selectors = f"t:{topic}", self._selectors[topic]
        if not selectors:
            del self._selectors[topic]
            self._remove(id)
            return
        headers = {"ack": "auto", TO_HEADER: self._name, TTL_HEADER: "1"}
        if (selector := join_selectors(selectors)) is not None:
            headers["selector"] = selector
        known = self._requests.get(id)
        if known is None or known.headers != headers:
            self._add(
                RemoteConsumerRequest(
                    id, topic.stomp, headers, lambda peer, frame: self._on_topic_message(peer, id, frame)
                )
            )

    # -- at the other brokers

    def _add(self, request: RemoteConsumerRequest) -> None:
        self._requests[request.id] = request
        for peer in self._serving.values():
            self._send_request(peer, request)

    def _send_request(self, peer: ClusterPeer, request: RemoteConsumerRequest) -> None:
        if peer.link is not None:
            headers = {**request.headers, "receipt": f"{request.id}{_ON}{request.destination}"}
            peer.link.subscribe(request.id, request.destination, lambda frame: request.on_message(peer, frame), headers)

    def _on_refused(self, peer: ClusterPeer, receipt: str) -> None:
        """Request a subscription again later that was refused, unless nobody wants it any more by then."""
        request, link = self._requests.get(receipt.partition(_ON)[0]), peer.link

        def again() -> None:
            if request is not None and self._requests.get(request.id) is request and peer.link is link:
                self._send_request(peer, request)

        if request is not None and link is not None:
            self._timers.at(clock.now_ms() + self._retry_ms, again)

    def _remove(self, id: str) -> None:
        if self._requests.pop(id, None) is not None:
            for peer in self._serving.values():
                if peer.link is not None:
                    peer.link.unsubscribe(id)

    def on_peer_connected(self, peer: ClusterPeer) -> None:
        """Subscribe at a broker whose link works now to all that is consumed here, at one of its nodes."""
        if peer not in self._owners or peer.broker in self._serving:
            return
        self._serving[peer.broker] = peer
        for request in list(self._requests.values()):
            self._send_request(peer, request)

    def on_peer_lost(self, peer: ClusterPeer) -> None:
        """Drop messages of a broker that no consumer was given: it gives them again, or they were lost with it.

        Another node of that broker serves the consumers from now on.
        """
        if self._serving.get(peer.broker) is not peer:
            return
        del self._serving[peer.broker]
        keeper, self._owners[peer] = self._owners[peer], PeerEntryOwner(peer)
        keeper.is_there = False
        for subscription in self._id_of:
            gone = [each for each in subscription.pending if _is_kept_by(each, keeper)]
            for each in gone:
                subscription.pending.remove(each)
        others = (each for each in self._peers if each.broker == peer.broker and each.is_up)
        if (other := next(others, None)) is not None:
            self.on_peer_connected(other)

    def is_served_by(self, peer: ClusterPeer) -> bool:
        """Return whether a node serves the consumers here for its broker."""
        return self._serving.get(peer.broker) is peer

    # -- what comes

    def _on_queue_message(self, peer: ClusterPeer, subscription: Subscription, frame: Any) -> None:
        """Hold a message of a queue or of a named subscription for its consumer."""
        keeper = self._owners[peer]
        entry = entry_of(frame.headers, frame.body, peer.broker, keeper)
        peer.received_count += 1
        self._topic_dispatcher.add_pending(subscription, (entry,))
        self._request_dispatch()

    def _on_topic_message(self, peer: ClusterPeer, id: str, frame: Any) -> None:
        """Publish a message of a topic to all its subscribers here."""
        topic = Destination.parse(frame.headers["destination"])
        message = message_of(frame.headers, frame.body, peer.broker)
        if is_advisory(topic) or self._seen_ids.setdefault(message.id, id) != id:
            return
        if len(self._seen_ids) > MAX_DUPLICATE_IDS:
            self._seen_ids.popitem(last=False)
        peer.received_count += 1
        self._topic_dispatcher.publish_here([TopicBatch((message,), RoutedCopy(topic))])
        self._request_dispatch()

    def waiting_count(self, peer: ClusterPeer) -> int:
        """Return how many messages of a broker are held here."""
        keeper = self._owners.get(peer)
        held = (each for one in self._id_of for each in (*one.pending, *one.unacked.values()))
        return sum(_is_kept_by(each, keeper) for each in held)

    def __len__(self) -> int:
        return len(self._requests)


class PeerEntryOwner:
    """Sends what becomes of messages to the broker that stores them, as long as the link by which they came works."""

    def __init__(self, peer: ClusterPeer) -> None:
        self._peer = peer
        self.is_there = True

    def accept(self, entry: RemoteLogEntry) -> None:
        if self._link is not None:
            self._link.ack([entry.ack_id])

    def reject(self, entry: RemoteLogEntry) -> None:
        if self._link is not None:
            self._link.send("NACK", {"id": entry.ack_id})

    def expire(self, entry: RemoteLogEntry) -> None:
        if self.is_there:
            self._peer.send(verb="late", ack=entry.ack_id)

    @property
    def _link(self) -> ClusterPeerLink | None:
        return self._peer.link if self.is_there else None


def _is_kept_by(entry: Any, keeper: PeerEntryOwner | None) -> bool:
    return isinstance(entry, RemoteLogEntry) and entry.owner is keeper


def _is_of_a_client(subscription: Subscription) -> bool:
    """Whether an ordinary client of this broker consumes by it."""
    client = subscription.client
    is_inner = client.is_internal or client.cluster_member or isinstance(subscription.selector, BridgeEligibility)
    return not is_inner and subscription.browse_cursor is None and subscription.prefetch > 0


def _is_local(destination: Destination) -> bool:
    return destination.name.startswith(LOCAL_PREFIXES)


def _topics(subscription: Subscription) -> list[Destination]:
    return [each for each in subscription.destinations if not each.is_queue and not _is_local(each)]


def _selector(subscription: Subscription) -> str | None:
    return subscription.selector.text if subscription.selector is not None else None


def _text(destinations: Iterable[Destination]) -> str:
    return LIST_SEPARATOR.join(each.stomp for each in destinations)


def _named_headers(subscription: Subscription) -> dict[str, str]:
    """Return the headers that identify a named subscription and its client."""
    named = subscription.durable.identity
    headers = {
        "activemq.subscriptionName": named.name,
        "activemq.shared": str(named.shared).lower(),
        "activemq.durable": str(named.durable).lower(),
        "activemq.noLocal": str(named.no_local).lower(),
        f"activemq.{CLIENT_OPTION}": named.client_id,
    }
    return headers | ({"selector": named.selector} if named.selector else {})
