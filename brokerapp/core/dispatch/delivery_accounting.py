"""Account for messages that consumers are handed and that they acknowledge: in statistics, trace and advisories."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import native_form, split_by
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.topic_batch import TopicEntries
from brokerapp.model.destination import Destination
from brokerapp.tracing.schema import ACK, BRIDGE_FORWARD, DISPATCH

if TYPE_CHECKING:
    from brokerapp.core.ports import AdvisoriesPort, BrokerContext, RemoteClient

_original_destination = attrgetter("original_destination")


class DeliveryAccounting:
    """Accounts for what consumers are handed and acknowledge."""

    def __init__(self, *, context: BrokerContext, advisories: AdvisoriesPort) -> None:
        self._tracer, self._counters, self._advisories = context.tracer, context.counters, advisories

    # -- queues

    def on_acknowledged(
        self, log: MessageLog, entries: list[LogEntry], client: Client | RemoteClient, now_us: int
    ) -> None:
        """Account for messages of a queue that a consumer acknowledged."""
        self.count_acknowledged(log, entries)
        self.on_remote_acknowledged(log, entries, client, now_us)

    def count_acknowledged(self, log: MessageLog, entries: Sequence[LogEntry]) -> None:
        """Count acknowledged messages at the node of their consumer, see stats_aggregation.py."""
        log.counts.count_departures([entry.message for entry in entries])
        self._counters.mark_changed(log.counts)

    def on_remote_acknowledged(
        self, log: MessageLog, entries: list[LogEntry], client: Client | RemoteClient, now_us: int
    ) -> None:
        """Remove acknowledged messages from the log at its owner node, and record that."""
        log.remove_settled(entries)
        self._counters.mark_changed(log.counts)
        if client.bridge:
            self.record(BRIDGE_FORWARD, log.name, entries, client.client_id, now_us)
        self.record(ACK, log.name, entries, client.client_id, now_us)
        if self._advisories.watching:
            self._advisories.consumed(log.destination, entries)

    def record(self, kind: int, log: str, entries: Sequence[LogEntry], consumer: str, now_us: int) -> None:
        """Record what happened to messages of a queue in the trace."""
        for sent_to, alike in split_by(entries, _original_destination):
            messages = [entry.message for entry in alike]
            self._tracer.record(kind, now_us, messages, (log,), native_form(sent_to) if sent_to else log, consumer)

    # -- topics

    def count_dispatched(self, subscribers: Sequence[Subscription], part: TopicEntries, now_us: int) -> None:
        """Account for messages of a topic that subscribers are handed, each all of them."""
        stats = self._counters.of(part.topic)
        stats.count_dispatched(part.born_us, now_us, len(subscribers))
        self._counters.mark_changed(stats)
        self._record_for_each(DISPATCH, subscribers, part, now_us)
        if self._advisories.watching:
            for _ in subscribers:
                self._advisories.dispatched(part.topic, part.entries)
        done = [each for each in subscribers if each.ack_mode == "auto"]
        stats.InFlightCount += (len(subscribers) - len(done)) * len(part.entries)
        if done:
            self._count_topic_acknowledged(done, part, now_us)

    def acknowledge_topic(self, subscription: Subscription, entries: Sequence[LogEntry], now_us: int) -> None:
        """Account for messages that a subscriber of a topic is done with; all were sent and shown alike."""
        part = TopicEntries(Destination.parse(entries[0].shown_destination), entries)
        self._count_topic_acknowledged((subscription,), part, now_us)

    def _count_topic_acknowledged(self, subscribers: Sequence[Subscription], part: TopicEntries, now_us: int) -> None:
        stats = self._counters.of(part.topic)
        stats.count_departures(part.messages, len(subscribers))
        self._counters.mark_changed(stats)
        if self._advisories.watching:
            for _ in subscribers:
                self._advisories.consumed(part.topic, part.entries)
        bridges = [each for each in subscribers if each.client.bridge]
        self._record_for_each(BRIDGE_FORWARD, bridges, part, now_us)
        self._record_for_each(ACK, subscribers, part, now_us)

    def _record_for_each(self, kind: int, subscribers: Sequence[Subscription], part: TopicEntries, now_us: int) -> None:
        """Record that the same happened to messages of a topic for each of these subscribers."""
        first = part.entries[0]
        sent_to = native_form(first.original_destination) if first.original_destination else first.log
        for each in subscribers:
            self._tracer.record(kind, now_us, part.messages, (first.log,), sent_to, each.client.client_id)
