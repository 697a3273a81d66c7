"""Deliver scheduled messages when they are due; they wait in the store.

A job is done in one step: what it brings is stored in the very commit in which it goes, so that a crash loses none and
doubles none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.core.writes.client_write import JobWrite
from brokerapp.engine.scheduling.scheduled_job import JobPurpose, ScheduledJob
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.store import GONE, FirstNumber, ScheduledJobChange, StoredJob
from brokerapp.system import clock
from brokerapp.system.timers import Timer
from brokerapp.tracing.schema import DROP

if TYPE_CHECKING:
    from brokerapp.core.ports import ArrivalsPort, BrokerContext, DeadLettersPort, RedeliveryPort, SchedulerPort

logger = logging.getLogger(__name__)

#: Jobs read, and done, at once.
PAGE = 500
#: Milliseconds until what could not be done (a queue is full) is tried again.
RETRY_MS = 1_000
#: Milliseconds until a job that failed for a reason nobody thought of is tried again.
FAULT_RETRY_MS = 60_000


class ScheduledJobs:
    """Does what is due, in order of time. A part of the broker.

    `does` says for each purpose who knows what to do: given the job's id, when it was due, and the job, it submits a
    unit that ends the job or puts it off. It may raise RequestRefused.
    """

    def __init__(
        self,
        *,
        context: BrokerContext,
        dead_letters: DeadLettersPort,
        redelivery: RedeliveryPort,
        scheduler: SchedulerPort,
        arrivals: ArrivalsPort,
    ) -> None:
        self._timers, self._commits, self._tracer = context.timers, context.commits, context.tracer
        self._dead_letters, self._arrivals = dead_letters, arrivals
        self._timer: Timer | None = None
        self._under_way = False
        self._put_off = 0  # of those that are due: they stay where they are
        self.does: dict[JobPurpose, Callable[[str, int, ScheduledJob], None]] = {
            JobPurpose.SEND: scheduler.deliver,
            JobPurpose.RETURN: redelivery.return_message,
        }

    def start(self) -> None:
        """Find out when the first job is due."""
        self._commits.read_with(lambda store: store.schedules.next_due_ms(), self._wait)

    def note(self, due_ms: int) -> None:
        """A job is due then."""
        if self._timer is None or due_ms < self._timer.due_ms:
            self._wait(due_ms)

    def _wait(self, due_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due_ms is None else self._timers.at(due_ms, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if not self._under_way:
            self._under_way, self._put_off = True, 0
            self._next_page()

    def _next_page(self) -> None:
        now_ms, skip = clock.now_ms(), self._put_off
        self._commits.read_with(lambda store: store.schedules.read_jobs(0, now_ms, skip, PAGE), self._found)

    def _found(self, due: list[StoredJob]) -> None:
        if not due:
            self._under_way = False
            if self._put_off:
                self.note(clock.now_ms() + RETRY_MS)
            else:
                self._commits.read_with(lambda store: store.schedules.next_due_ms(), self._found_next)
            return
        for each in due:
            try:
                self._do(each)
            except Exception:  # a fault with one job is no reason to end the node, nor to keep others waiting
                logger.exception("job %s failed: it is tried again in %d s", each.id, FAULT_RETRY_MS // 1000)
                self._try_later(each)
        self._next_page()

    def _do(self, due: StoredJob) -> None:
        job = ScheduledJob.load(due.record)
        if job.message.is_damaged:
            self._fail(due.id, job)
            return
        try:
            self.does[job.purpose](due.id, due.due_ms, job)
        except RequestRefused as error:  # as the definitions are now it cannot be sent
            logger.warning("job %s for %s has to wait: %s", due.id, job.to, error)
            self._put_off += 1

    def _try_later(self, job: StoredJob) -> None:
        change = ScheduledJobChange(job.id, clock.now_ms() + FAULT_RETRY_MS, job.record)
        then = lambda _seq, refused: self.outcome(refused, lambda: None)  # noqa: E731
        self._commits.submit(JobWrite([change], ignores_limits=True, callback=then))

    def _found_next(self, due_ms: int | None) -> None:
        if due_ms is not None:
            self.note(due_ms)

    def lose(self, id: str, message: Message, to: Destination, sent_to: str) -> None:
        """A job ends with nothing: where its message was to go is gone for good. That is recorded with its cause."""
        logger.warning("job %s is dropped: %s does not exist", id, to)
        now_us = time.time_ns() // 1000
        self._tracer.record_one(DROP, now_us, message, str(to), sent_to, None, "the temporary destination is gone")
        self._commits.submit(JobWrite([ScheduledJobChange(id)], ignores_limits=True))

    def _fail(self, id: str, job: ScheduledJob) -> None:
        """Let the damaged message of a job be a dead letter instead."""
        placed = self._dead_letters.route_damaged_job(job.message, Destination.parse(job.to.partition(",")[0]))

        def then(seq: FirstNumber, refused: str) -> None:
            moved_us = time.time_ns() // 1000
            self.outcome(refused, lambda: placed and self._arrivals.on_committed([placed], seq, moved_us=moved_us))

        appends = placed.appends if placed is not None else []
        self._commits.submit(JobWrite([ScheduledJobChange(id)], appends, ignores_limits=True, callback=then))

    def outcome(self, refused: str, then: Callable[[], None]) -> None:
        """What became of a unit that does a job: `then` when it is done; when something was full, later."""
        if not refused:
            then()
        elif refused != GONE:
            self._put_off += 1
