"""Takes over logs that this node owns from now on.

A node takes them when all other members have said that they give nothing out any more that left them: then all that is
held is known, and so is what was given back meanwhile. It reads what the store has, and goes on from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_groups import group_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import is_open, maybe_delivered_up_to
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.store import LogState

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership


class HandoffIn:
    """Takes over logs once all other members have stopped dispatching from them."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._epoch_done_by_session: dict[str, int] = {}  # session -> epoch in which it gives out nothing that left it
        self._requeued: dict[str, dict[int, int]] = defaultdict(dict)  # log -> number -> deliveries
        self._dispatched: dict[str, dict[int, int]] = defaultdict(dict)  # log -> number -> deliveries
        self._callbacks: list[Callable[[], None]] = []

    # -- what others still give out

    def on_epoch_done(self, session: str, epoch: int) -> None:
        """A node gives out nothing any more that left it in this epoch."""
        self._epoch_done_by_session[session] = epoch

    def forget(self, session: str) -> None:
        """A node hears us no longer, or is no member: what it said counts no more."""
        self._epoch_done_by_session.pop(session, None)

    @property
    def all_done(self) -> bool:
        """Whether all other members give out nothing any more that is at home here."""
        return all(
            self._epoch_done_by_session.get(each, -1) >= self._ownership.members.epoch
            for each in self._ownership.other_sessions
        )

    @property
    def can_take_over(self) -> bool:
        """The same, and the logs of the broker are known here."""
        return not self._ownership.is_joining and self.all_done

    def is_pending(self, log: str | None) -> bool:
        """Whether this log is at home here and has not been taken yet."""
        known = self._broker.queues.get(log) if log is not None else None
        return known is not None and known.is_remote and self._ownership.is_local(known.name)

    # -- what came back before a log was taken

    def on_requeued(self, name: str, entries: Iterable[LogEntry]) -> None:
        """Consumers gave these back to this home, which has not taken the log yet."""
        came = {each.seq: each.redelivery_count + 1 for each in entries}
        if came and self._ownership.is_local(name) and self._broker.queues.get(name) is not None:
            self._requeued[name].update(came)

    def on_dispatched(self, _session: str, name: str, sent: Iterable[tuple[int, int]]) -> None:
        """Note what the former owner of a log sent to consumers.

        What none of them turns out to hold was dropped on its way. Another consumer may have got later messages by now:
        it comes flagged, as all that comes out of its order.
        """
        if self.is_pending(name):
            self._dispatched[name].update((number, deliveries + 1) for number, deliveries in sent)

    def on_log_removed(self, log: str) -> None:
        """A log is no more."""
        self._requeued.pop(log, None)
        self._dispatched.pop(log, None)

    def on_members_changed(self) -> None:
        """The members are others: what came back of logs that are not at home here is another's business."""
        for noted in (self._requeued, self._dispatched):
            for name in [each for each in noted if not self._ownership.is_local(each)]:
                del noted[name]

    # -- taking them

    def when_taken_over(self, then: Callable[[], None]) -> None:
        """Go on when all that is at home here is given out from here."""
        self._callbacks.append(then)
        self.take_over()

    def take_over(self) -> None:
        """Take the logs that are at home here and that nobody gives out any more."""
        if not self.can_take_over:
            return
        vacant = [log.name for log in self._broker.queues if log.is_remote and self._ownership.is_local(log.name)]
        if not vacant:
            self._on_taken_over()
            return
        epoch = self._ownership.members.epoch

        def found(answer: tuple[int, list[LogState]]) -> None:
            last, states = answer
            if self._ownership.members.epoch == epoch and self.can_take_over:
                for state in states:
                    log = self._broker.queues.get(state.name)
                    if log is not None and log.is_remote:
                        self._take_over_log(log, state, last)
                self._on_taken_over()

        self._broker.commits.read_with(lambda store: store.logs.recover_logs(vacant), found)

    def _on_taken_over(self) -> None:
        waiting, self._callbacks = self._callbacks, []
        for then in waiting:
            then()

    def _take_over_log(self, log: MessageLog, state: LogState, last: int) -> None:
        """Give out a log's messages here, in which guests and our own clients hold some."""
        homes, consuming = self._ownership, self._broker.consumers
        account = homes.outbound_consumers.on_taken_over(log)
        log.is_remote, log.shared = False, bool(homes.other_sessions)
        log.handoff_count += 1
        numbers = homes.inbound_consumers.unacked_seqs(log.name) | set(account.unacked)
        alive = {homes.session, *homes.other_sessions}
        homes.depth_recount.mark_stale(log)
        sent_out = self._dispatched.pop(log.name, {})
        dropped = {number: deliveries for number, deliveries in sent_out.items() if number not in numbers}
        returned = {**dropped, **state.returned, **self._requeued.pop(log.name, {})}
        homes.handoff_out.forget_log(log.name)
        log.take_over(state.depth, maybe_delivered_up_to(state.mark, last, alive), returned, numbers, last)
        durable = self._broker.durables.known(log.name)
        for subscription in account.consumers:
            if durable is not None:
                self._broker.durables.adopt(durable, subscription)
            consuming.attach_local(subscription, log)
        holders = {holder for holder, _ in account.unacked.values()}
        log.consumers.sort(
            key=lambda each: each not in holders and not homes.inbound_consumers.has_unacked(each, log.name)
        )
        for subscription, entry in (*account.unacked.values(), *homes.inbound_consumers.unacked_of(log.name)):
            group = group_of(entry)
            if group is not None and subscription in log.consumers:
                log.assign_group(group, subscription)
        if log.consumers:
            consuming.mark(log)
        elif is_open(state.mark):
            self._broker.commits.set_recovery_mark(log.name, str(log.maybe_delivered_up_to))
        self._broker.durables.moved(log)
        log.counts.ConsumerCount = len(log.consumers)
        self._broker.counters.mark_changed(log.counts)
        self._broker.dispatcher.touch(log)
        homes.handoff_out.suspend_if_leaving(log)  # the members may be about to be others
