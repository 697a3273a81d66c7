"""Know who subscribes to topics at this node, by name or by pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.destination_trie import DestinationTrie, matches
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.tracing.consumers import ConsumerRecorder

if TYPE_CHECKING:
    from brokerapp.core.ports import Placement

#: Topics whose subscribers are remembered: their names come from clients.
MAX_CACHED_TOPICS = 10_000
MAX_CACHED_SUBSCRIBERS = 1_000_000


class SubscriberRegistry:
    """Holds the subscribers of topics. `may` says whether a subscription may read a topic."""

    def __init__(
        self,
        *,
        may: Callable[[Subscription, str, Destination], bool],
        placement: Placement,
        recorder: ConsumerRecorder,
    ) -> None:
        self._may, self._placement, self._recorder = may, placement, recorder
        self._topics: dict[DestinationKind, DestinationTrie[Subscription]] = {
            kind: DestinationTrie() for kind in DestinationKind
        }
        self._by_topic: dict[Destination, list[Subscription]] = {}
        self._cached_count = 0  # subscribers in all of these

    def add(self, subscription: Subscription, topic: Destination) -> None:
        """Add a subscriber of a topic, or of all topics that match a pattern."""
        self._topics[topic.kind].add(topic.name, subscription)
        if not subscription.client.is_internal:
            self._recorder.on_subscribed(str(topic), subscription.client.client_id)
        self._by_topic.clear()
        self._placement.topic_listeners.add(topic)

    def remove(self, subscription: Subscription, topic: Destination) -> None:
        """Remove a subscriber."""
        self._topics[topic.kind].remove(topic.name, subscription)
        self._recorder.on_unsubscribed(str(topic), subscription.client.client_id)
        self._by_topic.clear()
        self._placement.topic_listeners.remove(topic)
        if is_advisory(topic):
            self._placement.remote_advisories.on_listener_removed(topic)

    def of(self, topic: Destination) -> list[Subscription]:
        """Return who gets messages of a topic, each once, however many of its patterns match."""
        found = self._by_topic.get(topic)
        if found is None:
            if len(self._by_topic) >= MAX_CACHED_TOPICS or self._cached_count >= MAX_CACHED_SUBSCRIBERS:
                self._by_topic.clear()
                self._cached_count = 0
            matching = list(dict.fromkeys(self._topics[topic.kind].find(topic.name)))
            # A message to such a name is for a topic called so. Advisories about the consumers of a pattern are for all
            # who listen to part of what it matches, as bridges with included destinations do.
            if topic.is_pattern and not is_advisory(topic):
                matching = [each for each in matching if any(matches(to.name, topic.name) for to in each.destinations)]
            found = self._by_topic[topic] = [each for each in matching if self._may(each, "read", topic)]
            self._cached_count += len(found)
        return found

    def has_any(self, topic: Destination) -> bool:
        """Return whether anybody subscribes to this topic, or to one that matches the pattern, at any node."""
        return bool(
            self._topics[topic.kind].find(topic.name) or self._placement.topic_listeners.sessions_listening(topic)
        )
