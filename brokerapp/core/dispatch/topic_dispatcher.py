"""Hand messages of topics to their subscribers, and let them wait for those that have no credit.

What is in no log here waits in the same way: messages of other brokers of a cluster, for one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from brokerapp.core.clients.bridge_clients import delivering_bridge
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.selective_dispatch import SelectorEvaluation
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import group_by_way, partition, topic_entries
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry, accept_remote
from brokerapp.engine.entries.topic_batch import MAX_OFFERED_BYTES, TopicBatch, TopicEntries, TopicOffer, offers
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message, RoutedCopy

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AccountingPort,
        AdvisoriesPort,
        BrokerContext,
        DeadLettersPort,
        DispatcherPort,
        FlowControlPort,
        Placement,
        RetainedPort,
        TopicSubscribers,
    )

_expires = attrgetter("message.expires")


class TopicDispatcher:
    """Hands messages of topics to their subscribers."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        accounting: AccountingPort,
        advisories: AdvisoriesPort,
        dead_letters: DeadLettersPort,
        dispatcher: DispatcherPort,
        flow_control: FlowControlPort,
        placement: Placement,
        retained: RetainedPort,
        subscribers: TopicSubscribers,
    ) -> None:
        self._counters, self._accounting, self._advisories = context.counters, accounting, advisories
        self._dead_letters, self._dispatcher, self._flow_control = dead_letters, dispatcher, flow_control
        self._placement, self._retained, self._subscribers = placement, retained, subscribers
        self._pending_subscriptions: dict[Subscription, None] = {}  # with messages pending

    # -- what waits

    def add_pending(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None:
        """Let messages that are in no log here wait for a subscription until it has credit."""
        if entries:
            subscription.pending.add(entries)
            self._pending_subscriptions[subscription] = None

    def retry(self, subscription: Subscription) -> None:
        """Dispatch what waits for a subscription at the next tick: it may have credit now."""
        self._pending_subscriptions[subscription] = None

    def drop_pending(self, subscription: Subscription) -> None:
        """Give a subscription nothing of what waits for it: it ends."""
        self._pending_subscriptions.pop(subscription, None)

    def clear_pending(self) -> None:
        """Give nobody what waits: nothing more is given out."""
        self._pending_subscriptions.clear()

    def run_once(self) -> None:
        """Dispatch what waits for subscriptions that have credit."""
        while ready := [each for each in self._pending_subscriptions if each.is_ready or not each.pending]:
            for subscription in ready:
                self._dispatch_pending(subscription)
            self._flow_control.on_topics_drained()

    # -- what is published

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
        may_go = not (is_expired or self._dispatcher.is_stopped) and offer.size <= MAX_OFFERED_BYTES
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
            ack_ids = self._dispatcher.ack_ids(subscription, entries)
        client.delivered_count += len(entries)
        self._dispatcher.wake(client)
        client.sink.deliver(subscription, entries, ack_ids)
