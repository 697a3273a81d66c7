"""Send retained messages to retroactive consumers before new ones.

Who asks with `activemq.retroactive:true`, and who subscribes to a topic whose policy says `alwaysRetroactive`. A new
durable subscription has it put into its log, and must ask. The first consumer of a consumer queue gets what the virtual
topic behind it remembers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.subscription_recovery import RETAIN, RetainedMessage, RetainedMessages
from brokerapp.engine.routing.consumer_queues import topics_behind
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.definitions import RecoveryPolicy
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        Destinations,
        MessageRouterPort,
        RoutingPort,
        TopicDispatcherPort,
    )

#: Most bytes that all topics of a node remember together: past it those go that got nothing for the longest time.
MAX_BYTES = 256 * 1024 * 1024
#: How often what is too old is forgotten where nothing new comes, milliseconds.
SWEEP_MS = 30_000
_RETAIN_LINE = f"{RETAIN}:".encode()


class RetroactiveRecovery:
    """What concerns the past of topics. A part of the broker. In memory only, as in ActiveMQ."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        topic_dispatcher: TopicDispatcherPort,
        router: MessageRouterPort,
        queues: Destinations,
        routing: RoutingPort,
    ) -> None:
        self._authorizer, self._topic_dispatcher, self._router = authorizer, topic_dispatcher, router
        self._queues, self._routing = queues, routing
        self._memories: OrderedDict[Destination, RetainedMessages] = (
            OrderedDict()
        )  # those that got something last at the end
        self._bytes = 0
        context.timers.call_every(SWEEP_MS, self._sweep, clock.now_ms())

    # -- remembering

    def published(self, messages: Sequence[Message], copy: RoutedCopy) -> Sequence[Message]:
        """Messages reached a topic; what its subscribers get of them: they do not see that one is retained."""
        if not any(self.keeps(message, copy.destination) for message in messages):
            return messages
        return [self._remember(message, copy) for message in messages]

    def _remember(self, message: Message, copy: RoutedCopy) -> Message:
        if not self.keeps(message, copy.destination):
            return message
        policy = self._policy(copy.destination)
        memory = self._memories.setdefault(copy.destination, RetainedMessages())
        self._memories.move_to_end(copy.destination)
        self._bytes -= memory.bytes
        memory.add(message, copy, policy, clock.now_ms())
        self._bytes += memory.bytes
        while self._bytes > MAX_BYTES:
            self._forget(next(iter(self._memories)))
        return message.with_headers({RETAIN: None}) if _RETAIN_LINE in message.head else message

    def keeps(self, message: Message, topic: Destination) -> bool:
        """Whether a topic remembers this message."""
        if topic.is_temporary:
            return False
        return _RETAIN_LINE in message.head or self._policy(topic) is not None

    def forget(self, topic: Destination) -> None:
        """The topic is deleted."""
        if topic in self._memories:
            self._forget(topic)

    def _forget(self, topic: Destination) -> None:
        self._bytes -= self._memories.pop(topic).bytes

    def _policy(self, topic: Destination) -> RecoveryPolicy | None:
        topology = self._routing.table
        policy = topology.policy_for(topic) if topology.remembers else None
        return policy.recovery if policy is not None else None

    def _sweep(self) -> None:
        now_ms = clock.now_ms()
        for topic, memory in list(self._memories.items()):
            self._bytes -= memory.bytes
            memory.trim(self._policy(topic), now_ms)
            self._bytes += memory.bytes
            if not memory.bytes:
                del self._memories[topic]

    def all(self) -> Iterator[tuple[Destination, RetainedMessage, bool]]:
        """All that is remembered, with its topic, and whether it is retained; topics may come and go meanwhile."""
        for topic in list(self._memories):
            memory = self._memories.get(topic)
            if memory is not None:
                retained = memory.retained
                for kept in self._recalled(memory, self._policy(topic)):
                    yield topic, kept, kept is retained

    def _recalled(self, memory: RetainedMessages, policy: RecoveryPolicy | None) -> list[RetainedMessage]:
        """What is remembered of a topic now: what is too old is forgotten."""
        self._bytes -= memory.bytes
        found = memory.messages(policy, clock.now_ms())
        self._bytes += memory.bytes
        return found

    def learn(self, topic: Destination, retained: RetainedMessage | None, recent: Iterable[RetainedMessage]) -> None:
        """Another node remembers these of a topic, from before this one was there."""
        memory = self._memories.setdefault(topic, RetainedMessages())
        self._bytes -= memory.bytes
        memory.learn(retained, recent)
        memory.trim(self._policy(topic), clock.now_ms())
        self._bytes += memory.bytes
        while self._bytes > MAX_BYTES:
            self._forget(next(iter(self._memories)))

    # -- giving

    def subscribed(self, subscription: Subscription, asks: bool) -> None:
        """A consumer came that has no named subscription."""
        for target in subscription.destinations:
            if target.is_queue:
                self._give_first(subscription, target, asks)
            else:
                for kept in self._remembered(target, asks):
                    if self._authorizer.may(
                        subscription, "read", kept.copy.destination
                    ):  # a pattern matches all topics
                        self._topic_dispatcher.offer_to_subscriber(subscription, kept.message, kept.copy)

    def created(self, durable: DurableSubscription) -> None:
        """A named subscription is new, and its consumer asks for the past."""
        feed = durable.feed
        for wanted in durable.identity.topics:
            for kept in self._remembered(wanted, asks=True):
                topic = kept.copy.destination
                headers = {**kept.message.headers, "destination": topic.stomp}
                goes_back = durable.identity.leads_to in kept.message.path  # to where it came from: never
                if not goes_back and feed.may_read(topic) and feed.takes(headers, "") is True:
                    self._router.copy_to_log(kept.message, RoutedCopy(feed.target, kept.copy.original, topic))

    def _give_first(self, subscription: Subscription, queue: Destination, asks: bool) -> None:
        """The first consumer of a consumer queue; what it gets is not in the queue."""
        log = self._queues.get(str(queue))
        if log is None or log.consumers != [subscription]:
            return
        for topic in topics_behind(self._routing.table.definitions, queue):
            for kept in self._remembered(topic, asks):
                self._topic_dispatcher.offer_to_subscriber(subscription, kept.message, kept.copy, queue=queue)

    def _remembered(self, wanted: Destination, asks: bool) -> Iterator[RetainedMessage]:
        """What the topics of this name or pattern have for who asks, or for everybody."""
        found = [wanted]
        if wanted.is_pattern:
            found = [each for each in self._memories if each.kind is wanted.kind and matches(wanted.name, each.name)]
        for topic in found:
            memory, policy = self._memories.get(topic), self._routing.table.policy_for(topic)
            if memory is not None and (asks or (policy is not None and policy.always_retroactive)):
                yield from self._recalled(memory, policy.recovery if policy is not None else None)
