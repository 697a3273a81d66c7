"""Submit the writes of clients to the store, and act on the answer.

When a write is stored, its copies are dispatched and the client gets its receipts. When a limit refuses it, it waits
for room, or the client gets an ERROR and nothing is kept.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from brokerapp.core.writes.client_write import AtomicWrite, ClientWrite
from brokerapp.engine.clients.client import Client, RoutedBatch, one_after_the_other, split_in_order
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import LimitExceeded, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.store import CommitResult, FirstNumber, ScheduledJobChange
from brokerapp.tracing.schema import DROP

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AcknowledgementsPort,
        ArrivalsPort,
        BrokerContext,
        FlowControlPort,
        HeldSendsPort,
        MessageRouterPort,
        Replies,
        ScheduledJobsPort,
    )

logger = logging.getLogger(__name__)


class MessageWriter:
    """Writes messages, acknowledgements and transactions of clients to the store. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        acknowledgements: AcknowledgementsPort,
        arrivals: ArrivalsPort,
        clients: Mapping[str, Client],
        flow_control: FlowControlPort,
        held: HeldSendsPort,
        replies: Replies,
        router: MessageRouterPort,
        scheduled_jobs: ScheduledJobsPort,
    ) -> None:
        self._commits, self._tracer, self._counters = context.commits, context.tracer, context.counters
        self._acknowledgements, self._arrivals, self._clients = acknowledgements, arrivals, clients
        self._flow_control, self._held, self._replies = flow_control, held, replies
        self._router, self._scheduled_jobs = router, scheduled_jobs

    def send(self, placed: Sequence[RoutedBatch]) -> None:
        """Store messages of clients, each by itself and in order, or dispatch them without the store; then confirm
        them. Those of several clients are to be stored.
        """
        client: Client = placed[0].senders[0]
        is_limited = self._flow_control.is_active
        if is_limited:  # each message of a topic may find it full
            placed = split_in_order(placed)
        if not client.blocked_sends:
            placed = self._pass_store(client, placed)
        if placed:
            self._store_what_is_ahead(placed)
            self._submit(ClientWrite(self, client, self._arrivals.offer_early(placed)), is_limited=is_limited)

    def _pass_store(self, client: Client, placed: Sequence[RoutedBatch]) -> Sequence[RoutedBatch]:
        """Dispatch messages that need not be stored: no queue keeps them, or consumers take them now or in a moment.

        Return the others. None overtakes what this client sent before to the same queue, or to any topic.
        """
        left: list[RoutedBatch] = []
        to_topics: list[RoutedBatch] = []  # who listens to several topics gets them in the order of all
        queues_left: set[str] = set()
        topics_left = is_behind = client.pending_writes > 0
        receipts: list[str | None] = []
        for each in placed:
            names = [name for group in each.route.groups for name in group.names]
            if names and queues_left.isdisjoint(names):
                passed = 0 if self._held.holds(names) else self._arrivals.pass_through(each, is_behind=is_behind)
                receipts += each.receipts[:passed]
                each = each.part(passed, len(each.messages)) if passed else each
                if not each.messages or self._held.take(client, each, is_behind=is_behind):
                    continue
            elif not (names or topics_left) and self._flow_control.is_free((each,)):
                receipts += each.receipts
                to_topics.append(each)
                if self._flow_control.is_active:  # the next one may find a topic full because of this one
                    self._arrivals.on_committed((to_topics.pop(),), 0)
                continue
            left.append(each)
            queues_left.update(names)
            topics_left = topics_left or bool(each.route.topics)
        if to_topics:
            self._arrivals.on_committed(to_topics, 0)
        if receipts:
            self._replies.confirm(client, *receipts)
        return left

    def _store_what_is_ahead(self, placed: Sequence[RoutedBatch]) -> None:
        """Store what is held for queues that these messages go to: they come after it."""
        queues = [name for each in placed for group in each.route.groups for name in group.names]
        if self._held.holds(queues):
            self._held.store(queues)

    def store_held(self, client: Client, batch: RoutedBatch) -> None:
        """Store messages that were held for consumers which had no room for too long."""
        write = ClientWrite(self, client, [batch])
        try:
            self.renew(write)
        except RequestRefused as error:
            for receipt in batch.receipts:
                self._replies.refuse(client, error, receipt)
            return
        self._submit(write, is_limited=self._flow_control.is_active)

    def perform(
        self,
        client: Client,
        placed: Sequence[RoutedBatch],
        receipts: Sequence[str | None],
        *,
        settled: Sequence[tuple[Subscription, str, LogEntry]] = (),
        jobs: Sequence[ScheduledJobChange] = (),
        undo: Callable[[], None] | None = None,
        is_commit: bool = False,
        dedup_key: str = "",
    ) -> None:
        """Store all of this or nothing, then confirm it. `undo` is called when a limit refuses it."""
        write = AtomicWrite(
            self, client, placed, receipts, settled=settled, jobs=jobs, undo=undo, is_commit=is_commit
        )  # fmt: skip
        write.dedup_key = dedup_key
        if write.count or write.settles or jobs or client.pending_writes or not self._flow_control.is_free(placed):
            self._store_what_is_ahead(placed)
            self._submit(write, is_limited=self._flow_control.is_active)
            return
        self._acknowledgements.count_settled(settled)
        self._arrivals.on_committed(placed, 0, self._commit_us(placed) if is_commit else 0)
        self._replies.confirm(client, *receipts)

    def _submit(self, write: ClientWrite, *, is_limited: bool) -> None:
        self._flow_control.limit_reading(write)
        write.on_started()
        if not is_limited:
            self._commits.submit(write)
            return
        for unit in write.split():  # each may find a place full
            self._flow_control.submit(unit)

    def on_result(self, write: ClientWrite, seq: FirstNumber, position: int, committed: CommitResult) -> None:
        """Act on the outcome of each unit of a write of which any was refused or is kept in part."""
        for each, unit in enumerate(write.split(), position):
            unit.dropped, unit.duplicates = committed.dropped.get(each, ()), committed.duplicates.get(each, ())
            self._on_unit(unit, seq, committed.refused.get(each, ""))
            seq += unit.count

    def _on_unit(self, write: ClientWrite, seq: FirstNumber, refused: str) -> None:
        client = write.client
        if refused:
            reason = self._flow_control.block(write, refused)
            if reason is not None:
                self.refuse(write, reason)
            return
        if write.duplicates and client.bridge_counts is not None:
            client.bridge_counts.repeated += len(write.duplicates)
        if write.dropped or write.duplicates:
            self._remove_dropped(write.placed, write.dropped, write.duplicates)
        self.on_stored([write], seq)

    def on_stored(self, writes: Sequence[ClientWrite], seq: FirstNumber) -> None:
        """Act on writes of any clients that follow each other and are stored, the first message as number `seq`."""
        for write in writes:
            if write.waiting is not None:
                self._flow_control.release(write.waiting)
            if write.settled:
                self._acknowledgements.count_settled(write.settled)
            write.on_ended()
        try:
            for is_commit, alike in itertools.groupby(writes, attrgetter("is_commit")):
                placed = one_after_the_other([write.placed for write in alike])
                self._arrivals.on_committed(placed, seq, self._commit_us(placed) if is_commit else 0)
                seq += sum([len(each.messages) * len(each.route.groups) for each in placed])
        finally:  # whatever becomes of them here
            for write in writes:
                if write.jobs:
                    self.on_scheduled(write.jobs)
                for client, receipts in write.receipts_by_client():
                    self._replies.confirm(client, *receipts)

    def _commit_us(self, placed: Sequence[RoutedBatch]) -> int:
        """Record that messages of transactions were sent, now, which is when copies of them are stored; that time."""
        now_us = time.time_ns() // 1000
        self._router.record_sent(placed, now_us)
        return now_us

    def refuse(self, write: ClientWrite, reason: str) -> None:
        """Give up a write for this reason, and tell the client."""
        client, placed = write.client, write.placed
        self.withdraw(write, reason)
        error = LimitExceeded(
            f"{reason}: nothing of this was kept{_named([each.destination for each in placed for _ in each.messages])}"
        )
        self._replies.refuse(client, error, write.receipt)
        if client.id not in self._clients:  # it cannot be told
            logger.warning("a message of %s, who left, was not kept: %s", client.client_id, error)
            for each in () if write.is_commit else placed:
                sent_to, message = str(each.destination), each.message
                self._tracer.record_one(DROP, message.born_us, message, sent_to, sent_to, client.client_id, "no room")

    def withdraw(self, write: ClientWrite, why: str = "the connection ended") -> None:
        """Give up a write without telling the client."""
        if write.is_commit:
            self._router.record_rolled_back(write.placed, why)
        if write.waiting is not None:
            self._flow_control.release(write.waiting)
        write.on_ended()
        if write.undo is not None:
            write.undo()
        self._arrivals.on_refused(write.given)

    def renew(self, write: ClientWrite) -> None:
        """Create queues again that were deleted while a write waited. Raises RequestRefused."""
        if self._router.restore_queues(write.placed):
            write.refresh_runs()

    def on_scheduled(self, jobs: Sequence[ScheduledJobChange]) -> None:
        """The store holds these messages until they are due."""
        self._scheduled_jobs.note(min([each.due_ms for each in jobs]))

    def _remove_dropped(
        self, placed: Sequence[RoutedBatch], dropped: Sequence[tuple[int, int]], repeated: Sequence[tuple[int, int]]
    ) -> None:
        """Take copies out of their routes whose queues were full, where virtual topics want them dropped then.

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
