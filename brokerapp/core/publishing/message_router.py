"""MessageRouter: finds where messages go, and lets the queues on their way exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.routing.route_walk import Route, annotate_bound, exclude_bound, exclude_logs, route
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.store import FirstNumber, PendingWrite
from brokerapp.tracing.schema import BRIDGE_RECEIVE, ROLLBACK

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        ArrivalsPort,
        BrokerContext,
        DurablesPort,
        Queues,
        RoutingPort,
        TemporariesPort,
    )

logger = logging.getLogger(__name__)


class MessageRouter:
    """Routes messages of clients and of the broker itself. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        durables: DurablesPort,
        queues: Queues,
        routing: RoutingPort,
        temporaries: TemporariesPort,
        arrivals: ArrivalsPort,
    ) -> None:
        self._commits, self._tracer = context.commits, context.tracer
        self._durables, self._queues, self._routing = durables, queues, routing
        self._temporaries, self._arrivals = temporaries, arrivals

    def plan(self, destination: Destination) -> Route | None:
        """Return the route of all messages sent there, if they have the same and it is known."""
        plan = self._routing.table.plans.get(destination)
        return plan if plan is not None and plan.groups is not None else None

    def prepare(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        sender: Client | None = None,
        *,
        noted: bool = True,
    ) -> RoutedBatch:
        """The way of a message; its queues exist from now on. Without a sender no client sends it right now.

        `sent_to` is the list that the destination is an element of. Unless it is `noted`, that it was sent is recorded
        later: see record_sent.
        """
        by = sender.client_id if sender is not None else ""
        if noted:
            self._record_sent([message], destination, sender, message.born_us)
        held = message.held if sender is not None and sender.bridge else ()
        message, found = self.route(message, destination, sent_to, by, held)
        return RoutedBatch.of(message, destination, found, sender)

    def record_sent(self, placed: Sequence[RoutedBatch], now_us: int) -> None:
        """Record that these were sent: those of a transaction, when it is committed."""
        for each in placed:
            for sender, part in each.by_sender():
                self._record_sent(each.messages[part], each.destination, sender, now_us)

    def _record_sent(
        self, messages: Sequence[Message], destination: Destination, sender: Client | None, ts_us: int
    ) -> None:  # fmt: skip
        by, sent_to, recorder = sender.client_id if sender is not None else "", str(destination), self._tracer
        if sender is not None and sender.bridge:
            recorder.record(BRIDGE_RECEIVE, ts_us, messages, (sent_to,), sent_to, by)
        recorder.record_enqueue(ts_us, messages, sent_to, by or None)

    def record_rolled_back(self, placed: Sequence[RoutedBatch], why: str) -> None:
        """Record that these were sent in a transaction of which nothing came."""
        now_us = time.time_ns() // 1000
        for each in placed:
            sent_to = str(each.destination)
            for sender, part in each.by_sender():
                by = sender.client_id if sender is not None else None
                self._tracer.record(ROLLBACK, now_us, each.messages[part], (sent_to,), sent_to, by, why)

    def route(
        self,
        message: Message,
        destination: Destination,
        sent_to: Destination | None = None,
        by: str = "",
        held: tuple[str, ...] = (),
        *,
        is_moved: bool = False,
    ) -> tuple[Message, Route]:
        """A message as it takes its way, and that way, whose queues exist from now on; see route.

        Bound queues in `held` hold a copy of it elsewhere. What is kept for bridges to where it came from is spared.
        """
        found = route(message, destination, self._routing.table, sent_to, by, is_moved=is_moved)
        if held:
            found = exclude_bound(found, held)
        if message.path and (back := self._durables.logs_kept_for_bridges(message.path)):
            found = exclude_logs(found, back)
        message = annotate_bound(message, found, held)
        if found.groups is None:
            found.groups = self.append_groups(found)
        return message, found

    def publish_internal(self, message: Message, destination: Destination) -> None:
        """Publish what no client sent, but the broker itself. There is nobody to tell when it has no way."""
        try:
            message, found = self.route(message, destination)
            self._by_itself(message, destination, found)
        except BrokerError as error:
            logger.warning("%s was not published to %s: %s", message.id, destination, error)

    def copy_to_log(self, message: Message, copy: RoutedCopy) -> None:
        """Let a log have a copy of a message that was published before."""
        self._by_itself(message, copy.destination, Route(queues=[copy]))

    def _by_itself(self, message: Message, destination: Destination, found: Route) -> None:
        if found.groups is None:
            found.groups = self.append_groups(found)
        placed = RoutedBatch.of(message, destination, found)
        if not found.groups:
            self._arrivals.on_committed([placed], 0)
            return

        def done(seq: FirstNumber, refused: str) -> None:
            if not refused:
                self._arrivals.on_committed([placed], seq)

        self._commits.submit(PendingWrite(placed.appends, callback=done))

    def append_groups(self, found: Route) -> list[AppendGroup]:
        """The logs of a route, whose queues exist from now on, in groups of one shard, none with a log twice."""
        groups: list[AppendGroup] = []
        for copy in found.queues:
            log = self._queues.ensure_target(copy.destination)
            if log is None:
                continue
            place = self._commits.place_of(log.name)
            group = next((each for each in groups if each.place == place and log not in each.logs), None)
            if group is None:
                groups.append(group := AppendGroup(place))
            group.add(log, copy, bool(found.dropping) and copy in found.dropping)
        return groups

    def restore_queues(self, placed: Sequence[RoutedBatch]) -> bool:
        """Let queues exist that these messages go to and that were deleted since; whether there were any.

        Raises RequestRefused when one cannot come back: it was temporary.
        """
        for each in placed:
            if each.destination.is_temporary:
                self._temporaries.check(each.destination)
        lost = [
            each
            for each in placed
            if any(not self._queues.holds(log) for group in each.route.groups for log in group.logs)
        ]
        for each in lost:
            each.route = replace(each.route, groups=self.append_groups(each.route))
        return bool(lost)
