"""Remove non-persistent messages that outlived the node they were sent to.

The store holds them, so that memory need not, but nobody was promised that they are there after a restart, and who
sends them counts on it that what is old by then is gone, as in ActiveMQ. Logs are looked through one after the other
and page by page; each gives out nothing until it was its turn. Where nothing of the kind is stored, nothing is looked
through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.store import StoredLogEntry

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DeadLettersPort, Destinations, DispatchQueue, IdleDestinationsPort

CAUSE = "it is not persistent, and the node it was sent to is gone"


class StaleNonPersistent:
    """Drops, when a node starts, the non-persistent messages of the former one."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        dead_letters: DeadLettersPort,
        dispatcher: DispatchQueue,
        idle_destinations: IdleDestinationsPort,
        queues: Destinations,
    ) -> None:
        self._commits = context.commits
        self._dead_letters, self._dispatcher, self._queues = dead_letters, dispatcher, queues
        self._on_log_checked = idle_destinations.recovered  # told of each log that holds nothing of the kind (any more)
        self._logs: deque[MessageLog] = deque()  # that were not looked through, the first one is under way
        self._last_seqs: Mapping[str, int] = {}  # by log

    def drop_up_to(self, last_seqs: Mapping[str, int]) -> None:
        """Drop the non-persistent messages of each log with numbers up to this one."""
        if not self._commits.temp:
            for log in list(self._queues):
                self._on_log_checked(log)
            return
        self._last_seqs = last_seqs
        for log in list(self._queues):
            if log.depth:
                self._logs.append(log)
            else:
                self._on_log_checked(log)
        for log in self._logs:
            log.suspend_reasons.add(CAUSE)
        self._read(0)

    def _read(self, after: int) -> None:
        """Read the next page of the first log."""
        if not self._logs:
            return
        log, window = self._logs[0], self._logs[0].generation
        last = self._last_seqs.get(log.name, 0)

        def found(page: list[StoredLogEntry]) -> None:
            if not self._queues.holds(log):
                page = []
            elif window != log.generation:  # some of it may be settled meanwhile
                self._read(after)
                return
            former = [each for each in page if each.seq <= last]
            self._drop(log, [each for each in former if not each.message.persistent])
            if page and len(former) == len(page):
                self._read(page[-1].seq)
                return
            log.suspend_reasons.discard(CAUSE)
            self._dispatcher.touch(log)
            self._logs.popleft()
            if self._queues.holds(log):
                self._on_log_checked(log)
            self._read(0)

        self._commits.read(log.name, after, PAGE_SIZE, found)

    def _drop(self, log: MessageLog, leftover: list[StoredLogEntry]) -> None:
        taken = log.reserve(leftover)
        for each in leftover:
            if each.seq in taken:
                self._dead_letters.drop(log, log_entry_of(log.name, each), CAUSE, None)
