"""Dispatch messages to ready consumers while the store commits them.

A message is confirmed to its sender when it is synced to disk, and not before; to consume it nobody needs to wait for
that. It is given early where nothing stands before it in its log, neither waiting nor on its way to the store, and the
store is certain to have room; it gets its number with the store's answer. An acknowledgement that is faster waits in
the group commit; what a consumer leaves behind meanwhile comes back when it is stored. All else is given out when it is
stored, and so is what other nodes write to, too: what they confirmed before may not be known here yet; and what is
copied to several logs: a node that dies before it is stored would have given it to the consumers of some of them only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import RoutedBatch
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import UNCOMMITTED, LogEntry
from brokerapp.model.message import BodySizes

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        ArrivalsPort,
        BrokerContext,
        ConsumersPort,
        Destinations,
        DispatcherPort,
        FlowControlPort,
        Placement,
        RoutingPort,
    )
    from brokerapp.engine.clients.quotas import Quotas

#: Copies that may be given early between one batch of the group commit and the next. Where there are more the broker is
#: busy: it is about throughput then, and costs less to give out a batch at a time. Also, acknowledgements that come
#: before what they acknowledge is stored cut batches short.
MAX_COPIES = 200


class ConcurrentDispatch:
    """Decides which messages consumers get before the store has them. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        consumers: ConsumersPort,
        dispatcher: DispatcherPort,
        flow_control: FlowControlPort,
        placement: Placement,
        queues: Destinations,
        quotas: Quotas,
        routing: RoutingPort,
        arrivals: ArrivalsPort,
    ) -> None:
        self._commits = context.commits
        self._consumers, self._dispatcher, self._flow_control = consumers, dispatcher, flow_control
        self._placement, self._queues, self._quotas = placement, queues, quotas
        self._routing, self._arrivals = routing, arrivals

    def offer(self, batch: RoutedBatch) -> list[RoutedBatch]:
        """Give messages that are about to be submitted to consumers ready for them.

        Return the messages in parts, of which each was given or not.
        """
        groups = batch.route.groups
        if len(groups) != 1 or len(groups[0].rows) != 1 or groups[0].droppable or any(batch.dedup_keys):
            return [batch]
        [log] = groups[0].logs
        if not self._is_possible(log, batch):
            return [batch]
        batch.given = self._give(log, batch)
        if batch.given or len(batch.messages) == 1 or not _is_selective(log):
            return [batch]
        parts = []
        for each in batch.split():  # it matters who gets which, so one is given after the other
            each.given = self._give(log, each)
            if not each.given:
                break
            parts.append(each)
        left = batch.part(len(parts), len(batch.messages))
        return [*parts, left] if left.messages else parts

    def _is_possible(self, log: MessageLog, batch: RoutedBatch) -> bool:
        """Whether nothing is before these messages, and nothing can refuse them."""
        commits = self._commits
        if not log.can_bypass_window or commits.given + len(batch.messages) > MAX_COPIES:
            return False
        if self._dispatcher.is_stopped or not self._placement.can_dispatch():
            return False
        if self._flow_control.is_full((log.name,)) or not self._flow_control.is_free((batch,)):
            return False
        if any(0 < each.expires <= each.born_us // 1000 for each in batch.messages):
            return False
        return not commits.has_pending_for(log.name) and self._has_room(log, batch.size)

    def _give(self, log: MessageLog, batch: RoutedBatch) -> Sequence[LogEntry]:
        [group], messages = batch.route.groups, batch.messages
        [(name, original, shown)] = group.rows
        deliveries = messages[0].deliveries
        entries = [
            LogEntry(name, UNCOMMITTED, message, 0, len(stored), original, shown, deliveries)
            for message, stored in zip(messages, batch.stored, strict=True)
        ]
        taken = log.dispatch_uncommitted(entries)
        if not taken:
            return ()
        self._arrivals.count_arrivals(log, messages, BodySizes.of(messages))
        for consumer, theirs in taken:
            self._dispatcher.dispatch(log, consumer, theirs)
        return entries

    def _has_room(self, log: MessageLog, size: int) -> bool:
        """Whether no limit can refuse messages of so many bytes, whatever is on its way before them.

        What entries take beside their messages is not known here, so half of the store must be free, and half of the
        room for what is not persistent.
        """
        limits = self._commits.limits
        coming = self._quotas.share.pending_bytes + size
        if limits.accepted_bytes and 2 * (self._commits.used + coming) > limits.accepted_bytes:
            return False
        if limits.temp and 2 * (self._commits.temp + coming) > limits.temp:
            return False
        return not self._routing.table.definitions.policies or self._fits(log, size)

    def _fits(self, log: MessageLog, size: int) -> bool:
        commits = self._commits
        limit = commits.limits.of_log(log.name)
        if not limit:
            return True
        held = commits.held_bytes(log.name)
        return (
            held is not None and not commits.has_pending_for(log.name) and held + log.uncommitted_bytes + size <= limit
        )

    def on_committed(
        self, log: MessageLog, entries: Sequence[LogEntry], numbers: Iterable[int], payloads: Iterable[int]
    ) -> None:
        """The store has what was given early, under these numbers."""
        log.on_committed(entries, numbers, payloads)
        if log.ownerless or not log.consumers:
            self._consumers.requeue_ownerless(log)

    def on_refused(self, given: Mapping[str, Sequence[LogEntry]]) -> None:
        """Nothing comes of what was given early: a limit refused it in the end."""
        for name, entries in given.items():
            log = self._queues.get(name)
            if log is not None:
                log.on_refused(entries)
                self._consumers.requeue_ownerless(log)


def _is_selective(log: MessageLog) -> bool:
    """Whether it matters who gets which message."""
    return log.groups is not None or any(each.selector is not None for each in log.consumers)
