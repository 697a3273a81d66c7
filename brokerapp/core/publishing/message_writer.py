"""Storing: what is asked of the store for a client, and what follows from its answer.

When the store has done it, copies are counted and offered to those who consume, and the client is told; when a limit
refused it, it waits for room or nothing comes of it.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.core.writes.pending_write import NOTHING, BridgedWrite, ClientWrite, Given, ScheduledWrite, appends_of
from brokerapp.engine.clients.client import Client, RoutedMessage
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import LimitExceeded
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message
from brokerapp.store import ScheduledJobChange
from brokerapp.tracing.schema import DROP, FORWARD

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AcknowledgementsPort,
        AdvisoriesPort,
        BridgesPort,
        BrokerContext,
        ConcurrentDispatchPort,
        Destinations,
        DispatcherPort,
        FlowControlPort,
        Placement,
        PublisherPort,
        Replies,
        ScheduledJobsPort,
        TemporariesPort,
    )

logger = logging.getLogger(__name__)


class MessageWriter:
    """What concerns that which must be stored. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        acknowledgements: AcknowledgementsPort,
        advisories: AdvisoriesPort,
        bridges: BridgesPort,
        clients: Mapping[str, Client],
        concurrent: ConcurrentDispatchPort,
        dispatcher: DispatcherPort,
        flow_control: FlowControlPort,
        placement: Placement,
        publisher: PublisherPort,
        queues: Destinations,
        replies: Replies,
        scheduled_jobs: ScheduledJobsPort,
        temporaries: TemporariesPort,
    ) -> None:
        self._commits, self._tracer, self._counters = context.commits, context.tracer, context.counters
        self._acknowledgements, self._advisories, self._bridges = acknowledgements, advisories, bridges
        self._clients, self._concurrent, self._dispatcher = clients, concurrent, dispatcher
        self._flow_control, self._placement, self._publisher = flow_control, placement, publisher
        self._queues, self._replies, self._scheduled_jobs = queues, replies, scheduled_jobs
        self._temporaries = temporaries

    def submit(
        self,
        client: Client,
        placed: Sequence[RoutedMessage],
        settled: Sequence[tuple[Subscription, str, LogEntry]],
        receipt: str | None,
        undo: Callable[[], None] | None = None,
        jobs: Sequence[ScheduledJobChange] = (),
        given: Given = NOTHING,
        handover: str = "",
        *,
        is_commit: bool = False,
    ) -> None:
        """Let it happen, all or nothing; then tell the client if it asked. `undo` is called when a limit refuses it.

        `given` was given early of its one message. What has a `handover` is known by it: it is kept once.
        """
        appends = appends_of(placed)
        stored = [entry for _, _, entry in settled if entry.seq] if settled else settled
        if not appends and not stored and not client.pending_writes and not jobs and self._flow_control.is_free(placed):
            self._acknowledgements.count_settled(settled)
            self.on_committed(placed, 0, moved_us=self._committed(placed) if is_commit else 0)
            self._replies.confirm(client, receipt)
            return
        kind = ScheduledWrite if jobs else BridgedWrite if handover else ClientWrite
        request = kind(
            self, client, placed, appends, settled, stored, receipt, undo, given, is_commit=is_commit
        )  # fmt: skip
        if jobs:
            request.jobs = jobs
        elif handover:
            request.dedup_key, request.duplicates = handover, ()
        client.on_write_started(request.size)
        flow = self._flow_control
        if flow.is_active:
            flow.submit(request)
        else:
            self._commits.submit(request, given)

    def is_followed(self, log: str) -> bool:
        """Whether to ask the store what stood last in a log before a commit, see Window.offer_run."""
        found = self._queues.get(log)
        return found is not None and (
            found.has_active_consumers or (found.is_remote and self._placement.append_notices.wants_entries(log))
        )

    def on_result(self, request: ClientWrite, seq: int, refused: str) -> None:
        """The store did what a client asked, or a limit stood in the way."""
        client, placed = request.client, request.placed
        if refused:
            reason = self._flow_control.block(request, refused)
            if reason is not None:
                self.refuse(request, reason)
            return
        if request.waiting is not None:
            self._flow_control.release(request.waiting)
        client.on_write_done(request.size)
        if request.settled:
            self._acknowledgements.count_settled(request.settled)
        if request.duplicates and client.bridge_counts is not None:
            client.bridge_counts.repeated += len(request.duplicates)
        if request.dropped or request.duplicates:
            self._remove_dropped(placed, request.dropped, request.duplicates)
        self.on_committed(placed, seq, request.given, self._committed(placed) if request.is_commit else 0)
        self._replies.confirm(client, request.receipt)

    def _committed(self, placed: Sequence[RoutedMessage]) -> int:
        """Record that the messages of a transaction were sent, now, which is when copies of them are stored."""
        now_us = time.time_ns() // 1000
        self._publisher.record_sent(placed, now_us)
        return now_us

    def refuse(self, request: ClientWrite, reason: str) -> None:
        """Nothing comes of what a client asked, for this reason."""
        client, placed = request.client, request.placed
        self.withdraw(request, reason)
        error = LimitExceeded(f"{reason}: nothing of this was kept{_named([each.destination for each in placed])}")
        self._replies.refuse(client, error, request.receipt)
        if client.id not in self._clients:  # it cannot be told
            logger.warning("a message of %s, who left, was not kept: %s", client.client_id, error)
            for each in () if request.is_commit else placed:
                sent_to, message = str(each.destination), each.message
                self._tracer.record_one(DROP, message.born_us, message, sent_to, sent_to, client.client_id, "no room")

    def withdraw(self, request: ClientWrite, why: str = "the connection ended") -> None:
        """Nothing comes of what a client asked, and nobody is told."""
        if request.is_commit:
            self._publisher.record_rolled_back(request.placed, why)
        if request.waiting is not None:
            self._flow_control.release(request.waiting)
        request.client.on_write_done(request.size)
        if request.undo is not None:
            request.undo()
        self._concurrent.on_refused(request.given)

    def renew(self, request: ClientWrite) -> None:
        """Queues on the way of what waited may have been deleted meanwhile: let them exist. Raises RequestRefused."""
        if self.restore_queues(request.placed):
            request.appends = appends_of(request.placed)

    def restore_queues(self, placed: Sequence[RoutedMessage]) -> bool:
        """Let queues exist that these messages go to and that were deleted since; whether there were any.

        Raises RequestRefused when one cannot come back: it was temporary.
        """
        for each in placed:
            if each.destination.is_temporary:
                self._temporaries.check(each.destination)
        lost = [
            each
            for each in placed
            if any(not self._queues.holds(log) for group in each.route.groups for log in group.logs)
        ]
        for each in lost:
            each.route = replace(each.route, groups=self._publisher.append_groups(each.route))
        return bool(lost)

    def on_scheduled(self, jobs: Sequence[ScheduledJobChange]) -> None:
        """The store holds these messages until they are due."""
        self._scheduled_jobs.note(min([each.due_ms for each in jobs]))

    def on_committed(
        self, placed: Sequence[RoutedMessage], seq: int, given: Given = NOTHING, moved_us: int = 0, kind: int = FORWARD
    ) -> None:
        """The store did it. `given` was given early, of one message; `moved_us`: when, if not at its birth.

        It is recorded as this kind of event.
        """
        for each in placed:
            for group in each.route.groups:
                if group.logs:
                    sent_to, sizes = str(each.destination), [len(each.stored)]
                    self.on_appended([each.message], sizes, group, sent_to, seq, given, moved_us, kind)
                seq += 1
            for copy in each.route.topics:
                if self._bridges.is_repeated(each.message, copy.destination, each.sender):
                    continue
                if not self._temporaries.is_gone(copy.destination):
                    self._dispatcher.publish((each.message,), copy, each.sender)

    def on_appended(
        self,
        messages: Sequence[Message],
        sizes: Sequence[int],
        group: AppendGroup,
        sent_to: str,
        seq: int,
        given: Given = NOTHING,
        moved_us: int = 0,
        kind: int = FORWARD,
    ) -> None:
        """The store holds copies of these messages, the first as number `seq`: count them, offer them to consumers.

        To those who were `given` them early they are only numbered.
        """
        count, bodies = len(messages), BodySizes.of(messages)
        numbers = range(seq, seq + count)
        payloads = numbers if group.shared else (0,) * count
        deliveries = messages[0].deliveries
        touch, before = self._dispatcher.touch, self._commits.before
        deposits = self._placement.append_notices
        for log, (name, original, shown) in zip(group.logs, group.rows, strict=True):
            if given and name in given:
                self._concurrent.on_committed(log, given[name], numbers, payloads)
                continue
            entries = ()
            if deposits.wants_entries(name) if log.is_remote else log.consumers:
                facts = zip(numbers, messages, payloads, sizes, strict=True)
                entries = [LogEntry(name, *each, original, shown, deliveries) for each in facts]
            if log.is_remote:
                self._count(log, bodies)
                deposits.add(log, count, numbers[-1], entries, before.get(name))
                continue
            self.count_arrivals(log, messages, bodies)
            if entries:
                log.append_batch(entries, before.get(name))
                touch(log)
            else:
                log.note_appended(count, numbers[-1])
        self._record_stored(messages, group, sent_to, given, moved_us or messages[0].born_us, kind)

    def _record_stored(
        self, messages: Sequence[Message], group: AppendGroup, sent_to: str, given: Given, ts_us: int, kind: int
    ) -> None:
        """Record the copies. Logs count those that were given early from that moment on."""
        recorder = self._tracer
        if not given:
            recorder.record(kind, ts_us, messages, group.names, sent_to)
            return
        early = [name for name in group.names if name in given]
        recorder.record(FORWARD, ts_us, messages, early, sent_to, in_depths=True)
        if len(early) < len(group.names):
            recorder.record(FORWARD, ts_us, messages, [name for name in group.names if name not in given], sent_to)

    def count_arrivals(self, log: MessageLog, messages: Sequence[Message], sizes: BodySizes) -> None:
        """Messages came to a log, with bodies of these sizes: count them, tell those who listen."""
        self._count(log, sizes)
        if self._advisories.watching:
            self._advisories.delivered(log.destination, messages, heard=bool(log.consumers))

    def _count(self, log: MessageLog, sizes: BodySizes) -> None:
        """Each node counts what it stored, see stats_aggregation.py."""
        log.counts.count_arrivals(sizes)
        self._counters.mark_changed(log.counts)

    def _remove_dropped(
        self, placed: Sequence[RoutedMessage], dropped: Sequence[tuple[int, int]], repeated: Sequence[tuple[int, int]]
    ) -> None:
        """Of these copies, see Unit, some found their queues full, and their virtual topics want them dropped then.

        Others were handed over before. When that is all there was to keep, listeners were told then, too.
        """
        number = 0
        all_repeated = len(repeated) == sum(len(group.rows) for each in placed for group in each.route.groups)
        for each in placed:
            groups = []
            for group in each.route.groups:
                number += 1
                full, known = ({copy for m, copy in which if m == number} for which in (dropped, repeated))
                for log in itertools.compress(group.logs, (at in full for at in itertools.count(1))):
                    self._drop(each, log)
                groups.append(group.without_rows(full | known) if full or known else group)
            each.route = replace(each.route, groups=groups, topics=[] if all_repeated else each.route.topics)

    def _drop(self, placed: RoutedMessage, log: MessageLog) -> None:
        log.counts.DroppedCount += 1
        self._counters.mark_changed(log.counts)
        message, sent_to = placed.message, str(placed.destination)
        self._tracer.record_one(DROP, message.born_us, message, log.name, sent_to, None, "the queue is full")


def _named(destinations: Sequence[Destination]) -> str:
    return " (" + ", ".join(map(str, destinations[:5])) + ")" if destinations else ""
