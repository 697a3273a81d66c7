"""Routes messages that operators move, and stores them at their targets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from brokerapp.core.destinations.auto_creation import AutoCreation
from brokerapp.core.ports import (
    ArrivalsPort,
    BrokerContext,
    DeadLettersPort,
    MessageRouterPort,
    Queues,
    TemporariesPort,
)
from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.editing.resubmit_target import origin_destination
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.broker_headers import ORIGIN, with_broker_headers
from brokerapp.engine.policy.dead_letters import route_headers
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message
from brokerapp.store import FirstNumber, PendingWrite
from brokerapp.tracing.schema import REMOVE

#: Returns the target of a message; None: it stays in its queue. Raises RequestRefused.
TargetOf = Callable[[LogEntry], Destination | None]
#: No headers changed.
UNCHANGED: Mapping[str, str | None] = MappingProxyType({})


class MessageTransfer:
    """Checks, routes, stores and removes messages for all operations on queues."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        queues: Queues,
        creation: AutoCreation,
        temporaries: TemporariesPort,
        dead_letters: DeadLettersPort,
        router: MessageRouterPort,
        arrivals: ArrivalsPort,
    ) -> None:
        self._commits, self._counters, self._tracer = context.commits, context.counters, context.tracer
        self._queues, self._creation, self._temporaries = queues, creation, temporaries
        self._dead_letters, self._router, self._arrivals = dead_letters, router, arrivals

    # -- source and target

    def find_log(self, queue: str) -> MessageLog:
        """Return the log of a queue. Raises RequestRefused, DestinationNotFound."""
        wanted = Destination.parse(queue)
        if not wanted.is_queue or wanted.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{wanted} is not a queue")
        return self._queues.find(wanted)

    def fixed_target(self, log: MessageLog, target: str) -> TargetOf:
        """Return a function that sends all messages of the log to one target; raise RequestRefused if it cannot."""
        to = self.parse_target(target)
        if to.physical == log.destination:
            raise RequestRefused(f"the messages are already in {to}")
        self._require_reachable(to)
        return lambda _entry: self._require_reachable(to)

    def parse_target(self, target: str) -> Destination:
        """Return the queue or topic of this name. Raises RequestRefused when messages cannot be sent there."""
        to = Destination.parse(target)
        if to.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{to} is a subscription. Choose a queue or topic as the target.")
        self._creation.check_named(to)
        return to

    def original_destination(self, entry: LogEntry) -> Destination | None:
        """Return the destination in which a dead letter failed; None if unknown or temporary."""
        origin = origin_destination(entry.message.headers.get(ORIGIN))
        return None if origin is None else self._require_reachable(origin)

    def _require_reachable(self, to: Destination) -> Destination:
        if to.is_temporary:
            self._temporaries.check(to)
        elif to.address is not None:
            self._queues.ensure(to)
        return to

    # -- routing

    def route_entry(
        self, log: MessageLog, entry: LogEntry, target: Destination, headers: Mapping[str, str | None] = UNCHANGED
    ) -> RoutedBatch:
        """Route a message of the log to another destination, with these headers changed; raise as `route`."""
        message, here = entry.message, log.destination
        path = route_headers(message, entry.original_destination or message.headers.get(ORIGIN, ""), here)
        changed = with_broker_headers(message.headers, {ORIGIN: here.stomp, **path, **headers})
        return self.route(message.with_headers(changed), target)

    def route(self, message: Message, target: Destination) -> RoutedBatch:
        """Route a message. Raises RequestRefused if it would reach no destination: no operation may lose it."""
        message, found = self._router.route(message, target, is_moved=True)
        if not (found.groups or found.topics):
            raise RequestRefused(f"message {message.id} would be lost: {target} forwards it to no destination")
        return RoutedBatch.of(message, target, found)

    # -- storing

    def remove(self, log: MessageLog, entries: Sequence[LogEntry], reason: str = "removed by an operator") -> None:
        """Delete reserved messages from the log and from the store."""
        self.leave(log, entries, REMOVE, reason)
        self._commits.remove_settled(entries)

    def leave(self, log: MessageLog, entries: Sequence[LogEntry], kind: int, reason: str) -> None:
        """Count and record that reserved messages left the log; the store must be told, too."""
        now_us = time.time_ns() // 1000
        for entry in entries:
            self._dead_letters.record(kind, now_us, entry, None, reason)
        log.remove_settled(entries)
        log.counts.count_departures([entry.message for entry in entries])
        self._counters.mark_changed(log.counts)

    def submit(
        self, routed: Sequence[RoutedBatch], settles: Sequence[LogEntry] = (), *, are_new: bool = False
    ) -> asyncio.Future[str]:
        """Store messages, and remove those that they replace, in one unit; return what is full, or "".

        `are_new`: record that they were sent, too.
        """
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def stored(seq: FirstNumber, refused: str) -> None:
            if not refused:
                for each in routed if are_new else ():
                    self._tracer.record_enqueue(each.message.born_us, (each.message,), str(each.destination), None)
                self._arrivals.on_committed(routed, seq, moved_us=time.time_ns() // 1000)
            done.set_result(refused)

        appends = [append for each in routed for append in each.appends]
        self._commits.submit(PendingWrite(appends, settles, ignores_limits=bool(settles), callback=stored))
        return done
