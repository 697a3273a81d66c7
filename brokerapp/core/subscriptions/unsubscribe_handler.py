"""End or delete subscriptions as UNSUBSCRIBE commands ask for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.subscribe_options import subscription_name
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import UnsubscribeCommand
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import Authorizer, ConsumersPort, DurablesPort, Placement, Replies


class UnsubscribeHandler:
    """Ends subscriptions, and deletes durable ones, as clients ask for it."""

    def __init__(
        self,
        *,
        authorizer: Authorizer,
        consumers: ConsumersPort,
        durables: DurablesPort,
        placement: Placement,
        replies: Replies,
        subscriptions: Subscriptions,
    ) -> None:
        self._consumers = consumers
        self._authorizer, self._durables, self._placement = authorizer, durables, placement
        self._replies, self._subscriptions = replies, subscriptions

    def unsubscribe(self, client: Client, unsubscribe: UnsubscribeCommand) -> None:
        """End a subscription, what it holds goes back; or delete durable ones. Raises RequestRefused."""
        if unsubscribe.keep is not None:
            if client.is_broker:
                self._durables.remove_unused_of_bridge(client.client_id, unsubscribe.keep)
            self._replies.confirm_after(client, unsubscribe.receipt)
            return
        if unsubscribe.subscription_name is not None:
            owner = client.client_id if client.has_client_id else ""
            durable = self._durables.find(owner, unsubscribe.subscription_name)
            for topic in durable.identity.topics:
                self._authorizer.require_read(client, topic)
            drop = partial(self._placement.subscription_removal.remove, durable)
            confirm = partial(self._replies.confirm, client, unsubscribe.receipt)
            self._placement.pending_confirmations.wait(client, unsubscribe.receipt, drop, confirm)
            return
        subscription = _subscription_named(client, unsubscribe)
        if subscription.browse_cursor is None:  # what was browsed never left its queue
            held = subscription.unacked
            unseen = [each for each in unsubscribe.unseen if each in held and is_from_log(held[each])]
            self._consumers.requeue([held.pop(each) for each in unseen], seen=False)
        self._subscriptions.end(client, subscription)
        self._replies.confirm_after(client, unsubscribe.receipt)


def _subscription_named(client: Client, unsubscribe: UnsubscribeCommand) -> Subscription:
    """Return the subscription that an UNSUBSCRIBE names. Raises RequestRefused.

    STOMP 1.0 may name a destination alone: then it is the oldest subscription of that destination, as one without an id
    is named by it, and one with an id may be.
    """
    name = subscription_name(unsubscribe.id, unsubscribe.destination)
    found = client.subscriptions.get(name)
    if found is None and unsubscribe.id is None:
        targets = Destination.parse_list(name)
        found = next((each for each in client.subscriptions.values() if each.destinations == targets), None)
    if found is None:
        raise RequestRefused(f"no subscription matched {name!r}")
    return found
