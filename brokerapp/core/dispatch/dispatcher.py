"""Hand messages of logs and topics to consumers.

Reading the sockets collects work (`touch`, `wake`); `run_once` does it once a tick, so that a burst costs one pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from brokerapp.core.clients.bridge_clients import delivering_bridge
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selective_dispatch import SelectorEvaluation
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import (
    group_by_way,
    log_entry_of,
    partition,
    topic_entries,
)
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry, accept_remote
from brokerapp.engine.entries.topic_batch import MAX_OFFERED_BYTES, TopicBatch, TopicEntries, TopicOffer, offers
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message, RoutedCopy
from brokerapp.store import StoredLogEntry
from brokerapp.tracing.schema import DISPATCH

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AccountingPort,
        AdvisoriesPort,
        BrokerContext,
        DeadLettersPort,
        FlowControlPort,
        HeldSendsPort,
        Placement,
        RetainedPort,
        TopicSubscribers,
    )

_expires = attrgetter("message.expires")


class Dispatcher:
    """Hand messages of logs and topics to consumers."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        advisories: AdvisoriesPort,
        accounting: AccountingPort,
        dead_letters: DeadLettersPort,
        flow_control: FlowControlPort,
        held: HeldSendsPort,
        placement: Placement,
        retained: RetainedPort,
        subscribers: TopicSubscribers,
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._accounting, self._advisories, self._dead_letters = accounting, advisories, dead_letters
        self._flow_control, self._held, self._placement = flow_control, held, placement
        self._retained, self._subscribers = retained, subscribers
        self._ready_logs: dict[MessageLog, None] = {}  # a set that keeps order, so that delivery is fair
        self._pending_subscriptions: dict[Subscription, None] = {}  # of topics, with messages pending
        self._unflushed_clients: dict[Client, None] = {}
        self._exhausting: list[tuple[Subscription, Callable[[], None]]] = []  # see `when_exhausted`
        self.is_stopped = False  #: the node ends: nothing more is given out

    # -- what is to be done at the next tick

    def touch(self, log: MessageLog) -> None:
        """Dispatch from this log at the next tick."""
        self._ready_logs[log] = None

    def untouch(self, log: MessageLog) -> None:
        """Dispatch no more from a log that was removed."""
        self._ready_logs.pop(log, None)

    def add_pending(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None:
        """Let messages that are in no log here wait for a subscription until it has credit."""
        if entries:
            subscription.pending.add(entries)
            self._pending_subscriptions[subscription] = None

    def wake(self, client: Client) -> None:
        """Flush what a client is to be sent at the next tick."""
        self._unflushed_clients[client] = None

    def when_exhausted(self, subscription: Subscription, then: Callable[[], None]) -> None:
        """Call back when what the logs of a subscription hold here and in the store was offered to it."""
        self._exhausting.append((subscription, then))

    # -- once a tick

    def run_once(self) -> None:
        """Dispatch what can be dispatched, then flush it to the sockets."""
        if self.is_stopped:
            self._ready_logs.clear()
            self._pending_subscriptions.clear()
        while self._ready_logs:
            touched, self._ready_logs = self._ready_logs, {}
            for log in touched:
                for subscription, entries in log.dispatch():
                    self.dispatch(log, subscription, entries)
                self._page_in(log)
                if self._held.holds((log.name,)):
                    self._held.retry(log.name, is_consumed=bool(log.consumers))
        while ready := [each for each in self._pending_subscriptions if each.is_ready or not each.pending]:
            for subscription in ready:
                self._dispatch_pending(subscription)
            self._flow_control.on_topics_drained()
        if self._exhausting:
            self._tell_exhausted()
        dirty, self._unflushed_clients = self._unflushed_clients, {}
        for client in dirty:
            client.sink.flush()

    def _tell_exhausted(self) -> None:
        """Call back where nothing is being read from the store that a subscription might get."""
        waiting, self._exhausting = self._exhausting, []
        for subscription, then in waiting:
            if any(cast("MessageLog", log).paging for log in subscription.logs):
                self._exhausting.append((subscription, then))
            else:
                then()

    def _page_in(self, log: MessageLog) -> None:
        after = log.loaded_up_to if log.needs_page else log.lookahead_position
        if after is None:
            return
        load = log.on_page_read if log.needs_page else partial(log.on_lookahead_read, after=after)
        log.paging, window = True, log.generation

        def loaded(found: list[StoredLogEntry]) -> None:
            load((log_entry_of(log.name, each) for each in found), window)
            if window == log.generation:
                self._dead_letters.remove_damaged(log, found)
            self._ready_logs[log] = None

        if log.policy.prioritized:
            self._commits.read_with(
                lambda store: store.entries.read_by_priority(log.name, after, PAGE_SIZE), loaded, log.name
            )
        else:
            self._commits.read(log.name, after, PAGE_SIZE, loaded)

    def resume(self, subscription: Subscription) -> None:
        """Dispatch to a subscription again, which has credit or a free socket now."""
        for log in subscription.logs:
            self.touch(cast("MessageLog", log))
        if subscription.pending:
            self._pending_subscriptions[subscription] = None
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.drain(subscription)
        if subscription.browse_cursor is not None:
            subscription.browse_cursor.resume()

    # -- queues

    def dispatch(self, log: MessageLog, subscription: Subscription, entries: list[LogEntry]) -> None:
        """Hand messages of a queue to a consumer; those that expired meanwhile are treated as expired."""
        now_us = time.time_ns() // 1000  # not that of a tick, nor when they were born: latencies are told from it
        now_ms = now_us // 1000
        if any(map(_expires, entries)):
            entries, expired = partition(entries, lambda entry: not 0 < entry.message.expires <= now_ms)
            for entry in expired:
                subscription.credit += 1
                self._dead_letters.expire(log, entry)
            if expired and log.ready:
                self._ready_logs[log] = None
        client: Client = subscription.client
        log.counts.count_dispatched([entry.message.born_us for entry in entries], now_us)
        self._counters.mark_changed(log.counts)
        client.delivered_count += len(entries)
        self._unflushed_clients[client] = None
        self._accounting.record(DISPATCH, log.name, entries, client.client_id, now_us)
        if self._advisories.watching:
            self._advisories.dispatched(log.destination, entries)
        if subscription.ack_mode != "auto":
            client.sink.deliver(subscription, entries, self.ack_ids(subscription, entries))
            return
        subscription.credit += len(entries)
        if log.ready:  # what its credit did not reach
            self._ready_logs[log] = None
        client.sink.deliver(subscription, entries, ())
        self._accounting.on_acknowledged(log, entries, client, time.time_ns() // 1000)
        self._commits.remove_settled(entries)

    @staticmethod
    def ack_ids(subscription: Subscription, entries: Sequence[LogEntry]) -> list[str]:
        """Return the ids by which a client acknowledges deliveries: its own in STOMP 1.2, message-ids before."""
        client: Client = subscription.client
        if client.names_messages:
            for entry in entries:
                subscription.add_unacked(entry.message.id, entry)
            return [entry.message.id for entry in entries]
        first = client.last_ack_number + 1
        client.last_ack_number += len(entries)
        begin = f"{subscription.key}-".__add__
        ack_ids = list(map(begin, map(str, range(first, first + len(entries)))))
        subscription.unacked.update(zip(ack_ids, entries, strict=True))
        return ack_ids

    # -- topics

    def drop_pending(self, subscription: Subscription) -> None:
        """Give a subscription nothing of what waits for it: it ends."""
        self._pending_subscriptions.pop(subscription, None)

    def publish(self, published: Sequence[TopicBatch], sender: Client | None = None) -> None:
        """Dispatch messages that came at once to the subscribers of their topics, here and at other nodes."""
        for each in published:
            self._placement.topic_listeners.publish(each.messages, each.copy, partial(delivering_bridge, sender=sender))
        self.publish_here(published, sender)

    def publish_here(self, published: Sequence[TopicBatch], sender: Client | None = None) -> None:
        """Count messages that came at once, and dispatch them to the subscribers of their topics at this node."""
        for each in published:
            stats = self._counters.of(each.copy.destination)
            stats.count_arrivals(BodySizes.of(each.messages))
            self._counters.mark_changed(stats)
        self.publish_locally(published, sender)

    def publish_locally(self, published: Sequence[TopicBatch], sender: Client | None = None) -> None:
        """Dispatch messages to the subscribers here, but for those who do not want what their own client sends."""
        wanted: dict[Subscription, list[TopicEntries]] = {}
        for messages, copy, places in published:
            kept, subscribers = self._retained.published(messages, copy), self._subscribers.of(copy.destination)
            if self._advisories.watching:
                self._advisories.delivered(copy.destination, kept, heard=bool(subscribers))
            if not subscribers:
                continue
            came = TopicEntries(copy.destination, topic_entries(kept, copy), places)
            evaluations: list[SelectorEvaluation] = []  # of the entries, once a subscriber has a selector
            for subscription in subscribers:
                if subscription.no_local and subscription.client is sender:
                    continue
                selector, part = subscription.selector, came
                if selector is not None:
                    evaluations = evaluations or [SelectorEvaluation(each, came.topic) for each in came.entries]
                    part = came.filtered([bool(wants(selector)) for wants in evaluations])
                if part.entries:
                    wanted.setdefault(subscription, []).append(part)
        for offer in offers(wanted):
            self._offer(offer)

    def _offer(self, offer: TopicOffer[Subscription]) -> None:
        """Hand messages to those who wait for just such; let them wait for the others."""
        now_us, taken = time.time_ns() // 1000, []
        entries, is_expired = offer.entries, 0 < offer.expires_ms <= now_us // 1000
        may_go = not (is_expired or self.is_stopped) and offer.size <= MAX_OFFERED_BYTES
        for subscription in offer.subscribers:
            has_credit = subscription.ack_mode == "auto" or subscription.credit >= len(entries)
            if may_go and has_credit and subscription.is_ready and not subscription.pending:
                self._deliver(subscription, entries)
                taken.append(subscription)
                continue
            self.add_pending(subscription, entries)
            if subscription.pending.is_over_limit:
                self._dispatch_pending(subscription)
                for entry in subscription.pending.discard_excess(now_us // 1000):
                    self._discard(subscription, entry)
        if taken:
            for part in offer.parts:
                self._accounting.count_dispatched(taken, part, now_us)

    def offer_to_subscriber(
        self, subscription: Subscription, message: Message, copy: RoutedCopy, queue: Destination | None = None
    ) -> None:
        """Let a message of a topic wait for one subscriber, if its selector takes it.

        With a `queue` the subscriber consumes from that queue, which gets copies of what the topic gets.
        """
        [entry] = topic_entries((message,), copy, queue)
        if subscription.selector is None or SelectorEvaluation(entry, copy.destination)(subscription.selector):
            self.add_pending(subscription, (entry,))

    def _discard(self, subscription: Subscription, entry: LogEntry) -> None:
        """Account for a message of a topic that a subscriber is too slow for."""
        topic, consumer = Destination.parse(entry.shown_destination), subscription.client.client_id
        stats = self._counters.of(topic)
        stats.DroppedCount += 1
        self._counters.mark_changed(stats)
        self._advisories.discarded(subscription, entry)
        self._dead_letters.discard_for_subscriber(entry, "discarded for a slow subscriber", consumer)

    def _dispatch_pending(self, subscription: Subscription) -> None:
        """Hand a subscription as much of what waits for it in no log here as it has credit for."""
        now_us = time.time_ns() // 1000
        while subscription.pending and subscription.is_ready:
            entries: Sequence[LogEntry] = subscription.take_pending()
            if any(map(_expires, entries)):
                entries, expired = partition(entries, lambda entry: not 0 < entry.message.expires <= now_us // 1000)
                for entry in expired:
                    self._expire_pending(subscription, entry)
            for way, alike in group_by_way(entries):
                if not isinstance(alike[0], RemoteLogEntry):
                    part = TopicEntries(Destination.parse(way[1]), alike)
                    self._accounting.count_dispatched((subscription,), part, now_us)
                elif subscription.ack_mode == "auto":  # the other broker, which keeps them, accounts for them
                    accept_remote(alike)
            self._deliver(subscription, entries)
        if not subscription.pending:
            self._pending_subscriptions.pop(subscription, None)

    def _expire_pending(self, subscription: Subscription, entry: LogEntry) -> None:
        if isinstance(entry, RemoteLogEntry):
            entry.owner.expire(entry)
        else:
            self._dead_letters.discard_for_subscriber(entry, "expired", subscription.client.client_id, expired=True)

    def _deliver(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None:
        """Hand messages that are in no log here to a subscription."""
        client: Client = subscription.client
        ack_ids: Sequence[str] = ()
        if subscription.ack_mode != "auto":
            subscription.credit -= len(entries)
            ack_ids = self.ack_ids(subscription, entries)
        client.delivered_count += len(entries)
        self.wake(client)
        client.sink.deliver(subscription, entries, ack_ids)
