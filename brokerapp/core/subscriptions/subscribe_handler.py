"""Create subscriptions as SUBSCRIBE commands ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.core.subscriptions.consumer_policy import default_prefetch, is_exclusive, limit_pending
from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.core.subscriptions.sources import SubscriptionSources
from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.subscribe_options import (
    bridge_eligibility_of,
    delegated_principal,
    is_true,
    number_of,
    priority_of,
    subscription_identity,
    subscription_name,
)
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import SubscribeCommand
from brokerapp.model.destination import Destination
from brokerapp.selectors import compile_selector

if TYPE_CHECKING:
    from brokerapp.core.ports import BrowsersPort, DurablesPort, Placement, Replies, RoutingPort


class SubscribeHandler:
    """Creates subscriptions as clients ask for them."""

    def __init__(
        self,
        *,
        browsers: BrowsersPort,
        durables: DurablesPort,
        placement: Placement,
        replies: Replies,
        routing: RoutingPort,
        served: ServedSubscriptions,
        sources: SubscriptionSources,
        subscriptions: Subscriptions,
    ) -> None:
        self._browsers, self._durables, self._placement = browsers, durables, placement
        self._replies, self._routing, self._served = replies, routing, served
        self._sources, self._subscriptions = sources, subscriptions

    def subscribe(self, client: Client, subscribe: SubscribeCommand) -> None:
        """Create a subscription and serve it; messages follow the receipt. Raises RequestRefused."""
        targets = self._sources.open(client, subscribe)
        if subscribe.browser:
            self._browsers.check(subscribe, targets)
        selector = compile_selector(subscribe.selector) if subscribe.selector else None
        wanted = subscription_identity(client, subscribe, targets)
        retroactive = is_true(subscribe.options, "retroactive")
        crossing = bridge_eligibility_of(client, subscribe.options, selector)
        prefetch = self._prefetch(subscribe, targets[0], is_named=wanted is not None)
        name = subscription_name(subscribe.id, subscribe.destination)
        old = client.subscriptions.get(name)
        if old is not None and self._goes_on(old, subscribe, targets, crossing):
            return
        self._subscriptions.check_quota(client, targets)
        if wanted and (ask := self._placement.subscription_removal.question_before_claim(wanted)) is not None:
            self._placement.pending_confirmations.wait(
                client, subscribe.receipt, ask, lambda: self.subscribe(client, subscribe)
            )
            return
        durable = self._durables.claim(wanted, retroactive) if wanted else None
        client.last_key += 1
        policy = self._routing.table.policy_for(targets[0])
        subscription = Subscription(
            subscribe.id,
            name,
            str(client.last_key),
            client,
            targets,
            subscribe.ack_mode,
            prefetch,
            None if durable else crossing or selector,
            subscribe.transformation,
            priority=priority_of(subscribe.options),
            exclusive=is_exclusive(policy, subscribe.options),
            no_local=is_true(subscribe.options, "noLocal"),
            retroactive=retroactive,
            bridge_eligibility=crossing,
            principal=delegated_principal(client, subscribe.options),
            takeover=wanted,
        )
        limit_pending(subscription, policy, number_of(subscribe.options, "maximumPendingMessageLimit", 0))
        self._subscriptions.add(subscription)
        if subscribe.browser:
            cursor = self._browsers.join(subscription)
            self._served.announce(subscription)
            self._replies.confirm_after(client, subscribe.receipt, cursor.begin)
            return
        if durable is not None:
            self._durables.join(subscription, durable)
        elif not self._subscriptions.admit(subscription):
            self._replies.confirm_after(client, subscribe.receipt)
            return
        else:
            self._served.join(subscription, retroactive=retroactive)
        self._served.announce(subscription)

        def confirm() -> None:
            self._replies.confirm_after(client, subscribe.receipt, lambda: self._served.start(subscription))

        self._placement.when_propagated(lambda: self._placement.outbound_consumers.when_known(subscription, confirm))

    def _prefetch(self, subscribe: SubscribeCommand, target: Destination, *, is_named: bool) -> int:
        """Return how many messages the consumer may hold. Raises RequestRefused."""
        by_default = default_prefetch(self._routing.table.policy_for(target), target, is_named=is_named)
        if subscribe.browser:
            by_default = self._browsers.prefetch(target)
        prefetch = number_of(subscribe.options, "prefetchSize", by_default)
        if prefetch < 0:
            raise RequestRefused(f"activemq.prefetchSize:{prefetch} is less than nothing")
        return prefetch

    def _goes_on(
        self,
        old: Subscription,
        subscribe: SubscribeCommand,
        targets: tuple[Destination, ...],
        crossing: BridgeEligibility | None,
    ) -> bool:
        """Return whether the subscription of a bridge of this name goes on, for other consumers; any other ends."""
        known = old.bridge_eligibility
        if crossing is None or known is None or targets != old.destinations or not crossing.goes_on(known):
            self._subscriptions.end(old.client, old)
            return False
        self._subscriptions.update(old, crossing, priority_of(subscribe.options))
        self._replies.confirm_after(old.client, subscribe.receipt)
        return True
