"""Attach consumers to logs, those created later included, and return their messages when they leave."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.bridge_rate_filter import BridgeRateFilter
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import closing_mark, open_mark
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.engine.entries.log_entry import UNCOMMITTED, LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.engine.routing.consumer_queues import is_consumer_queue
from brokerapp.engine.routing.destination_trie import DestinationTrie, matches
from brokerapp.model.destination import Destination
from brokerapp.system import clock
from brokerapp.tracing.consumers import ConsumerRecorder
from brokerapp.tracing.schema import REDELIVER

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        DeadLettersPort,
        DispatchQueue,
        Placement,
        Queues,
        RedeliveryPort,
        RoutingPort,
    )

#: Why a queue gives out nothing for a moment: it waits for more consumers (consumersBeforeDispatchStarts).
GATHERING = "gathering"


class Consumers:
    """Attaches consumers to logs and detaches them; the store has a recovery mark of each consumed log."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        dead_letters: DeadLettersPort,
        dispatcher: DispatchQueue,
        placement: Placement,
        queues: Queues,
        recorder: ConsumerRecorder,
        redelivery: RedeliveryPort,
        routing: RoutingPort,
    ) -> None:
        self._commits, self._counters, self._timers = context.commits, context.counters, context.timers
        self._session = context.session
        self._may, self._dispatcher, self._placement = authorizer.may, dispatcher, placement
        self._queues, self._redelivery, self._routing = queues, redelivery, routing
        self._dead_letters, self._recorder = dead_letters, recorder
        self._patterns: DestinationTrie[Subscription] = DestinationTrie()

    # -- who begins

    def join(self, subscription: Subscription, queue: Destination) -> None:
        """Consume from a queue, or from all that match a pattern and may be read, later ones included."""
        if not queue.is_pattern:
            self.attach(subscription, self._queues.ensure(queue))
            return
        self._patterns.add(queue.name, subscription)
        for log in self.readable(subscription, queue):
            self.attach(subscription, log)
        is_literal = is_consumer_queue(self._routing.table.definitions, queue.name)
        if is_literal and self._may(subscription, "read", queue) and self._may_exist(subscription, queue):
            self.attach(subscription, self._queues.ensure(queue))

    def readable(self, subscription: Subscription, queue: Destination) -> list[MessageLog]:
        """Return the log of a queue, or those that match a pattern and may be read."""
        if not queue.is_pattern:
            return [self._queues[str(queue.physical)]] if queue.physical in self._queues else []
        return [
            log
            for log in self._queues
            if log.destination.kind is queue.kind
            and (log.destination == queue or not log.destination.is_pattern)
            and matches(queue.name, log.destination.name)
            and self._may(subscription, "read", log.destination)
        ]

    def _may_exist(self, subscription: Subscription, queue: Destination) -> bool:
        """Whether the queue is there, or its first consumer may create it."""
        policy = self._routing.table.policy_for(queue)
        forbidden = policy is not None and policy.auto_create is False
        return queue in self._queues or (not forbidden and self._may(subscription, "admin", queue))

    def on_queue_added(self, log: MessageLog) -> None:
        """Attach the consumers to a new queue whose patterns match it."""
        queue = log.destination
        for subscription in self._patterns.find(queue.name):
            literally = queue in subscription.destinations or subscription.client.is_internal
            wanted = not queue.is_pattern or literally
            if wanted and self._may(subscription, "read", queue):
                self.attach(subscription, log)

    def attach(self, subscription: Subscription, log: MessageLog) -> None:
        """Consume from this log, wherever it is at home; whoever comes from another node takes it to be here."""
        if log.is_remote and not subscription.owner_session:
            self._placement.outbound_consumers.attach(subscription, log)
        else:
            self.attach_local(subscription, log)
        self._placement.selector_interest.on_consumers_changed(log)

    def attach_local(self, subscription: Subscription, log: MessageLog) -> None:
        """Consume from a log that is, or is about to be, at home here."""
        if subscription in log.consumers:
            return
        is_first = not log.consumers
        log.consumers.append(subscription)
        self._recorder.on_subscribed(log.name, subscription.client.client_id)
        if is_first or log.shared:
            self.mark(log)
        if log not in subscription.logs:
            subscription.logs.append(log)
        log.counts.ConsumerCount = len(log.consumers)
        self._counters.mark_changed(log.counts)
        self._dispatcher.touch(log)
        if log.policy.start_delay_ms:
            self._gather(log)
        if log.bridge_filter is None and isinstance(subscription.selector, BridgeEligibility):
            log.bridge_filter = BridgeRateFilter(log.name, log.consumers, clock.now_ms, partial(self._offer_later, log))
        self._queues.remembering.came(subscription, log)

    def _offer_later(self, log: MessageLog, at_ms: int) -> None:
        """Something may not cross a bridge yet: offer it again then."""

        def offer() -> None:
            log.reset_offers()
            self._dispatcher.touch(log)

        self._timers.at(at_ms, offer)

    def mark(self, log: MessageLog) -> None:
        """Let the store know what may be delivered of a log from now on."""
        if not log.is_remote:
            mark = (
                open_mark(
                    log,
                    self._session,
                    self._placement.remote_unacked.sessions(log.name),
                )
                if log.consumers
                else closing_mark(log)
            )
            self._commits.set_recovery_mark(log.name, mark)

    def _gather(self, log: MessageLog) -> None:
        """Let the first consumer wait for others, as the queue's policy wants it."""
        if len(log.consumers) == 1:
            log.suspend_reasons.add(GATHERING)
            self._timers.at(clock.now_ms() + log.policy.start_delay_ms, partial(self._begin, log))
        if log.policy.has_enough_consumers(len(log.consumers)):
            self._begin(log)

    def _begin(self, log: MessageLog) -> None:
        log.suspend_reasons.discard(GATHERING)
        self._dispatcher.touch(log)

    # -- who ends, and what is left behind

    def part(self, subscription: Subscription) -> None:
        """Consume no longer; what it holds goes back to its place."""
        self._record_redelivery(subscription)
        self.requeue(subscription.unacked.values())
        subscription.unacked.clear()
        self.detach_keeping_unacked(subscription)

    def _record_redelivery(self, subscription: Subscription) -> None:
        """Record and count the messages that a consumer that is gone leaves unacknowledged."""
        now_us = time.time_ns() // 1000
        for entry in subscription.unacked.values():
            if isinstance(entry, RemoteLogEntry):
                continue
            log = self._queues.get(entry.log)
            if log is not None and log.is_remote:  # the node that owns it does so
                continue
            self._dead_letters.record(REDELIVER, now_us, entry, subscription.client.client_id, "consumer gone")
            self._counters.of(Destination.parse(entry.log)).RedeliveredCount += 1
            if not is_from_log(entry):
                self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount -= 1

    def detach_keeping_unacked(self, subscription: Subscription) -> None:
        """Consume no longer; what it holds it keeps."""
        for queue in subscription.destinations:
            if queue.is_queue and queue.is_pattern:
                self._patterns.remove(queue.name, subscription)
        for log in subscription.logs:
            assert isinstance(log, MessageLog)
            self._leave(subscription, log)
        subscription.logs.clear()
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.forget(subscription)

    def detach(self, subscription: Subscription, log: MessageLog) -> None:
        """Consume from one of its logs no longer; what it holds of it goes back."""
        held = {key: entry for key, entry in subscription.unacked.items() if entry.log == log.name}
        for key in held:
            del subscription.unacked[key]
        subscription.credit += len(held)
        if log.is_remote:
            self._placement.outbound_consumers.drop_consumer(subscription, log.name)
        self.requeue(held.values())
        subscription.logs.remove(log)
        self._leave(subscription, log)
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.drain(subscription)

    def _leave(self, subscription: Subscription, log: MessageLog) -> None:
        if log.is_remote:
            self._placement.outbound_consumers.detach(subscription, log)
        else:
            self.detach_all(subscription, log)
        self._placement.selector_interest.on_consumers_changed(log)

    def detach_all(self, subscription: Subscription, log: MessageLog, *, keeps_groups: bool = False) -> None:
        """Consume a log that is at home here no longer."""
        self._recorder.on_unsubscribed(log.name, subscription.client.client_id)
        log.remove_consumer(subscription, keeps_groups=keeps_groups)
        self._queues.remembering.went(subscription, log)
        log.counts.ConsumerCount = len(log.consumers)
        if log.shared or not log.consumers:
            self.mark(log)
        self._counters.mark_changed(log.counts)
        self._dispatcher.touch(log)

    def requeue(self, entries: Iterable[LogEntry], *, seen: bool = True) -> None:
        """Entries in flight return to their queues, flagged as redelivered if a consumer may have `seen` them."""
        by_log: dict[str, list[LogEntry]] = {}
        for entry in entries:
            by_log.setdefault(entry.log, []).append(entry)
        for name, back in by_log.items():
            log = self._queues.get(name)
            if log is not None and log.is_remote:
                self._placement.outbound_settlement.requeue(name, back, seen=seen)
            elif log is not None:
                self._take_back(log, back, seen=seen)
                self._dispatcher.touch(log)
                self._counters.mark_changed(log.counts)

    def _take_back(self, log: MessageLog, entries: Sequence[LogEntry], *, seen: bool) -> None:
        back = [entry for entry in entries if 0 < entry.seq < UNCOMMITTED]
        if len(back) < len(entries):
            log.ownerless += [entry for entry in entries if entry.seq == UNCOMMITTED]
            log.remove_settled([entry for entry in entries if not entry.seq])  # that have no place to return to
        if back:
            log.requeue(self._redelivery.on_unacked_at_detach(log, back) if seen else back, seen=seen)
            if log.shared:
                self.mark(log)

    def requeue_ownerless(self, log: MessageLog) -> None:
        """Requeue messages that consumers had before they were stored, once they are."""
        stranded, log.ownerless = log.ownerless, []
        self.requeue(stranded)
        if not log.consumers and self._queues.holds(log):
            self.mark(log)

    def close(self) -> None:
        """Write the recovery marks of all consumed queues, as the node stops."""
        for log in self._queues:
            if log.consumers:
                self._commits.set_recovery_mark(log.name, closing_mark(log))
