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

from brokerapp.core.writes.client_write import AtomicWrite, ClientWrite
from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import LimitExceeded
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, Message
from brokerapp.store import CommitResult, ScheduledJobChange
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
        MessageRouterPort,
        Placement,
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
        router: MessageRouterPort,
        queues: Destinations,
        replies: Replies,
        scheduled_jobs: ScheduledJobsPort,
        temporaries: TemporariesPort,
    ) -> None:
        self._commits, self._tracer, self._counters = context.commits, context.tracer, context.counters
        self._acknowledgements, self._advisories, self._bridges = acknowledgements, advisories, bridges
        self._clients, self._concurrent, self._dispatcher = clients, concurrent, dispatcher
        self._flow_control, self._placement, self._router = flow_control, placement, router
        self._queues, self._replies, self._scheduled_jobs = queues, replies, scheduled_jobs
        self._temporaries = temporaries

    def send(self, client: Client, placed: Sequence[RoutedBatch]) -> None:
        """Store messages, or let them pass by the store; each by itself, in order. Then confirm them to the client."""
        rest = list(placed)
        if self._flow_control.is_active:  # each message of a topic may find it full
            rest = [part for each in placed for part in (each.split() if each.route.topics else (each,))]
        while rest and not client.pending_writes and not client.blocked_sends and self._pass_store(client, rest[0]):
            del rest[0]
        if rest:
            self._submit(ClientWrite(self, client, self._offer(rest)))

    def _offer(self, placed: Sequence[RoutedBatch]) -> list[RoutedBatch]:
        """Give consumers early what may be; nothing of a log behind what it does not give early."""
        parts, behind = [], set()
        for each in placed:
            names = [name for group in each.route.groups for name in group.names]
            parts += self._concurrent.offer(each) if behind.isdisjoint(names) else (each,)
            if not parts[-1].given and each is not placed[-1]:
                behind.update(names)
        return parts

    def _pass_store(self, client: Client, each: RoutedBatch) -> bool:
        """Hand on messages that need not be stored: nothing keeps them, or consumers take them at once."""
        groups = each.route.groups
        if not groups:
            if not self._flow_control.is_free((each,)):
                return False
            self.on_committed((each,), 0)
        elif not self._pass_through(each):
            return False
        self._replies.confirm(client, *each.receipts)
        return True

    def _pass_through(self, each: RoutedBatch) -> bool:
        """Give messages for one queue straight to those who wait there for just such, if they take them all."""
        [group, *others] = each.route.groups
        if others or len(group.logs) > 1 or each.route.topics or any(each.dedup_keys):
            return False
        messages = each.messages
        if any(message.persistent for message in messages):
            return False
        [log], [(name, original, shown)] = group.logs, group.rows
        given = log.dispatch_unstored([LogEntry(name, 0, message, 0, 0, original, shown) for message in messages])
        if not given:
            return False
        self.count_arrivals(log, messages, BodySizes.of(messages))
        self._tracer.record(FORWARD, messages[0].born_us, messages, group.names, str(each.destination))
        for consumer, entries in given:
            self._dispatcher.dispatch(log, consumer, entries)
        return True

    def perform(
        self,
        client: Client,
        placed: Sequence[RoutedBatch],
        receipt: str | None,
        *,
        settled: Sequence[tuple[Subscription, str, LogEntry]] = (),
        jobs: Sequence[ScheduledJobChange] = (),
        undo: Callable[[], None] | None = None,
        is_commit: bool = False,
        dedup_key: str = "",
    ) -> None:
        """Let it happen, all or nothing; then tell the client if it asked. `undo` is called when a limit refuses it."""
        write = AtomicWrite(
            self, client, placed, receipt, settled=settled, jobs=jobs, undo=undo, is_commit=is_commit
        )  # fmt: skip
        write.dedup_key = dedup_key
        if write.count or write.settles or jobs or client.pending_writes or not self._flow_control.is_free(placed):
            self._submit(write)
            return
        self._acknowledgements.count_settled(settled)
        self.on_committed(placed, 0, self._committed(write))
        self._replies.confirm(client, receipt)

    def _submit(self, write: ClientWrite) -> None:
        flow = self._flow_control
        write.client.on_write_started(write.size)
        if not flow.is_active:
            self._commits.submit(write)
            return
        for unit in write.split():  # each may find a place full
            flow.submit(unit)

    def is_followed(self, log: str) -> bool:
        """Whether to ask the store what stood last in a log before a commit, see Window.offer_run."""
        found = self._queues.get(log)
        return found is not None and (
            found.has_active_consumers or (found.is_remote and self._placement.append_notices.wants_entries(log))
        )

    def on_result(self, write: ClientWrite, seq: int, position: int, committed: CommitResult) -> None:
        """The store did what a client asked, or a limit stood in the way; of each message by itself, or of all."""
        odd = (committed.refused, committed.dropped, committed.duplicates)
        positions = range(position, position + write.unit_count)
        if len(positions) == 1:
            refused, dropped, duplicates = odd
            write.dropped, write.duplicates = dropped.get(position, ()), duplicates.get(position, ())
            self._on_unit(write, seq, refused.get(position, ""))
        elif any(odd) and any(each in outcome for outcome in odd for each in positions):
            for each, unit in zip(positions, write.split(), strict=True):
                self.on_result(unit, seq, each, committed)
                seq += unit.count
        else:
            self._on_stored(write, seq)

    def _on_unit(self, write: ClientWrite, seq: int, refused: str) -> None:
        client = write.client
        if refused:
            reason = self._flow_control.block(write, refused)
            if reason is not None:
                self.refuse(write, reason)
            return
        if write.waiting is not None:
            self._flow_control.release(write.waiting)
        if write.settled:
            self._acknowledgements.count_settled(write.settled)
        if write.duplicates and client.bridge_counts is not None:
            client.bridge_counts.repeated += len(write.duplicates)
        if write.dropped or write.duplicates:
            self._remove_dropped(write.placed, write.dropped, write.duplicates)
        self._on_stored(write, seq)

    def _on_stored(self, write: ClientWrite, seq: int) -> None:
        write.client.on_write_done(write.size)
        self.on_committed(write.placed, seq, self._committed(write))
        if write.jobs:
            self.on_scheduled(write.jobs)
        self._replies.confirm(write.client, *write.receipts)

    def _committed(self, write: ClientWrite) -> int:
        """Record that the messages of a transaction were sent, now, which is when copies of them are stored."""
        if not write.is_commit:
            return 0
        now_us = time.time_ns() // 1000
        self._router.record_sent(write.placed, now_us)
        return now_us

    def refuse(self, write: ClientWrite, reason: str) -> None:
        """Nothing comes of what a client asked, for this reason."""
        client, placed = write.client, write.placed
        self.withdraw(write, reason)
        error = LimitExceeded(f"{reason}: nothing of this was kept{_named([each.destination for each in placed])}")
        self._replies.refuse(client, error, write.receipt)
        if client.id not in self._clients:  # it cannot be told
            logger.warning("a message of %s, who left, was not kept: %s", client.client_id, error)
            for each in () if write.is_commit else placed:
                sent_to, message = str(each.destination), each.message
                self._tracer.record_one(DROP, message.born_us, message, sent_to, sent_to, client.client_id, "no room")

    def withdraw(self, write: ClientWrite, why: str = "the connection ended") -> None:
        """Nothing comes of what a client asked, and nobody is told."""
        if write.is_commit:
            self._router.record_rolled_back(write.placed, why)
        if write.waiting is not None:
            self._flow_control.release(write.waiting)
        write.client.on_write_done(write.size)
        if write.undo is not None:
            write.undo()
        self._concurrent.on_refused(write.given)

    def renew(self, write: ClientWrite) -> None:
        """Queues on the way of what waited may have been deleted meanwhile: let them exist. Raises RequestRefused."""
        if self._router.restore_queues(write.placed):
            write.refresh_runs()

    def on_scheduled(self, jobs: Sequence[ScheduledJobChange]) -> None:
        """The store holds these messages until they are due."""
        self._scheduled_jobs.note(min([each.due_ms for each in jobs]))

    def on_committed(self, placed: Sequence[RoutedBatch], seq: int, moved_us: int = 0, kind: int = FORWARD) -> None:
        """The store did it. `moved_us`: when, if not at the birth of the messages.

        It is recorded as this kind of event.
        """
        for each in placed:
            groups, messages = each.route.groups, each.messages
            sent_to, sizes = str(each.destination), list(map(len, each.stored))
            if len(groups) == 1:
                numbers = range(seq, seq + len(messages))
                self.on_appended(messages, sizes, groups[0], sent_to, numbers, each.given, moved_us, kind)
            elif groups:  # a queue gets them more than once: each message with all of its copies
                for place, message in enumerate(messages):
                    for number, group in enumerate(groups, start=seq + place * len(groups)):
                        numbers = range(number, number + 1)
                        self.on_appended(
                            [message], sizes[place : place + 1], group, sent_to, numbers, (), moved_us, kind
                        )
            seq += len(groups) * len(messages)
            if each.route.topics:
                self._publish(each)

    def _publish(self, each: RoutedBatch) -> None:
        """Give messages to those who listen to the topics on their way."""
        for copy in each.route.topics:
            topic, sender = copy.destination, each.sender
            if not self._temporaries.is_gone(topic):
                new = [message for message in each.messages if not self._bridges.is_repeated(message, topic, sender)]
                if new:
                    self._dispatcher.publish(new, copy, sender)

    def on_appended(
        self,
        messages: Sequence[Message],
        sizes: Sequence[int],
        group: AppendGroup,
        sent_to: str,
        numbers: range,
        given: Sequence[LogEntry] = (),
        moved_us: int = 0,
        kind: int = FORWARD,
    ) -> None:
        """The store holds copies of these messages under these numbers: count them, offer them to consumers.

        What was `given` to consumers already, in the one log there is then, is only numbered.
        """
        count, bodies = len(messages), BodySizes.of(messages)
        payloads = numbers if group.shared else (0,) * count
        ts_us = moved_us or messages[0].born_us
        if given:
            [log] = group.logs
            self._concurrent.on_committed(log, given, numbers, payloads)
            # Logs count what was given early from that moment on.
            self._tracer.record(FORWARD, ts_us, messages, group.names, sent_to, in_depths=True)
            return
        deliveries = messages[0].deliveries
        touch, before = self._dispatcher.touch, self._commits.before
        deposits = self._placement.append_notices
        for log, (name, original, shown) in zip(group.logs, group.rows, strict=True):
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
        self._tracer.record(kind, ts_us, messages, group.names, sent_to)

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
        self, placed: Sequence[RoutedBatch], dropped: Sequence[tuple[int, int]], repeated: Sequence[tuple[int, int]]
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

    def _drop(self, placed: RoutedBatch, log: MessageLog) -> None:
        log.counts.DroppedCount += 1
        self._counters.mark_changed(log.counts)
        message, sent_to = placed.message, str(placed.destination)
        self._tracer.record_one(DROP, message.born_us, message, log.name, sent_to, None, "the queue is full")


def _named(destinations: Sequence[Destination]) -> str:
    return " (" + ", ".join(map(str, destinations[:5])) + ")" if destinations else ""
