"""Know the prepared branches of distributed transactions, and end them for clients and operators.

What is prepared is in the store alone, so that it survives everything and any node ends it: its sends appear when it is
committed; what it acknowledged has left its queues, and comes back when it is rolled back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from brokerapp.core.writes.client_write import BranchWrite
from brokerapp.engine.clients.branch_parts import DONE, BranchStep, branch_of, parts_of
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.clients.prepared_branch import PreparedAck, PreparedBranch, PreparedSends, PreparedSummary
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.engine.entries.log_entry import UNCOMMITTED, LogEntry
from brokerapp.engine.routing.route_walk import Route
from brokerapp.engine.scheduling.scheduled_job import ScheduledJob
from brokerapp.errors import BrokerError, TransactionNotFound
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes, RoutedCopy
from brokerapp.store import BranchChange, FirstNumber, ScheduledJobChange, numbers_from
from brokerapp.system import clock
from brokerapp.tracing.schema import RETURN

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        ArrivalsPort,
        BrokerContext,
        ExpirationPort,
        HeldSendsPort,
        MessageRouterPort,
        Placement,
        ScheduledJobsPort,
        TemporariesPort,
        TransactionsPort,
    )

logger = logging.getLogger(__name__)

#: Why what a branch sent is recorded as rolled back, and what it acknowledged as back. Analyses know it by that.
ROLLED_BACK = "a prepared transaction was rolled back"
#: Milliseconds between two looks at what other nodes prepared and ended.
REFRESH_MS = 10_000

#: Told how it ended: None, or why it did not.
Outcome = Callable[[BrokerError | None], None]


class _Holder(NamedTuple):
    """Who held a message when it was acknowledged, under which key."""

    subscription: Subscription
    key: str

    @property
    def is_there(self) -> bool:
        return self.subscription.client.by_key.get(self.subscription.key) is self.subscription


class _Holders(NamedTuple):
    """Who held what a branch acknowledged that was prepared at this node."""

    of_stored: list[_Holder]  #: of what the branch keeps, in this order
    of_topics: list[tuple[_Holder, LogEntry]]  #: messages that are in no queue

    def tell_of_end(self, id: str) -> None:
        """Tell the clients that a part of a branch is over in which they acknowledged messages."""
        holders = [*self.of_stored, *(holder for holder, _ in self.of_topics)]
        for client in {holder.subscription.client for holder in holders}:
            client.on_branch_ended(branch_of(id))


_NOBODY = _Holders([], [])


class PreparedBranches:
    """Commits prepared branches, or rolls them back. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        arrivals: ArrivalsPort,
        expiration: ExpirationPort,
        held: HeldSendsPort,
        placement: Placement,
        router: MessageRouterPort,
        scheduled_jobs: ScheduledJobsPort,
        temporaries: TemporariesPort,
        transactions: TransactionsPort,
    ) -> None:
        self._commits, self._counters, self._timers = context.commits, context.counters, context.timers
        self._tracer = context.tracer
        self._arrivals, self._expiration, self._held, self._router = arrivals, expiration, held, router
        self._scheduled_jobs, self._temporaries, self._transactions = scheduled_jobs, temporaries, transactions
        self._placement = placement
        self._holders: dict[str, _Holders] = {}
        self._is_reading = False
        self.known: dict[str, PreparedSummary] = {}  #: those that are prepared, as far as this node knows

    def start(self) -> None:
        """Find out what is prepared, now and again: other nodes prepare and end branches, too."""
        self.refresh()
        self._timers.call_every(REFRESH_MS, self.refresh, clock.now_ms())

    def refresh(self) -> None:
        """Find out what is prepared now."""
        if not self._is_reading:
            self._is_reading = True
            self._commits.read_with(lambda store: store.branches.summaries(), self._on_read)

    def _on_read(self, summaries: dict[str, bytes]) -> None:
        self._is_reading = False
        self.known = {name: PreparedSummary.decode(each) for name, each in summaries.items()}
        for name in self._holders.keys() - self.known.keys():  # another node ended it
            self._holders.pop(name).tell_of_end(name)

    def status(self) -> dict[str, int]:
        """Return how many branches are `prepared`, and since when the oldest is: `oldest_ms`, 0 where there is none."""
        since = [each.prepared_ms for each in self.known.values()]
        return {"prepared": len(set(map(branch_of, self.known))), "oldest_ms": min(since, default=0)}

    def note(self, name: str, summary: PreparedSummary, settled: Sequence[tuple[Subscription, str, LogEntry]]) -> None:
        """Note that a branch is prepared, and who held what it acknowledged."""
        self.known[name] = summary
        holders = [(_Holder(subscription, key), entry) for subscription, key, entry in settled]
        self._holders[name] = _Holders(
            [holder for holder, entry in holders if is_from_log(entry)],
            [(holder, entry) for holder, entry in holders if not is_from_log(entry)],
        )

    def note_part(self, id: str, node: str) -> None:
        """Note that another node prepared a part of a branch that is prepared here."""
        self.known[id] = PreparedSummary("", "", clock.now_ms(), 0, 0, 0, node)

    def end(self, name: str, *, is_committed: bool, then: Outcome) -> None:
        """Commit a prepared branch with all its parts, or roll it back, and tell how that went."""
        if self._placement.is_alone:
            self._end_parts(name, parts_of(name, self.known) or [name], is_committed, then)
            return

        def found(summaries: dict[str, bytes]) -> None:
            parts = parts_of(name, summaries)
            self.known.update((each, PreparedSummary.decode(summaries[each])) for each in parts)
            self._end_parts(name, parts or [name], is_committed, then)

        self._commits.read_with(lambda store: store.branches.summaries(), found)

    def _end_parts(self, name: str, parts: list[str], is_committed: bool, then: Outcome) -> None:
        """End these parts one after the other: that of the branch's name is the last, so that it can be repeated."""

        def ended(error: BrokerError | None) -> None:
            if error is None or (parts and isinstance(error, TransactionNotFound)):
                end_next() if parts else then(None)
            else:
                then(error)

        def end_next() -> None:
            id = parts.pop(0)
            node = self.known[id].node if id in self.known else ""
            if is_committed or not self._placement.is_other_member(node):
                self.end_part(id, is_committed=is_committed, then=ended)
            else:
                self._end_at(node, id, ended)

        end_next()

    def _end_at(self, node: str, id: str, then: Outcome) -> None:
        """Roll back a part at the node whose clients held what it acknowledged; here, if that is gone meanwhile."""

        def answered(answers: Mapping[str, str]) -> None:
            if answers[node] == DONE:
                self.known.pop(id, None)
                then(None)
            else:
                self.end_part(id, is_committed=False, then=then)

        self._placement.branch_exchange.ask(BranchStep.RETURN, id, answered, sessions=[node])

    def end_part(self, id: str, *, is_committed: bool, then: Outcome) -> None:
        """Commit a part of a prepared branch, or roll it back, and tell how that went."""

        def found(held: bytes | None) -> None:
            if held is None:
                then(_not_found(id))
                return
            try:
                branch = PreparedBranch.decode(held)
                (self._commit if is_committed else self._roll_back)(id, branch, then)
            except BrokerError as error:  # it stays prepared
                logger.warning("transaction %s could not be ended: %s", id, error)
                then(error)

        self._commits.read_with(lambda store: store.branches.read(id), found)

    def _commit(self, name: str, branch: PreparedBranch, then: Outcome) -> None:
        now_ms = clock.now_ms()
        placed = list(map(self._placed, branch.sends))
        jobs = [
            ScheduledJobChange(id, ScheduledJob.load(record).schedule.first(now_ms), record, new=True)
            for id, record in branch.jobs
        ]
        self._held.store([each for batch in placed for group in batch.route.groups for each in group.names])

        def done(seq: FirstNumber, refused: str) -> None:
            if not self._ended(name, refused, then):
                return
            now_us = time.time_ns() // 1000
            self._router.record_sent(placed, now_us)
            self._arrivals.on_committed(placed, seq, now_us)
            if jobs:
                self._scheduled_jobs.note(min([each.due_ms for each in jobs]))
            self._expiration.expire_on_arrival(placed)
            self._holders.pop(name, _NOBODY).tell_of_end(name)
            then(None)

        appends = [append for each in placed for append in each.appends]
        self._commits.submit(BranchWrite(BranchChange(name), appends, jobs=jobs, callback=done))

    def _placed(self, sends: PreparedSends) -> RoutedBatch:
        """Messages on the way that was found when they were sent; the queues on it exist from now on."""
        queues = [each for each in sends.queues if not self._temporaries.is_gone(each.destination)]
        way = Route(queues=queues, topics=sends.topics)
        way.groups = self._router.append_groups(way)
        stored = [message.stored() if way.groups else b"" for message in sends.messages]
        return RoutedBatch(sends.messages, stored, sends.destination, way, places=sends.places)

    def _roll_back(self, name: str, branch: PreparedBranch, then: Outcome) -> None:
        """Let what was acknowledged come back: to the consumer that has kept it, else to the end of its queue."""
        holders = self._holders.get(name, _NOBODY)
        known = dict(enumerate(holders.of_stored))
        returning = [
            (self._returned(ack), known.get(at))
            for at, ack in enumerate(branch.acks)
            if not self._temporaries.is_gone(Destination.parse(ack.log))
        ]
        returning = [(placed, holder) for placed, holder in returning if placed.route.groups]

        def done(seq: FirstNumber, refused: str) -> None:
            if not self._ended(name, refused, then):
                return
            self._holders.pop(name, None)
            never_sent = [RoutedBatch(each.messages, [], each.destination, Route()) for each in branch.sends]
            self._router.record_rolled_back(never_sent, ROLLED_BACK)
            kept: dict[Subscription, dict[str, LogEntry]] = {}
            for number, (placed, holder) in zip(numbers_from(seq, len(returning)), returning, strict=True):
                entry = self._hold(placed, number) if holder is not None and holder.is_there else None
                if entry is None:
                    self._arrivals.on_committed([placed], number, time.time_ns() // 1000, RETURN, ROLLED_BACK)
                elif holder is not None:
                    kept.setdefault(holder.subscription, {})[holder.key] = entry
            for holder, entry in holders.of_topics:
                if holder.is_there:
                    self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount += 1
                    kept.setdefault(holder.subscription, {})[holder.key] = entry
            for subscription, entries in kept.items():
                self._transactions.hold_again(subscription, entries)
            holders.tell_of_end(name)
            then(None)

        appends = [append for placed, _ in returning for append in placed.appends]
        self._commits.submit(BranchWrite(BranchChange(name), appends, callback=done))

    def _returned(self, ack: PreparedAck) -> RoutedBatch:
        """A message on its way back."""
        queue = Destination.parse(ack.log)
        original, shown = (Destination.parse(each) if each else None for each in (ack.original, ack.shown))
        way = Route(queues=[RoutedCopy(queue, original, shown)])
        way.groups = self._router.append_groups(way)
        return RoutedBatch.of(ack.message, queue, way)

    def _hold(self, placed: RoutedBatch, number: int) -> LogEntry | None:
        """Take a message that came back as in flight, as its consumer has it; None where another node dispatches it."""
        [group] = placed.route.groups
        [log], [(name, original, shown)], message = group.logs, group.rows, placed.message
        if log.is_remote:
            return None
        entry = LogEntry(name, UNCOMMITTED, message, 0, len(placed.stored[0]), original, shown, message.deliveries)
        self._arrivals.count_arrivals(log, [message], BodySizes.of([message]))
        sent_to = str(placed.destination)
        self._tracer.record(RETURN, time.time_ns() // 1000, [message], group.names, sent_to, reason=ROLLED_BACK)
        log.hold_returned([entry], [number])
        return entry

    def _ended(self, name: str, refused: str, then: Outcome) -> bool:
        """Whether a branch is over; else it was already."""
        self.known.pop(name, None)
        if refused:
            then(_not_found(name))
        return not refused


def _not_found(name: str) -> TransactionNotFound:
    return TransactionNotFound(f"transaction {branch_of(name)!r} is neither open nor prepared")
