"""Begin and end to give messages to subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.destination import Destination, DestinationKind

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        BrokerEvents,
        ConsumersPort,
        DispatchQueue,
        RetainedPort,
        TemporariesPort,
        TopicDispatcherPort,
        TopicSubscribers,
    )


class ServedSubscriptions:
    """Begins and ends to serve subscriptions."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        consumers: ConsumersPort,
        dispatcher: DispatchQueue,
        events: BrokerEvents,
        retained: RetainedPort,
        subscribers: TopicSubscribers,
        temporaries: TemporariesPort,
        topic_dispatcher: TopicDispatcherPort,
    ) -> None:
        self._counters = context.counters
        self._consumers, self._dispatcher, self._events = consumers, dispatcher, events
        self._retained, self._subscribers, self._temporaries = retained, subscribers, temporaries
        self._topic_dispatcher = topic_dispatcher

    def join(self, subscription: Subscription, *, retroactive: bool) -> None:
        """Consume from all destinations of a subscription that has no name."""
        self._join(subscription)
        self._retained.subscribed(subscription, retroactive)

    def _join(self, subscription: Subscription) -> None:
        for target in subscription.destinations:
            if target.is_queue:
                self._consumers.join(subscription, target)
            else:
                self._subscribers.add(subscription, target)
                self.note_subscribers(target)

    def announce(self, subscription: Subscription) -> None:
        """Tell that the subscription is served from now on."""
        self._events.consumer_started(subscription)

    def start(self, subscription: Subscription) -> None:
        """Give the subscription messages."""
        subscription.started = True
        self._dispatcher.resume(subscription)

    def suspend(self, subscription: Subscription) -> None:
        """Give the subscription nothing more; it keeps what it holds until it acknowledges that, or ends."""
        self._consumers.detach_keeping_unacked(subscription)
        self.leave(subscription)

    def resume(self, subscription: Subscription) -> None:
        """Give a suspended subscription messages again, or one that was not served yet."""
        self._join(subscription)
        self.announce(subscription)
        self.start(subscription)

    def leave(self, subscription: Subscription) -> None:
        """Leave the topics of a subscription that is served no more."""
        if subscription.durable is None:
            for target in subscription.destinations:
                if not target.is_queue:
                    self._subscribers.remove(subscription, target)
                    self._topic_dispatcher.drop_pending(subscription)
                    self.note_subscribers(target)
        self._events.consumer_stopped(subscription)

    def note_subscribers(self, target: Destination) -> None:
        """Note that the subscribers of a topic, or of all that match a pattern, have changed."""
        if target.is_temporary and target not in self._temporaries:
            return
        names = (
            [target]
            if not target.is_pattern
            else [d for d in self._counters.destinations() if d.kind is DestinationKind.TOPIC]
        )
        self._counters.changed.update(map(self._counters.of, names))
        self._events.topic_subscribers_changed()
