"""Coming: the logs that are to be given out here, until this node has taken them home. A part of Homes.

A node takes them when all other members have said that they give nothing out any more that left them: then all that is
held is known, and so is what was given back meanwhile. It reads what the store has, and goes on from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_groups import group_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import is_open, suspects
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.store import LogState

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker
    from brokerapp.nodes.ownership.coordinator import Homes


class Coming:
    """Those of one node."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._reached: dict[str, int] = {}  # session -> epoch in which it gives out nothing that left it
        self._came_back: dict[str, dict[int, int]] = defaultdict(dict)  # log -> number -> deliveries
        self._sent_out: dict[str, dict[int, int]] = defaultdict(dict)  # log -> number -> deliveries
        self._when_taken: list[Callable[[], None]] = []

    # -- what others still give out

    def reached(self, session: str, epoch: int) -> None:
        """A node gives out nothing any more that left it in this epoch."""
        self._reached[session] = epoch

    def forget(self, session: str) -> None:
        """A node hears us no longer, or is no member: what it said counts no more."""
        self._reached.pop(session, None)

    @property
    def all_reached(self) -> bool:
        """Whether all other members give out nothing any more that is at home here."""
        return all(self._reached.get(each, -1) >= self._homes.members.epoch for each in self._homes.others)

    @property
    def may_be_taken(self) -> bool:
        """The same, and the logs of the broker are known here."""
        return not self._homes.joining and self.all_reached

    def awaits(self, log: str | None) -> bool:
        """Whether this log is at home here and has not been taken yet."""
        known = self._broker.queues.get(log) if log is not None else None
        return known is not None and known.away and self._homes.is_here(known.name)

    # -- what came back before a log was taken

    def came_back(self, name: str, entries: Iterable[LogEntry]) -> None:
        """Consumers gave these back to this home, which has not taken the log yet."""
        came = {each.seq: each.deliveries + 1 for each in entries}
        if came and self._homes.is_here(name) and self._broker.queues.get(name) is not None:
            self._came_back[name].update(came)

    def sent_out(self, _session: str, name: str, sent: Iterable[tuple[int, int]]) -> None:
        """Note what the former owner of a log sent to consumers.

        What none of them turns out to hold was dropped on its way. Another consumer may have got later messages by now:
        it comes flagged, as all that comes out of its order.
        """
        if self.awaits(name):
            self._sent_out[name].update((number, deliveries + 1) for number, deliveries in sent)

    def lost(self, log: str) -> None:
        """A log is no more."""
        self._came_back.pop(log, None)
        self._sent_out.pop(log, None)

    def moved(self) -> None:
        """The members are others: what came back of logs that are not at home here is another's business."""
        for noted in (self._came_back, self._sent_out):
            for name in [each for each in noted if not self._homes.is_here(each)]:
                del noted[name]

    # -- taking them

    def when_taken(self, then: Callable[[], None]) -> None:
        """Go on when all that is at home here is given out from here."""
        self._when_taken.append(then)
        self.take()

    def take(self) -> None:
        """Take the logs that are at home here and that nobody gives out any more."""
        if not self.may_be_taken:
            return
        vacant = [log.name for log in self._broker.queues if log.away and self._homes.is_here(log.name)]
        if not vacant:
            self._taken()
            return
        epoch = self._homes.members.epoch

        def found(answer: tuple[int, list[LogState]]) -> None:
            last, states = answer
            if self._homes.members.epoch == epoch and self.may_be_taken:
                for state in states:
                    log = self._broker.queues.get(state.name)
                    if log is not None and log.away:
                        self._take_home(log, state, last)
                self._taken()

        self._broker.commits.ask(lambda store: store.logs.recover_logs(vacant), found)

    def _taken(self) -> None:
        waiting, self._when_taken = self._when_taken, []
        for then in waiting:
            then()

    def _take_home(self, log: MessageLog, state: LogState, last: int) -> None:
        """Give out a log's messages here, in which guests and our own clients hold some."""
        homes, consuming = self._homes, self._broker.consumers
        account = homes.abroad.take_in(log)
        log.away, log.shared = False, bool(homes.others)
        log.tenure += 1
        numbers = homes.guests.held(log.name) | set(account.held)
        alive = {homes.me, *homes.others}
        homes.doubts.note(log)
        sent_out = self._sent_out.pop(log.name, {})
        dropped = {number: deliveries for number, deliveries in sent_out.items() if number not in numbers}
        returned = {**dropped, **state.returned, **self._came_back.pop(log.name, {})}
        homes.leaving.owned_again(log.name)
        log.begin(state.depth, suspects(state.mark, last, alive), returned, numbers, last)
        durable = self._broker.durables.known(log.name)
        for subscription in account.consumers:
            if durable is not None:
                self._broker.durables.adopt(durable, subscription)
            consuming.attach_here(subscription, log)
        holders = {holder for holder, _ in account.held.values()}
        log.consumers.sort(key=lambda each: each not in holders and not homes.guests.holds(each, log.name))
        for subscription, entry in (*account.held.values(), *homes.guests.holding(log.name)):
            group = group_of(entry)
            if group is not None and subscription in log.consumers:
                log.note_owner(group, subscription)
        if log.consumers:
            consuming.mark(log)
        elif is_open(state.mark):
            self._broker.commits.mark(log.name, str(log.may_have_been_delivered))
        self._broker.durables.moved(log)
        log.counts.ConsumerCount = len(log.consumers)
        self._broker.counters.changed.add(log.counts)
        self._broker.dispatcher.touched[log] = None
        homes.leaving.stop_if_it_goes(log)  # the members may be about to be others
