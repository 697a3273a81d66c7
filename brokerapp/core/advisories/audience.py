"""Find out whether anybody receives an advisory, so that nothing is built that nobody receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_topics import is_advisory, topic_of
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, RoutingPort, TopicSubscribers

#: Advisories that are published only where the policy of a destination asks for them.
_BY_POLICY: dict[str, Callable[[PolicyEntry], bool]] = {
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

#: Topics remembered as heard or not: their names come from clients.
MAX_REMEMBERED = 10_000


class AdvisoryAudience:
    """Knows which advisories somebody receives: a subscriber, or a destination to which they are forwarded."""

    def __init__(self, *, context: BrokerContext, subscribers: TopicSubscribers, routing: RoutingPort) -> None:
        self._settings, self._subscribers, self._routing = context.settings, subscribers, routing
        self._heard: dict[str, bool] = {}

    def refresh(self) -> None:
        """Look again who receives what: the subscribers of topics, or the definitions, have changed."""
        self._heard.clear()

    def watches_messages(self) -> bool:
        """Return whether somebody receives what happens to each message."""
        return self.is_heard(topics.ALL) and any(
            _BY_POLICY[event](policy) for policy in self._routing.table.definitions.policies for event in _PER_MESSAGE
        )

    def is_heard(self, topic: str) -> bool:
        """Return whether somebody receives what is published on such a topic (a name, or all that match a pattern)."""
        if not self._settings.advisory_support:
            return False
        heard = self._heard.get(topic)
        if heard is None:
            if len(self._heard) >= MAX_REMEMBERED:
                self._heard.clear()
            destination = Destination.topic(topic)
            topology = self._routing.table
            heard = self._heard[topic] = bool(
                self._subscribers.has_any(destination) or topology.feeds_of(topic) or topology.may_forward(destination)
            )
        return heard

    def asks_for(self, event: str, destination: Destination) -> bool:
        """Return whether somebody receives advisories of such an event at this destination."""
        if is_advisory(destination) or not self.is_heard(topics.ALL):
            return False
        wanted = _BY_POLICY.get(event)
        if wanted is not None:
            policy = self._routing.table.policy_for(destination)
            if policy is None or not wanted(policy):
                return False
        return self.is_heard(topic_of(event, destination))
