"""Remove expired messages from queues that no consumer reads.

The store keeps, for each log, which entries expire when (store/functions/moments.lua), so that a log without such
messages costs nothing and an expired message among millions is found at once. What a consumer holds stays with it until
it is acknowledged or comes back; what is about to be dispatched is checked by the dispatcher.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.model.definitions import PolicyEntry
from brokerapp.store import StoredLogEntry
from brokerapp.system import clock
from brokerapp.system.timers import Timer

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DeadLettersPort, Destinations, DispatchQueue, RoutingPort

#: ActiveMQ's `expireMessagesPeriod`, milliseconds, and the shortest one that is kept: each look is a call of the store.
DEFAULT_PERIOD_MS = 30_000
MIN_PERIOD_MS = 100
#: ActiveMQ's `maxExpirePageSize`. Here it bounds a step: between two steps of a sweep other work gets its turn.
DEFAULT_PAGE_SIZE = 400
#: The most that a policy may make of it: a page is in memory as a whole.
MAX_PAGE_SIZE = 2_000


class ExpirationSweeper:
    """Looks for expired messages in the periods of the policies in force."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        dead_letters: DeadLettersPort,
        dispatcher: DispatchQueue,
        queues: Destinations,
        routing: RoutingPort,
    ) -> None:
        self._timers, self._commits = context.timers, context.commits
        self._dead_letters, self._dispatcher, self._queues = dead_letters, dispatcher, queues
        self._routing = routing
        self._sweeps: dict[int, Timer] = {}  # by period
        self._sweeping: set[MessageLog] = set()

    def apply_policies(self) -> None:
        """Sweep in the periods of the policies that are in force from now on."""
        periods = {self._period(policy) for policy in (None, *self._routing.table.definitions.policies)} - {0}
        for period in self._sweeps.keys() - periods:
            self._sweeps.pop(period).cancel()
        for period in periods - self._sweeps.keys():
            self._schedule_sweep(period)

    @staticmethod
    def _period(policy: PolicyEntry | None) -> int:
        """Return milliseconds between two sweeps of the queues of a policy; 0: none."""
        period = policy.expire_messages_period if policy is not None else None
        if period is None:
            return DEFAULT_PERIOD_MS
        return max(period, MIN_PERIOD_MS) if period > 0 else 0

    def _schedule_sweep(self, period: int) -> None:
        def look() -> None:
            self._schedule_sweep(period)
            now_ms = clock.now_ms()
            self._commits.read_with(
                lambda store: store.schedules.logs_with_expired(now_ms),
                lambda names: self._on_logs_found(names, period),
            )

        self._sweeps[period] = self._timers.at(clock.now_ms() + period, look)

    def _on_logs_found(self, names: list[str], period: int) -> None:
        """Sweep those logs with expired messages that have this period."""
        queues = self._queues
        logs = [log for name in names if (log := queues.get(name)) is not None]
        policy_for = self._routing.table.policy_for
        self.sweep(log for log in logs if self._period(policy_for(log.destination)) == period)

    def expire_on_arrival(self, placed: Iterable[RoutedBatch]) -> None:
        """These messages are about to be stored: those that come past their time do not wait for the next sweep."""
        expiring = [(each, one) for each in placed for one in each.messages if one.expires]
        if not expiring:  # as almost always
            return
        expired = [each for each, one in expiring if one.expires <= one.born_us // 1000]
        self.sweep(dict.fromkeys(log for each in expired for group in each.route.groups for log in group.logs))

    def sweep(self, logs: Iterable[MessageLog]) -> None:
        """Dead-letter or drop expired messages that nobody holds; paused queues wait until they are resumed."""
        for log in logs:
            if not (log.paused or log.is_remote or log in self._sweeping):
                self._sweeping.add(log)
                self._sweep_page(log, 0)

    def _sweep_page(self, log: MessageLog, skip: int) -> None:
        """Expire one page, after the first `skip` expired messages, which consumers hold."""
        policy = self._routing.table.policy_for(log.destination)
        count = min((policy and policy.max_expire_page_size) or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        now_ms, window = clock.now_ms(), log.generation

        def found(expired: list[StoredLogEntry]) -> None:
            if not expired or log.paused or log.is_remote or not self._queues.holds(log):
                self._sweeping.discard(log)
            elif window != log.generation:  # some of it may be settled meanwhile
                self._sweep_page(log, skip)
            else:
                taken = log.reserve(expired)
                for each in expired:
                    if each.seq in taken:
                        self._dead_letters.expire(log, log_entry_of(log.name, each))
                self._dispatcher.touch(log)
                self._sweep_page(log, skip + len(expired) - len(taken))

        self._commits.read_with(
            lambda store: store.schedules.read_expired(log.name, now_ms, skip, count), found, log.name
        )
