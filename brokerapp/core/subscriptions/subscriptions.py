"""Manage the subscriptions of all clients, from their creation to their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.core.subscriptions.sources import SubscriptionSources
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerEvents, ConsumersPort, DuplicatesPort, DurablesPort, Replies
    from brokerapp.engine.clients.quotas import Quotas


class Subscriptions:
    """Adds and ends subscriptions."""

    def __init__(
        self,
        *,
        consumers: ConsumersPort,
        duplicates: DuplicatesPort,
        durables: DurablesPort,
        events: BrokerEvents,
        quotas: Quotas,
        replies: Replies,
        served: ServedSubscriptions,
        sources: SubscriptionSources,
    ) -> None:
        self._consumers, self._duplicates, self._durables = consumers, duplicates, durables
        self._events, self._quotas, self._replies = events, quotas, replies
        self._served, self._sources = served, sources

    def check_quota(self, client: Client, targets: Iterable[Destination]) -> None:
        """Raise RequestRefused when the client has as many subscriptions as it may have."""
        if not client.cluster_member:  # it has those of many clients, each within what it may have at its own broker
            self._quotas.check_subscription(len(client.subscriptions) + 1, client.pattern_count + _patterns(targets))

    def add(self, subscription: Subscription) -> None:
        """Add a subscription to those of its client."""
        client = subscription.client
        client.subscriptions[subscription.name] = client.by_key[subscription.key] = subscription
        client.pattern_count += _patterns(subscription.destinations)
        self._quotas.subscriptions += 1
        client.update_reading()

    def admit(self, subscription: Subscription) -> bool:
        """Return whether a new subscription is served, which may suspend others of bridges, or waits for its turn."""
        return self._duplicates.admits(subscription)

    def update(self, subscription: Subscription, crossing: BridgeEligibility, priority: int) -> None:
        """Note that the subscription of a bridge is there for other consumers now."""
        self._duplicates.update_origins(subscription, crossing, priority)

    def end(self, client: Client, subscription: Subscription) -> None:
        """End a subscription; what it holds goes back to its place."""
        if client.subscriptions.get(subscription.name) is subscription:
            del client.subscriptions[subscription.name]
            client.pattern_count -= _patterns(subscription.destinations)
            self._quotas.subscriptions -= 1
        client.by_key.pop(subscription.key, None)
        client.update_reading()
        is_suspended = self._duplicates.left(subscription)
        if subscription.browse_cursor is not None:
            subscription.browse_cursor.stop()
            self._events.consumer_stopped(subscription)
            return
        self._consumers.part(subscription)
        if subscription.durable is not None:
            self._durables.on_consumer_detached(subscription.durable)
        if not is_suspended:
            self._served.leave(subscription)
        self._sources.close(client, subscription.name, subscription.destinations)

    def end_all(self, client: Client) -> None:
        """End the subscriptions of a client that is gone."""
        for subscription in list(client.subscriptions.values()):
            self.end(client, subscription)

    def dismiss(self, log: MessageLog, why: RequestRefused) -> None:
        """End the subscriptions that consume from a log that goes and from nothing else, and tell their clients why."""
        for subscription in list(log.consumers):
            if len(subscription.destinations) > 1 or subscription.destinations[0].is_pattern:
                self._consumers.detach(subscription, log)
                continue
            client: Client = subscription.client
            self.end(client, subscription)
            if not client.cluster_member:  # another broker tells its clients itself
                self._replies.refuse(client, why, None)


def _patterns(targets: Iterable[Destination]) -> int:
    """Return how many of them have wildcards."""
    return sum([each.is_pattern for each in targets])
