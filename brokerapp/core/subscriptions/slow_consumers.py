"""Find slow consumers where a policy requests it, report them, and disconnect them after a while."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.slow_consumer import SlowConsumerState
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.errors import ConsumerTooSlow
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.policy_strategies import SlowConsumerStrategy
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, BrokerEvents, Replies, RoutingPort, SubscriptionsPort
    from brokerapp.engine.clients.client import Client

logger = logging.getLogger(__name__)

#: Between two looks, milliseconds; more often only where a policy wants to check more often, within reason.
LOOK_MS = 1_000
MIN_LOOK_MS = 50


class SlowConsumers:
    """Who watches them. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        clients: Mapping[str, Client],
        events: BrokerEvents,
        replies: Replies,
        routing: RoutingPort,
        subscriptions: SubscriptionsPort,
    ) -> None:
        self._timers = context.timers
        self._clients, self._events, self._replies = clients, events, replies
        self._routing, self._subscriptions = routing, subscriptions

    def watch(self) -> None:
        """Look, again and again."""
        policies = self._routing.table.definitions.policies
        periods = [each.slow_consumer.check_period for each in policies if each.slow_consumer is not None]
        self._timers.at(clock.now_ms() + max(MIN_LOOK_MS, min([LOOK_MS, *periods])), self.watch)
        if any(map(_cares, policies)):
            self._look()

    def _look(self) -> None:
        now_ms = clock.now_ms()
        for client in list(self._clients.values()):
            if client.cluster_member:  # whose clients are looked at where they are
                continue
            for subscription in list(client.subscriptions.values()):
                policy = self._routing.table.policy_for(subscription.destinations[0])
                if policy is not None and _cares(policy):
                    self._look_at(subscription, policy.slow_consumer, now_ms)

    def _look_at(self, subscription: Subscription, strategy: SlowConsumerStrategy | None, now_ms: int) -> None:
        watch = subscription.slow_state
        if watch is None:
            watch = subscription.slow_state = SlowConsumerState(now_ms, now_ms)
        if watch.update(subscription, strategy, now_ms):
            for destination in subscription.destinations:
                self._events.consumer_is_slow(subscription, destination)
        if strategy is not None and watch.should_abort(strategy, now_ms):
            self._abort(subscription, strategy)

    def _abort(self, subscription: Subscription, strategy: SlowConsumerStrategy) -> None:
        """End the subscription, or the whole connection; what it holds goes back."""
        client = subscription.client
        where = ", ".join(map(str, subscription.destinations))
        error = ConsumerTooSlow(
            f"the consumer {subscription.name!r} of {where} does not keep up: its "
            f"{'connection' if strategy.abort_connection else 'subscription'} is ended (slowConsumerStrategy)"
        )
        logger.warning("%s: %s", client.client_id, error)
        self._subscriptions.end(client, subscription)
        self._replies.refuse(client, error, None)
        if strategy.abort_connection:
            client.sink.flush()
            client.sink.abort()


def _cares(policy: PolicyEntry) -> bool:
    return policy.slow_consumer is not None or policy.advisory_for_slow_consumers
