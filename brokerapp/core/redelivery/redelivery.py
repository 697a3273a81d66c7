"""Redeliver rejected messages by the redelivery policy of their queue.

A message that was rejected waits as a job until its delay is over and comes back at the end of its queue, with the
count of its deliveries in its stored form. What a consumer left behind when it went away returns to its place at once;
where a policy limits deliveries the store is told how often that happened. So both counts outlive the node.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.core.writes.client_write import JobWrite
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.redelivery import UNLIMITED, delay_ms, may_be_redelivered
from brokerapp.engine.routing.route_walk import Route
from brokerapp.engine.scheduling.scheduled_job import JobPurpose, ScheduledJob
from brokerapp.model.definitions import RedeliveryPolicy
from brokerapp.model.destination import Destination
from brokerapp.model.message import RoutedCopy
from brokerapp.store import FirstNumber, ScheduledJobChange
from brokerapp.system import clock
from brokerapp.tracing.schema import DELAY, REDELIVER, RETURN

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        ArrivalsPort,
        BrokerContext,
        DeadLettersPort,
        MessageFactoryPort,
        MessageRouterPort,
        RoutingPort,
        ScheduledJobsPort,
        TemporariesPort,
    )

#: Messages that one write moves to jobs, so that commits stay as large as is wanted.
MAX_DELAYED_AT_ONCE = 100


class RedeliveryHandler:
    """Redelivers rejected messages, with a delay perhaps."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        dead_letters: DeadLettersPort,
        messages: MessageFactoryPort,
        router: MessageRouterPort,
        routing: RoutingPort,
        scheduled_jobs: ScheduledJobsPort,
        temporaries: TemporariesPort,
        arrivals: ArrivalsPort,
    ) -> None:
        self._commits = context.commits
        self._dead_letters, self._messages, self._routing = dead_letters, messages, routing
        self._router = router
        self._scheduled_jobs, self._temporaries, self._arrivals = scheduled_jobs, temporaries, arrivals

    def reject(
        self, log: MessageLog, entries: Sequence[LogEntry], consumer: str, cause: str, *, may_redeliver: bool
    ) -> None:
        """A consumer cannot use messages (NACK). `may_redeliver`: they may come again, where their policy says so."""
        now_ms, failures = clock.now_ms(), self._dead_letters
        plan, policies = self._routing.table.definitions.redelivery, dict[Destination, RedeliveryPolicy | None]()
        delayed: list[tuple[LogEntry, int]] = []
        for entry in entries:
            source, _ = failures.failure_source(log, entry)
            if source not in policies:
                policies[source] = self._routing.table.redelivery_for(source)
            policy, deliveries = policies[source], entry.redelivery_count + 1
            if 0 < entry.message.expires <= now_ms:
                failures.expire(log, entry, consumer)
            elif may_redeliver and policy is not None and may_be_redelivered(policy, deliveries):
                delayed.append((entry, delay_ms(policy, deliveries, random.uniform(-1, 1))))
            elif policy is None and (plan.fallback_to_dead_letter or not plan.policies):
                failures.fail(log, entry, cause, consumer)
            elif policy is not None and plan.send_to_dlq_if_max_retries_exceeded:
                failures.fail(log, entry, f"{cause}, delivery {deliveries}", consumer)
            else:
                failures.drop(log, entry, cause, consumer)
        for at in range(0, len(delayed), MAX_DELAYED_AT_ONCE):
            self._delay(log, delayed[at : at + MAX_DELAYED_AT_ONCE], now_ms, cause, consumer)

    def on_unacked_at_detach(self, log: MessageLog, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
        """Which of these that a consumer held when it went away may return; those delivered too often are given up."""
        source, _ = self._dead_letters.failure_source(log, entries[0])
        policy = self._routing.table.redelivery_for(source)
        if policy is None or policy.maximum_redeliveries == UNLIMITED:
            return entries
        returning = []
        for entry in entries:
            deliveries = entry.redelivery_count + 1
            if may_be_redelivered(policy, deliveries):
                self._commits.record_redelivery(entry, deliveries)
                returning.append(entry)
            else:
                self._give_up(log, entry, f"delivered {deliveries} times, and its consumers went away without an ACK")
        return returning

    def _give_up(self, log: MessageLog, entry: LogEntry, cause: str) -> None:
        failures = self._dead_letters
        if self._routing.table.definitions.redelivery.send_to_dlq_if_max_retries_exceeded:
            failures.fail(log, entry, cause, None)
        else:
            failures.drop(log, entry, cause, None)

    def _delay(
        self, log: MessageLog, delayed: Sequence[tuple[LogEntry, int]], now_ms: int, cause: str, consumer: str
    ) -> None:
        """Move messages from their queue to scheduled jobs, after so many milliseconds each, in one step."""
        now_us, changes = time.time_ns() // 1000, list[ScheduledJobChange]()
        for entry, delay in delayed:
            self._dead_letters.record(REDELIVER, now_us, entry, consumer, f"{cause}: again in {delay} ms")
            self._dead_letters.record(DELAY, now_us, entry, None, None)
            message = replace(entry.message, deliveries=entry.redelivery_count + 1)
            job = ScheduledJob(
                JobPurpose.RETURN, log.name, message, original=entry.original_destination, shown=entry.shown_destination
            )
            changes.append(ScheduledJobChange(self._messages.next_id(), now_ms + delay, job.record(), new=True))
        entries = [entry for entry, _ in delayed]
        log.counts.RedeliveredCount += len(entries)
        gone, first_due_ms = self._dead_letters.leave_log(log, entries), min([each.due_ms for each in changes])

        def on_committed(_seq: int, _refused: str) -> None:
            gone()
            self._scheduled_jobs.note(first_due_ms)

        settles = [entry for entry in entries if entry.seq]
        self._commits.submit(JobWrite(changes, settles=settles, ignores_limits=True, callback=on_committed))

    def return_message(self, id: str, _due_ms: int, job: ScheduledJob) -> None:
        """Return a message to the end of its queue when its delay is over."""
        queue = Destination.parse(job.to)
        if self._temporaries.is_gone(queue):
            self._scheduled_jobs.lose(id, job.message, queue, job.original or job.shown or job.to)
            return
        original, shown = (Destination.parse(each) if each else None for each in (job.original, job.shown))
        way = Route(queues=[RoutedCopy(queue, original, shown)])
        way.groups = self._router.append_groups(way)
        placed = RoutedBatch.of(job.message, queue, way)

        def then(seq: FirstNumber, refused: str) -> None:
            self._scheduled_jobs.outcome(
                refused,
                lambda: self._arrivals.on_committed([placed], seq, moved_us=time.time_ns() // 1000, kind=RETURN),
            )

        appends = placed.appends
        self._commits.submit(JobWrite([ScheduledJobChange(id)], appends, ignores_limits=True, callback=then))
