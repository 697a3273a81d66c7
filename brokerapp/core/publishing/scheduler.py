"""Handle SEND with AMQ_SCHEDULED_* headers, delivery when due, and management by messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.core.publishing.scheduled_jobs import PAGE
from brokerapp.core.writes.client_write import JobWrite
from brokerapp.engine.clients.client import Client, RoutedBatch, Transaction
from brokerapp.engine.policy.broker_headers import ORIGIN, with_broker_headers
from brokerapp.engine.scheduling.delivery_schedule import HEADERS, LONGEST_MS, DeliverySchedule, read_schedule
from brokerapp.engine.scheduling.scheduled_job import JobPurpose, ScheduledJob
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import Destination, list_of
from brokerapp.model.message import Message, unescape
from brokerapp.store import FirstNumber, ScheduledJobChange, StoredJob
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        ArrivalsPort,
        Authorizer,
        BrokerContext,
        MessageFactoryPort,
        MessageRouterPort,
        MessageWriterPort,
        Replies,
        ScheduledJobsPort,
        SendAdmissionPort,
        TemporariesPort,
    )
    from brokerapp.engine.clients.quotas import Quotas

#: What the names of all headers that concern scheduling begin with.
MARK = "AMQ_SCHEDULE"
JOB_ID = "scheduledJobId"
#: ActiveMQ's management by messages: the topic, and the headers.
MANAGEMENT = Destination.topic("ActiveMQ.Scheduler.Management")
ACTION = "AMQ_SCHEDULER_ACTION"
START, END = "ACTION_START_TIME", "ACTION_END_TIME"
ACTIONS = ("BROWSE", "REMOVE", "REMOVEALL")


def has_schedule_headers(send: SendCommand) -> bool:
    """Return whether a message has headers of a schedule."""
    return MARK in send.properties


class MessageScheduler:
    """Keeps messages until they are due, and delivers them. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        admission: SendAdmissionPort,
        arrivals: ArrivalsPort,
        messages: MessageFactoryPort,
        quotas: Quotas,
        replies: Replies,
        router: MessageRouterPort,
        scheduled_jobs: ScheduledJobsPort,
        temporaries: TemporariesPort,
        writer: MessageWriterPort,
    ) -> None:
        self._settings, self._commits = context.settings, context.commits
        self._authorizer, self._admission, self._quotas = authorizer, admission, quotas
        self._messages, self._router = messages, router
        self._replies, self._scheduled_jobs, self._temporaries = replies, scheduled_jobs, temporaries
        self._arrivals, self._writer = arrivals, writer

    def applies_to(self, send: SendCommand) -> bool:
        """Return whether a client's message has headers of a schedule that this broker honours."""
        return self._settings.scheduler_support and has_schedule_headers(send)

    def take(self, client: Client, send: SendCommand) -> bool:
        """Keep a message that asks to be delivered later; whether it did. Raises RequestRefused."""
        headers = _headers(send.properties)
        if ACTION in headers and Destination.parse_list(send.destination) == (MANAGEMENT,):
            self._authorizer.require(client, "write", MANAGEMENT)
            self._manage(client, send, headers)
            return True
        return self._kept(client, send, headers)

    # -- keeping

    def _kept(self, client: Client, send: SendCommand, headers: Mapping[str, str]) -> bool:
        """Keep for later what asks for that. What is refused spoils its transaction, as with any other SEND."""
        transaction = client.transaction(send.transaction) if send.transaction is not None else None
        try:
            schedule = read_schedule(headers, self._settings.max_scheduler_repeat_allowed)
            if schedule is not None:
                self._keep(client, send, schedule, transaction)
        except RequestRefused as error:
            if transaction is not None and send.receipt is None:
                transaction.failure = f"a SEND in it was refused: {error}"
            raise
        return schedule is not None

    def _keep(
        self, client: Client, send: SendCommand, schedule: DeliverySchedule, transaction: Transaction | None
    ) -> None:
        """A message is a job until it is due; in a transaction from the COMMIT on."""
        for each in Destination.parse_list(send.destination):
            self._authorizer.require(client, "write", each)
            self._admission.check(each)
        schedule.first(clock.now_ms())  # raises when that is never
        message = self._messages.message(replace(send, properties=_without_schedule(send.properties)))
        job = ScheduledJob(JobPurpose.SEND, send.destination, message, schedule)
        record = job.record()

        def change() -> ScheduledJobChange:
            return ScheduledJobChange(message.id, schedule.first(clock.now_ms()), record, new=True)

        if transaction is None:
            self._writer.perform(client, (), [send.receipt], jobs=[change()])
        else:
            client.check_transaction_limits(transaction, size=len(record))
            self._quotas.reserve(len(record))
            transaction.jobs.append(change)
            transaction.bytes += len(record)
            self._replies.confirm(client, send.receipt)
        client.sent_count += 1

    # -- delivering

    def deliver(self, id: str, due_ms: int, job: ScheduledJob) -> None:
        """It is due: deliver it, and put it off to the next time if there is one; all of that or nothing."""
        now_ms, schedule = clock.now_ms(), job.schedule
        everywhere = Destination.parse_list(job.to)
        targets = [each for each in everywhere if not self._temporaries.is_gone(each)]
        if not targets:
            self._scheduled_jobs.lose(id, job.message, everywhere[0], job.to)
            return
        following = schedule.after(due_ms, now_ms)
        if following is None:
            changes = [ScheduledJobChange(id)]
        else:
            changes = [ScheduledJobChange(id, following[0], replace(job, schedule=following[1]).record())]
        if schedule.starts_repetitions:
            row = replace(job, schedule=schedule.row)
            changes.append(
                ScheduledJobChange(self._messages.next_id(), row.schedule.first(due_ms), row.record(), new=True)
            )
            self._submit(changes, [])
            return
        only_once = following is None and id == job.message.id and not schedule.recurs
        message = _sent_now(job.message, job.message.id if only_once else self._messages.next_id(), id, now_ms)
        sent_to = list_of(job.to)
        placed = [self._router.prepare(message, each, sent_to) for each in targets]
        self._submit(changes, placed, moves=following is None)

    def _submit(self, changes: list[ScheduledJobChange], placed: list[RoutedBatch], moves: bool = False) -> None:
        jobs = self._scheduled_jobs

        def then(seq: FirstNumber, refused: str) -> None:
            jobs.outcome(refused, lambda: self._arrivals.on_committed(placed, seq))

        appends = [append for each in placed for append in each.appends]
        self._commits.submit(JobWrite(changes, appends, moves, then))

    # -- management by messages

    def _manage(self, client: Client, send: SendCommand, headers: Mapping[str, str]) -> None:
        """What ActiveMQ's clients ask of the scheduler. Its outcome is final when the receipt comes."""
        action, window = headers[ACTION], _window(headers)

        def done(_count: int = 0) -> None:
            client.on_write_done()
            self._replies.confirm(client, send.receipt)

        match action:
            case "BROWSE":
                if not (reply_to := headers.get("reply-to")):
                    raise RequestRefused(f"{ACTION}:BROWSE without reply-to, which says where the answer goes")
                targets = Destination.parse_list(reply_to)
                for each in targets:
                    self._authorizer.require(client, "write", each)
                self._each(window, lambda job: self._show(job, targets), done)
            case "REMOVE":
                if not (id := headers.get(JOB_ID)):
                    raise RequestRefused(f"{ACTION}:REMOVE without {JOB_ID}")
                self.remove(id, lambda _found: done())
            case "REMOVEALL":
                self._each(window, lambda job: self._remove(job.id), done)
            case _:
                raise RequestRefused(f"{ACTION}:{action[:40]} is not one of {', '.join(ACTIONS)}")
        client.on_write_started()

    def remove(self, id: str, then: Callable[[bool], None]) -> None:
        """Let a message that waits be delivered no more; `then` is told whether there was such a job."""
        self._commits.submit(JobWrite([ScheduledJobChange(id)], callback=lambda _seq, refused: then(not refused)))

    def _remove(self, id: str) -> bool:
        self.remove(id, lambda _found: None)
        return True

    def _each(
        self, window: tuple[int, int], step: Callable[[StoredJob], bool], done: Callable[[], None], skip: int = 0
    ) -> None:
        """Take this step with every message due in the window, a page at a time; it says whether that is gone then."""

        def found(jobs: list[StoredJob]) -> None:
            if not jobs:
                done()
                return
            scheduled = [each for each in jobs if ScheduledJob.purpose_of(each.record) is JobPurpose.SEND]
            gone = sum([step(each) for each in scheduled])
            self._each(window, step, done, skip + len(jobs) - gone)

        self._commits.read_with(lambda store: store.schedules.read_jobs(*window, skip, PAGE), found)

    def _show(self, stored: StoredJob, targets: tuple[Destination, ...]) -> bool:
        """Send a copy of a message that waits, with what it waits for, to somebody who asked."""
        job = ScheduledJob.load(stored.record)
        id = self._messages.next_id()
        headers = {"message-id": id, "persistent": None, ORIGIN: job.to, JOB_ID: stored.id, "type": "Advisory"}
        told = with_broker_headers(job.message.headers, headers | job.schedule.headers())
        message = job.message.with_headers(told, id=id, persistent=False)
        placed = [self._router.prepare(message, each) for each in targets]
        self._submit([], placed)
        return False


def _lines(properties: str) -> list[str]:
    return properties.split("\n")[:-1]


def _headers(properties: str) -> dict[str, str]:
    """Header lines as a mapping, values unescaped."""
    pairs = (line.partition(":") for line in _lines(properties))
    return {unescape(name): unescape(value) for name, _, value in pairs}


def _without_schedule(properties: str) -> str:
    return "".join(f"{line}\n" for line in _lines(properties) if line.partition(":")[0] not in HEADERS)


def _sent_now(message: Message, id: str, job_id: str, now_ms: int) -> Message:
    """A message as it is delivered when it is due: what time it had to live begins now."""
    headers, expires = {"message-id": id, JOB_ID: job_id}, message.expires
    sent_ms = int(message.headers["timestamp"])
    if expires > 0 and sent_ms > 0 and now_ms > sent_ms:
        expires += now_ms - sent_ms
        headers |= {"expires": str(expires), "timestamp": str(now_ms)}
    return message.with_headers(headers, id=id, expires=expires, born_us=now_ms * 1000)


def _window(headers: Mapping[str, str]) -> tuple[int, int]:
    """The moments between which jobs are due that are asked for, milliseconds since the epoch."""
    found = []
    for name, default in ((START, 0), (END, 2 * LONGEST_MS)):
        text = headers.get(name, str(default)).strip()
        if not (text.isascii() and text.isdecimal() and len(text) <= 15):
            raise RequestRefused(f"{name}:{text[:40]} is not a moment in milliseconds since the epoch")
        found.append(int(text))
    return found[0], found[1]
