"""Record durable subscriptions in the cluster before clients create or delete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.cluster.change_log import ChangeLog
from brokerapp.cluster.record import ClusterChange
from brokerapp.core.ports import Authorizer, DurableChanges, Replies
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.subscribe_options import subscription_identity
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import ClientCommand, SubscribeCommand, UnsubscribeCommand
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.system import clock
from brokerapp.system.timers import Timers

#: How long a consumer of a durable subscription waits for one at another broker to leave, and how often it looks,
#: milliseconds: who changes brokers may be faster than the brokers' telling each other.
TAKEOVER_MS, TAKEOVER_STEP_MS = 1_000, 50


class DurableSubscriptionChanges:
    """Handles SUBSCRIBE and UNSUBSCRIBE of clients in a cluster."""

    def __init__(
        self,
        *,
        recording: ChangeLog,
        clients: Mapping[str, Client],
        commands: Mapping[type[ClientCommand], Callable[[Client, Any], None]],
        durables: DurableChanges,
        authorizer: Authorizer,
        replies: Replies,
        timers: Timers,
    ) -> None:
        self._recording, self._clients = recording, clients
        self._subscribe, self._unsubscribe = commands[SubscribeCommand], commands[UnsubscribeCommand]
        self._durables, self._authorizer, self._replies, self._timers = durables, authorizer, replies, timers

    @property
    def handlers(self) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Return the handlers that replace those of a broker outside of clusters."""
        return {SubscribeCommand: self.subscribe, UnsubscribeCommand: self.unsubscribe}

    def subscribe(self, client: Client, subscribe: SubscribeCommand, waited_ms: int = 0) -> None:
        """Consume; a durable subscription that does not exist so is recorded first. Raises RequestRefused."""
        go_on = self._subscribe
        if "subscriptionName" not in subscribe.options:
            go_on(client, subscribe)
            return
        topics = Destination.parse_list(subscribe.destination)
        wanted = subscription_identity(client, subscribe, topics)
        assert wanted is not None
        if waited_ms < TAKEOVER_MS and self._is_leaving(wanted):
            again = waited_ms + TAKEOVER_STEP_MS
            self._timers.at(clock.now_ms() + TAKEOVER_STEP_MS, lambda: self._retry(client, subscribe, again))
            return
        if not (wanted.durable and self._durables.would_change(wanted)):
            go_on(client, subscribe)
            return
        for topic in topics:
            self._authorizer.require(client, "read", topic)
        change = ClusterChange.of_subscription(wanted)
        self._when_recorded(client, subscribe.receipt, change, lambda: go_on(client, subscribe))

    def _is_leaving(self, wanted: SubscriptionIdentity) -> bool:
        """Whether only another broker consumes a durable subscription: its client may have left there just now."""
        durable = self._durables.find_identity(wanted)
        if durable is None or wanted.shared or not durable.is_active:
            return False
        return all(each.client.cluster_member for each in durable.log.consumers)

    def _retry(self, client: Client, subscribe: SubscribeCommand, waited_ms: int) -> None:
        if client.id in self._clients:
            try:
                self.subscribe(client, subscribe, waited_ms)
            except RequestRefused as error:
                self._replies.refuse(client, error, subscribe.receipt)

    def unsubscribe(self, client: Client, unsubscribe: UnsubscribeCommand) -> None:
        """Consume no longer; the end of a durable subscription is recorded first. Raises RequestRefused."""
        go_on = self._unsubscribe
        if unsubscribe.subscription_name is None:
            go_on(client, unsubscribe)
            return
        owner = client.client_id if client.has_client_id else ""
        durable = self._durables.find(owner, unsubscribe.subscription_name)
        if durable.is_active:  # which it will say
            go_on(client, unsubscribe)
            return
        for topic in durable.identity.topics:
            self._authorizer.require_read(client, topic)
        change = ClusterChange.of_subscription(durable.identity, False)
        self._when_recorded(
            client, unsubscribe.receipt, change, lambda: self._on_end_recorded(client, durable, unsubscribe)
        )

    def _on_end_recorded(self, client: Client, durable: DurableSubscription, unsubscribe: UnsubscribeCommand) -> None:
        """Remove the durable subscription, unless it is gone by now, and confirm."""
        if self._durables.known(durable.log.name) is durable:
            self._durables.remove(durable)
        self._replies.confirm_after(client, unsubscribe.receipt)

    def _when_recorded(
        self, client: Client, receipt: str | None, change: ClusterChange, go_on: Callable[[], None]
    ) -> None:
        """Do this when the change is recorded; the client is not read from until then."""
        client.sink.pause_reading(True)

        def recorded(why_not: str) -> None:
            if client.id not in self._clients:
                return
            try:
                if why_not:
                    raise RequestRefused(why_not)
                go_on()
            except RequestRefused as error:
                self._replies.refuse(client, error, receipt)
            client.update_reading()
            client.sink.flush()

        self._recording.change(change, recorded)
