"""Hold the message logs that this node owns: those of queues and of named subscriptions.

The latter are opened and removed by `durables`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy, dispatch_policy_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import is_open, maybe_delivered_up_to
from brokerapp.engine.routing.bindings import is_at
from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from brokerapp.store import LogState

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DispatchQueue, Placement, RoutingPort

#: Why a log gives out nothing for a moment: its policy asks for priorities, and what it held before is put in order.
ORDERING = "put in order"


class LogRegistry:
    """Keeps all logs by name."""

    def __init__(
        self, *, context: BrokerContext, dispatcher: DispatchQueue, placement: Placement, routing: RoutingPort
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._dispatcher, self._placement, self._routing = dispatcher, placement, routing
        self._logs: dict[str, MessageLog] = {}

    # -- which there are

    def __iter__(self) -> Iterator[MessageLog]:
        return iter(self._logs.values())

    def __contains__(self, queue: Destination) -> bool:
        return str(queue) in self._logs

    def __getitem__(self, log: str) -> MessageLog:
        return self._logs[log]

    def get(self, log: str) -> MessageLog | None:
        """Return the log of this name, if it exists."""
        return self._logs.get(log)

    def holds(self, log: MessageLog) -> bool:
        """Return whether this is the log of a queue that exists, not of a deleted one of the same name."""
        return self._logs.get(log.name) is log

    def find(self, queue: Destination) -> MessageLog:
        """Return the log of a queue or subscription. Raises DestinationNotFound."""
        log = self._logs.get(str(queue.physical))
        if log is None or not is_at(queue, self._routing.table.bindings.of(log.destination.name)):
            raise DestinationNotFound(f"{queue} not found")
        return log

    # -- how they come and go

    def restore(self, state: LogState) -> MessageLog:
        """Restore a log from the store."""
        log = self._add(Destination.parse(state.name), state.depth, maybe_delivered_up_to(state.mark, state.last_seq))
        if (
            is_open(state.mark) and not log.is_remote
        ):  # the node that opened it died: what comes now was delivered by nobody
            self._commits.set_recovery_mark(state.name, str(state.last_seq))
        log.redelivery_counts.update(state.returned)
        return log

    def open(self, destination: Destination, attributes: Mapping[str, Any]) -> MessageLog:
        """Create a log, which the store keeps with these attributes."""
        log = self._add(destination)
        self.describe(log, attributes)
        return log

    def describe(self, log: MessageLog, attributes: Mapping[str, Any]) -> None:
        """Write new attributes of a log to the store."""
        self._commits.create(log.name, json.dumps(attributes))

    def _add(self, destination: Destination, depth: int = 0, suspect: int = 0) -> MessageLog:
        rules = dispatch_policy_of(self._routing.table.policy_for(destination))
        log = self._logs[str(destination)] = MessageLog(self._counters.of(destination), depth, suspect, rules)
        self._placement.on_log_added(log)
        return log

    def forget(self, log: MessageLog) -> None:
        """Forget a log; the caller removes it from the store."""
        del self._logs[log.name]
        self._dispatcher.untouch(log)
        self._counters.remove(log.destination)

    # -- the rules they give out messages by

    def tune(self, log: MessageLog, rules: DispatchPolicy, attributes: Callable[[], Mapping[str, Any]]) -> None:
        """Give out a log's messages by these rules from now on; the store keeps it with the attributes it has then."""
        was_prioritized = log.policy.prioritized
        log.apply_policy(rules)
        if rules.prioritized != was_prioritized:
            self.describe(log, attributes())
            self._give_places(log)
        self._dispatcher.touch(log)

    def _give_places(self, log: MessageLog) -> None:
        """Let the store put what a prioritized queue holds in order, part by part; nothing is given out meanwhile."""
        if not log.policy.prioritized:
            return
        reason = f"{ORDERING} by definitions {self._routing.table.definitions.version}"
        log.suspend_reasons.add(reason)

        def came_to(number: int) -> None:
            if number:
                self._commits.prioritize(log.name, number, came_to)
            else:
                log.suspend_reasons.discard(reason)
                self._dispatcher.touch(log)

        self._commits.prioritize(log.name, 0, came_to)
