"""Send a snapshot of queues to a client (SUBSCRIBE with browser:true) without removing messages.

A snapshot is what the queues hold when it begins, messages in flight included, in the order in which consumers get it.
It is read from the store page by page, as fast as the client takes it, so that one page is in memory however long the
queues are. A browser is no consumer: it
is no demand, and nothing is remembered of it. What it is given may be acknowledged, which frees its prefetch and is of
no other effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from brokerapp.core.destinations.log_registry import ORDERING
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selective_dispatch import selector_headers
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import log_entry_of, partition
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.message_order import seq_order
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import SubscribeCommand
from brokerapp.model.destination import Destination
from brokerapp.store import StoredLogEntry
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        ConsumersPort,
        Destinations,
        DispatcherPort,
        ExpirationPort,
        Queues,
        Replies,
        RoutingPort,
    )

#: What ActiveMQ lets a browser hold unacknowledged when nobody says otherwise.
DEFAULT_PREFETCH = 500
#: Messages given to the socket before it is looked at whether it takes more.
MAX_BATCH = 50


class Browsers:
    """Serve clients that browse queues."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        consumers: ConsumersPort,
        dispatcher: DispatcherPort,
        expiration: ExpirationPort,
        queues: Queues,
        replies: Replies,
        routing: RoutingPort,
    ) -> None:
        self._context, self._consumers, self._dispatcher = context, consumers, dispatcher
        self._expiration, self._queues, self._replies, self._routing = expiration, queues, replies, routing

    @staticmethod
    def check(subscribe: SubscribeCommand, targets: Iterable[Destination]) -> None:
        """Raise RequestRefused for what cannot be browsed."""
        for each in targets:
            if not each.is_queue:
                raise RequestRefused(f"browser:true: {each} is a topic: it stores no messages to browse")
        if "subscriptionName" in subscribe.options:
            raise RequestRefused("activemq.subscriptionName: a browser cannot be a durable subscription")

    def prefetch(self, queue: Destination) -> int:
        """Return the default prefetch of a browser."""
        policy = self._routing.table.policy_for(queue)
        wanted = policy.queue_browser_prefetch if policy is not None else None
        return DEFAULT_PREFETCH if wanted is None else wanted

    def join(self, subscription: Subscription) -> BrowseCursor:
        """Create the queues that a browser names, as in ActiveMQ; it starts when its SUBSCRIBE is confirmed."""
        for target in subscription.destinations:
            if not target.is_pattern:
                self._queues.ensure(target)
        cursor = subscription.browse_cursor = BrowseCursor(
            subscription=subscription,
            context=self._context,
            consumers=self._consumers,
            dispatcher=self._dispatcher,
            expiration=self._expiration,
            queues=self._queues,
        )
        return cursor


class BrowseCursor:
    """Send one snapshot, as fast as its client takes it."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        consumers: ConsumersPort,
        dispatcher: DispatcherPort,
        expiration: ExpirationPort,
        queues: Destinations,
        subscription: Subscription,
    ) -> None:
        self._commits = context.commits
        self._consumers, self._dispatcher, self._expiration = consumers, dispatcher, expiration
        self._queues = queues
        self._subscription = subscription
        self._logs: deque[MessageLog] = deque()  # not read to their end
        self._page: deque[LogEntry] = deque()
        self._after = 0
        self._upto: Mapping[str, int] = {}  # by log
        self._order_key = seq_order  # what orders the log that is read
        self._is_reading = self._is_finished = False

    def begin(self) -> None:
        """Take the snapshot."""
        self._subscription.started = True
        found: dict[MessageLog, None] = {}
        for target in self._subscription.destinations:
            found |= dict.fromkeys(self._consumers.readable(self._subscription, target))
        self._logs.extend(found)
        self._is_reading = True
        self._commits.read_with(
            lambda store: store.logs.last_seqs([log.name for log in found]), self._on_last_seqs_read
        )

    def _on_last_seqs_read(self, last_seqs: Mapping[str, int]) -> None:
        """Limit the snapshot to what was stored until now, at whichever node."""
        self._is_reading, self._upto = False, last_seqs
        self.resume()

    def stop(self) -> None:
        """Discard the rest of the snapshot."""
        self._is_finished = True
        self._logs.clear()
        self._page.clear()

    def resume(self) -> None:
        """Send what the client can take, and read on when nothing is left."""
        subscription = self._subscription
        if self._is_finished or not subscription.started:
            return
        self._dispatcher.wake(subscription.client)
        while self._page and subscription.is_ready:
            self._deliver()
        if self._page or self._is_reading or subscription.client.is_socket_full:
            return
        if self._logs:
            self._read()
        else:
            self._is_finished = True
            subscription.client.sink.end_of_browse(subscription)

    def _deliver(self) -> None:
        subscription, client = self._subscription, self._subscription.client
        count = min(len(self._page), subscription.credit, MAX_BATCH)
        entries = [self._page.popleft() for _ in range(count)]
        ack_ids: list[str] = []
        if subscription.ack_mode != "auto":
            subscription.credit -= count
            ack_ids = self._dispatcher.ack_ids(subscription, entries)
        client.delivered_count += count
        client.sink.deliver(subscription, entries, ack_ids)

    def _read(self) -> None:
        log, after, self._is_reading = self._logs[0], self._after, True
        if not after:
            ordering = any(reason.startswith(ORDERING) for reason in log.suspend_reasons)
            self._order_key = seq_order if ordering else log.order_key
        if self._order_key is seq_order:
            self._commits.read(log.name, after, PAGE_SIZE, self._on_page_read)
        else:
            self._commits.read_with(
                lambda store: store.entries.read_by_priority(log.name, after, PAGE_SIZE),
                self._on_page_read,
                log.name,
            )

    def _on_page_read(self, found: list[StoredLogEntry]) -> None:
        self._is_reading = False
        if self._is_finished:
            return
        log, now_ms = self._logs[0], clock.now_ms()
        if not self._queues.holds(log):  # deleted meanwhile
            found = []
        entries = [log_entry_of(log.name, each) for each in found if each.seq <= self._upto[log.name]]
        in_time, late = partition(entries, lambda entry: not 0 < entry.message.expires <= now_ms)
        if late:
            self._expiration.sweep((log,))
        self._page.extend(each for each in in_time if self._matches(log, each))
        if found and (self._order_key is not seq_order or len(entries) == len(found)):
            self._after = self._order_key(found[-1])
        else:
            self._logs.popleft()
            self._after = 0
        self.resume()

    def _matches(self, log: MessageLog, entry: LogEntry) -> bool:
        selector = self._subscription.consumer_selector
        entry.redelivery_count = log.redelivery_count_of(entry)
        return selector is None or selector.matches(selector_headers(entry, log.destination))
