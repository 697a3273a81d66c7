"""Change how many messages a consumer may hold, as clients of OpenWire ask for it.

A consumer may hold as many messages as its prefetch, and more when its client says that the application has them. One
with a prefetch of 0 gets a message only when it asks for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.commands import PullCommand, WindowCommand
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DispatcherPort

#: Milliseconds that a pull waits which shall not wait: what the store holds is read within them.
SHORTEST_PULL_MS = 20


class ConsumerWindows:
    """Changes the credit of consumers."""

    def __init__(self, *, context: BrokerContext, dispatcher: DispatcherPort) -> None:
        self._timers, self._dispatcher = context.timers, dispatcher

    def extend(self, client: Client, window: WindowCommand) -> None:
        """Let a consumer hold more messages, or fewer."""
        subscription = client.subscriptions.get(window.subscription)
        if subscription is not None:
            subscription.credit += window.count
            if window.count > 0:
                self._dispatcher.resume(subscription)

    def pull(self, client: Client, pull: PullCommand) -> None:
        """Let a consumer have one message, or tell it in time that there is none."""
        subscription = client.subscriptions.get(pull.subscription)
        if subscription is None:
            return
        subscription.credit += 1
        self._dispatcher.resume(subscription)
        if pull.timeout_ms == 0:
            return
        before = subscription.delivered_count
        wait_ms = max(pull.timeout_ms, SHORTEST_PULL_MS)

        def end() -> None:
            if subscription.delivered_count == before and self._is_there(subscription):
                subscription.credit -= 1
                client.sink.end_of_browse(subscription)
                self._dispatcher.wake(client)

        self._timers.at(clock.now_ms() + wait_ms, end)

    @staticmethod
    def _is_there(subscription: Subscription) -> bool:
        return bool(subscription.client.subscriptions.get(subscription.name) is subscription)
