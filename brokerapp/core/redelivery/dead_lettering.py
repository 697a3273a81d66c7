"""Move failed messages to dead-letter queues, or drop them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.dead_letters import (
    DEFAULT_STRATEGY,
    DeadLetterInfo,
    dead_letter,
    dead_letter_destination,
    is_dead_letter_queue,
    is_discarded,
)
from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.model.definitions import DeadLetterStrategy
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message
from brokerapp.store import FirstNumber, PendingWrite, StoredLogEntry
from brokerapp.tracing.schema import DEAD_LETTER, DROP, EXPIRE

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AdvisoriesPort,
        ArrivalsPort,
        BrokerContext,
        DurablesPort,
        MessageRouterPort,
        Placement,
        Queues,
        RoutingPort,
    )

logger = logging.getLogger(__name__)

#: Why a message is given up whose time was over.
EXPIRED = "expired"
#: Dead letters of topics that are remembered, so that the copies other subscribers miss are none (ActiveMQ's audit).
MAX_RECENT_DEAD_LETTERS = 2_048
#: The cause of a dead letter that storage changed.
DAMAGED = "the stored message is damaged: its checksum does not match"


def _nothing() -> None: ...


class DeadLettering:
    """Dead-letters or drops messages that failed."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        advisories: AdvisoriesPort,
        durables: DurablesPort,
        placement: Placement,
        router: MessageRouterPort,
        queues: Queues,
        routing: RoutingPort,
        arrivals: ArrivalsPort,
    ) -> None:
        self._settings, self._commits, self._tracer, self._counters = (
            context.settings,
            context.commits,
            context.tracer,
            context.counters,
        )
        self._advisories, self._durables, self._placement = advisories, durables, placement
        self._router, self._queues, self._routing = router, queues, routing
        self._arrivals = arrivals
        self._discarded_count = 0
        self._recent_dead_letters: dict[tuple[str, Destination], None] = {}  # dead letters of topics, in order

    def expire(self, log: MessageLog, entry: LogEntry, consumer: str | None = None) -> None:
        """Expire a message in flight; `consumer` held it, if one did."""
        log.counts.ExpiredCount += 1
        self.record(EXPIRE, time.time_ns() // 1000, entry, consumer, EXPIRED)
        self._advisories.expired(self.failure_source(log, entry)[0], entry.message)
        self.fail(log, entry, EXPIRED, consumer, expired=True)

    def remove_damaged(
        self, log: MessageLog, found: list[StoredLogEntry], *, dead_letter_damaged: bool = True
    ) -> list[StoredLogEntry]:
        """Return the entries of a page that storage did not change; the damaged ones become dead letters.

        Not if `dead_letter_damaged` is false, nor while a consumer holds them.
        """
        damaged = [each for each in found if each.message.is_damaged]
        if not damaged:
            return found
        taken = log.reserve(damaged) if dead_letter_damaged and not log.is_remote else ()
        for each in damaged:
            if each.seq in taken:
                self.fail_damaged(log, log_entry_of(log.name, each))
        return [each for each in found if not each.message.is_damaged]

    def fail_damaged(self, log: MessageLog, entry: LogEntry) -> None:
        """Dead-letter a damaged message in flight."""
        logger.error("message %d of %s is damaged in the store", entry.seq, log.name)
        self.fail(log, entry, DAMAGED, None)

    def route_damaged_job(self, message: Message, source: Destination) -> RoutedBatch | None:
        """Route a damaged message of a scheduled job to the dead letters; None where they are dropped."""
        strategy = self._strategy(source)
        target = self._target(strategy, source, "", message, False)
        logger.error("a message that waited for %s is damaged in the store", source)
        if target is None:
            return None
        now_us = time.time_ns() // 1000
        self._tracer.record_one(DEAD_LETTER, now_us, message, str(source), str(source), None, DAMAGED)
        return self._route(
            dead_letter(message, DeadLetterInfo(DAMAGED, source, "", now_us // 1000, 0, ""), strategy), target
        )

    def fail(
        self, log: MessageLog, entry: LogEntry, cause: str, consumer: str | None, *, expired: bool = False
    ) -> None:
        """Move a message in flight to where its policy sends dead letters, in one step; or drop it."""
        source, durable = self.failure_source(log, entry)
        strategy = self._strategy(source)
        target = self._target(strategy, source, durable, entry.message, expired)
        if entry.message.is_damaged:
            cause = DAMAGED
            if target is None and is_dead_letter_queue(strategy, source):
                target = source  # it stays there, and says from now on that it is damaged
        if target is None:
            self.drop(log, entry, cause, consumer)
            return
        now_us = time.time_ns() // 1000
        self.record(DEAD_LETTER, now_us, entry, consumer, cause)
        log.counts.DeadLetterCount += 1
        gone = self.leave_log(log, [entry])
        self._advisories.dead_lettered(source, entry.message)
        deliveries = entry.redelivery_count if expired or entry.message.is_damaged else entry.redelivery_count + 1
        sent_to = entry.original_destination or entry.message.headers.get("original-destination", "")
        blamed = "" if expired else consumer or ""
        death = DeadLetterInfo(cause, source, sent_to, now_us // 1000, deliveries, blamed)
        self._move_to_dlq(dead_letter(entry.message, death, strategy), target, [entry] if entry.seq else (), gone)

    def leave_log(self, log: MessageLog, entries: Sequence[LogEntry]) -> Callable[[], None]:
        """Messages in flight leave their log otherwise than by ACKs, which is counted here, wherever that is at home.

        Returns what follows as soon as the store has removed them: its home is not told before.
        """
        log.counts.count_departures([entry.message for entry in entries])
        self._counters.mark_changed(log.counts)
        if log.is_remote:
            return lambda: self._placement.outbound_settlement.on_settled(log.name, entries, None)
        log.remove_settled(entries)
        return _nothing

    def _move_to_dlq(
        self,
        message: Message,
        target: Destination,
        entries: Sequence[LogEntry],
        on_removed: Callable[[], None] = _nothing,
    ) -> None:
        """Let a dead letter be where it goes in the moment in which these entries are no more; that is `gone`."""
        placed = self._route(message, target)
        appends = placed.appends

        def on_committed(seq: FirstNumber, _refused: str) -> None:
            on_removed()
            self._arrivals.on_committed([placed], seq, moved_us=time.time_ns() // 1000)

        self._commits.submit(PendingWrite(appends, entries, ignores_limits=True, callback=on_committed))

    def _route(self, message: Message, target: Destination) -> RoutedBatch:
        """Route a dead letter."""
        message, found = self._router.route(message, target)
        for group in found.groups:
            for each in group.logs:
                self._queues.mark_as_dlq(each)
        return RoutedBatch.of(message, target, found)

    def discard_for_subscriber(self, entry: LogEntry, cause: str, consumer: str, *, expired: bool = False) -> None:
        """A message of a topic does not reach one of its subscribers: it expired, or there is no room for it to wait.

        As in ActiveMQ it is a dead letter where its policy says so, once, however many subscribers miss it. Of each
        subscriber's copy it is recorded once what became of it.
        """
        topic, now_us = Destination.parse(entry.log), time.time_ns() // 1000
        stats = self._counters.of(topic)
        if expired:
            stats.ExpiredCount += 1
            self._counters.mark_changed(stats)
            self.record(EXPIRE, now_us, entry, consumer, cause)
            self._advisories.expired(topic, entry.message)
        strategy = self._strategy(topic)
        target = None if is_advisory(topic) else self._target(strategy, topic, "", entry.message, expired)
        if target is None or not self._is_first_dead_letter(entry.message.id, target):
            self.record(DROP, now_us, entry, consumer, cause)
            return
        stats.DeadLetterCount += 1
        self._counters.mark_changed(stats)
        self.record(DEAD_LETTER, now_us, entry, consumer, cause)
        self._advisories.dead_lettered(topic, entry.message)
        sent_to = entry.original_destination or entry.message.headers.get("original-destination", "")
        death = DeadLetterInfo(cause, topic, sent_to, now_us // 1000, entry.redelivery_count, consumer)
        self._move_to_dlq(dead_letter(entry.message, death, strategy), target, ())

    def _is_first_dead_letter(self, id: str, target: Destination) -> bool:
        """Return whether this message of a topic is not known to be a dead letter there."""
        if (id, target) in self._recent_dead_letters:
            return False
        self._recent_dead_letters[id, target] = None
        if len(self._recent_dead_letters) > MAX_RECENT_DEAD_LETTERS:
            del self._recent_dead_letters[next(iter(self._recent_dead_letters))]
        return True

    def drop(self, log: MessageLog, entry: LogEntry, cause: str, consumer: str | None) -> None:
        """Drop a message in flight: count it, and record its cause."""
        self.record(DROP, time.time_ns() // 1000, entry, consumer, cause)
        log.counts.DroppedCount += 1
        log.counts.DiscardedCount += 1
        gone = self.leave_log(log, [entry])
        self._commits.submit(PendingWrite(settles=[entry] if entry.seq else (), callback=lambda *_: gone()))

    def _strategy(self, destination: Destination) -> DeadLetterStrategy:
        policy = self._routing.table.policy_for(destination)
        return (policy and policy.dead_letter) or DEFAULT_STRATEGY

    def _target(
        self, strategy: DeadLetterStrategy, source: Destination, durable: str, message: Message, expired: bool
    ) -> Destination | None:
        """Return where a message that failed goes; None when it is dropped."""
        discarding = self._settings.discarding
        if discarding is not None and is_discarded(discarding, source):
            self._discarded_count += 1
            if discarding.report_interval > 0 and self._discarded_count % discarding.report_interval == 0:
                logger.info("%d messages were dropped that would have been dead letters", self._discarded_count)
            return None
        return dead_letter_destination(strategy, source, message, expired=expired, durable=durable)

    def is_in_dlq(self, log: MessageLog, entry: LogEntry) -> bool:
        """Return whether a message is in a dead-letter queue: when it fails there again it is dropped."""
        source, _ = self.failure_source(log, entry)
        return is_dead_letter_queue(self._strategy(source), source)

    def failure_source(self, log: MessageLog, entry: LogEntry) -> tuple[Destination, str]:
        """Return where a message failed: its queue, or its topic and the durable subscription it failed in."""
        if log.destination.kind is not DestinationKind.SUBSCRIPTION:
            return log.destination, ""
        return Destination.parse(entry.shown_destination), self._durables.of_log(log).identity.short_name

    def record(self, kind: int, now_us: int, entry: LogEntry, consumer: str | None, reason: str | None) -> None:
        """Record a trace event of a message in a queue or on its way from a topic."""
        original = (
            entry.original_destination or entry.message.headers.get("original-destination") or entry.shown_destination
        )
        sent_to = str(Destination.parse(original)) if original else entry.log
        self._tracer.record_one(kind, now_us, entry.message, entry.log, sent_to, consumer, reason)
