"""Change how many messages a consumer may hold, as clients of OpenWire ask for it.

A consumer may hold as many messages as its prefetch, and more when its client says that the application has them. One
with a prefetch of 0 gets a message only when it asks for one: its credit is the number of its pulls that are not
answered yet.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import PrefetchCommand, PullCommand, WindowCommand
from brokerapp.system import clock
from brokerapp.system.timers import Timer

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DispatcherPort, Placement

#: Milliseconds that a pull which shall not wait gives another node, which owns the queue, to send a message.
REMOTE_PULL_MS = 100
#: Pulls of one consumer that are not answered yet: its library has one at a time.
MAX_WAITING_PULLS = 1000


def _answered_count(subscription: Subscription) -> int:
    return subscription.pull_count - subscription.credit


class ConsumerWindows:
    """Changes the credit of consumers."""

    def __init__(self, *, context: BrokerContext, dispatcher: DispatcherPort, placement: Placement) -> None:
        self._timers, self._dispatcher, self._placement = context.timers, dispatcher, placement
        #: What ends pulls of a consumer that wait for a time, and the numbers of these pulls.
        self._pull_timers: dict[Subscription, deque[tuple[int, Timer]]] = {}

    def extend(self, client: Client, window: WindowCommand) -> None:
        """Let a consumer hold more messages, or fewer."""
        subscription = client.subscriptions.get(window.subscription)
        if subscription is not None:
            self._change(subscription, window.count)

    def change_prefetch(self, client: Client, change: PrefetchCommand) -> None:
        """Let a consumer hold another number of messages from now on."""
        subscription = client.subscriptions.get(change.subscription)
        if subscription is None or change.prefetch < 0:
            return
        more, subscription.prefetch = change.prefetch - subscription.prefetch, change.prefetch
        subscription.extension -= more
        self._change(subscription, more)

    def pull(self, client: Client, pull: PullCommand) -> None:
        """Let a consumer have one message, or tell it that there is none: at once, or when it waited long enough."""
        subscription = client.subscriptions.get(pull.subscription)
        if subscription is None or subscription.prefetch:
            return
        if subscription.credit >= MAX_WAITING_PULLS:
            raise RequestRefused(f"a consumer waits for at most {MAX_WAITING_PULLS} messages that it pulled")
        self._change(subscription, 1)
        subscription.pull_count += 1
        number = subscription.pull_count

        def end() -> None:
            self._cancel_answered(subscription)
            if _answered_count(subscription) < number and client.subscriptions.get(subscription.name) is subscription:
                self._change(subscription, -1)
                client.sink.end_of_browse(subscription)
                self._dispatcher.wake(client)

        self._cancel_answered(subscription)
        if pull.timeout_ms < 0 and not subscription.has_remote_logs:
            self._dispatcher.when_exhausted(subscription, end)
        elif pull.timeout_ms:
            wait_ms = pull.timeout_ms if pull.timeout_ms > 0 else REMOTE_PULL_MS
            timer = self._timers.at(clock.now_ms() + wait_ms, end)
            self._pull_timers.setdefault(subscription, deque()).append((number, timer))

    def _cancel_answered(self, subscription: Subscription) -> None:
        """Cancel what would end pulls that were answered: they may be many, and due in hours."""
        waiting = self._pull_timers.get(subscription, ())
        while waiting and waiting[0][0] <= _answered_count(subscription):
            waiting.popleft()[1].cancel()

    def on_consumer_stopped(self, subscription: Subscription) -> None:
        """Cancel what would end the pulls of a consumer that is gone."""
        for _, timer in self._pull_timers.pop(subscription, ()):
            timer.cancel()

    def _change(self, subscription: Subscription, count: int) -> None:
        """Let a consumer have so many messages more, wherever its queues are at home."""
        subscription.credit += count
        subscription.extension += count
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.change_credit(subscription, count)
        if count > 0:
            self._dispatcher.resume(subscription)
