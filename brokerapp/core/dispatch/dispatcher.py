"""Hand messages of logs to consumers, and let everything that can be dispatched leave once a tick.

Reading the sockets collects work (`touch`, `wake`); `run_once` does it once a tick, so that a burst costs one pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import log_entry_of, partition
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.store import StoredLogEntry
from brokerapp.tracing.schema import DISPATCH

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AccountingPort,
        AdvisoriesPort,
        BrokerContext,
        DeadLettersPort,
        HeldSendsPort,
        Placement,
        TopicDispatcherPort,
    )

_expires = attrgetter("message.expires")


class Dispatcher:
    """Hands messages of logs to consumers."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        advisories: AdvisoriesPort,
        accounting: AccountingPort,
        dead_letters: DeadLettersPort,
        held: HeldSendsPort,
        placement: Placement,
        topic_dispatcher: TopicDispatcherPort,
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._accounting, self._advisories, self._dead_letters = accounting, advisories, dead_letters
        self._held, self._placement, self._topic_dispatcher = held, placement, topic_dispatcher
        self._ready_logs: dict[MessageLog, None] = {}  # a set that keeps order, so that delivery is fair
        self._unflushed_clients: dict[Client, None] = {}
        self._exhausting: list[tuple[Subscription, Callable[[], None]]] = []  # see `when_exhausted`
        self.is_stopped = False  #: the node ends: nothing more is given out

    # -- what is to be done at the next tick

    def touch(self, log: MessageLog) -> None:
        """Dispatch from this log at the next tick."""
        self._ready_logs[log] = None

    def untouch(self, log: MessageLog) -> None:
        """Dispatch no more from a log that was removed."""
        self._ready_logs.pop(log, None)

    def wake(self, client: Client) -> None:
        """Flush what a client is to be sent at the next tick."""
        self._unflushed_clients[client] = None

    def when_exhausted(self, subscription: Subscription, then: Callable[[], None]) -> None:
        """Call back when what the logs of a subscription hold here and in the store was offered to it."""
        self._exhausting.append((subscription, then))

    # -- once a tick

    def run_once(self) -> None:
        """Dispatch what can be dispatched, then flush it to the sockets."""
        if self.is_stopped:
            self._ready_logs.clear()
            self._topic_dispatcher.clear_pending()
        while self._ready_logs:
            touched, self._ready_logs = self._ready_logs, {}
            for log in touched:
                for subscription, entries in log.dispatch():
                    self.dispatch(log, subscription, entries)
                self._page_in(log)
                if self._held.holds((log.name,)):
                    self._held.retry(log.name, is_consumed=bool(log.consumers))
        self._topic_dispatcher.run_once()
        if self._exhausting:
            self._tell_exhausted()
        dirty, self._unflushed_clients = self._unflushed_clients, {}
        for client in dirty:
            client.sink.flush()

    def _tell_exhausted(self) -> None:
        """Call back where nothing is being read from the store that a subscription might get."""
        waiting, self._exhausting = self._exhausting, []
        for subscription, then in waiting:
            if any(cast("MessageLog", log).paging for log in subscription.logs):
                self._exhausting.append((subscription, then))
            else:
                then()

    def _page_in(self, log: MessageLog) -> None:
        after = log.loaded_up_to if log.needs_page else log.lookahead_position
        if after is None:
            return
        load = log.on_page_read if log.needs_page else partial(log.on_lookahead_read, after=after)
        log.paging, window = True, log.generation

        def loaded(found: list[StoredLogEntry]) -> None:
            load((log_entry_of(log.name, each) for each in found), window)
            if window == log.generation:
                self._dead_letters.remove_damaged(log, found)
            self._ready_logs[log] = None

        if log.policy.prioritized:
            self._commits.read_with(
                lambda store: store.entries.read_by_priority(log.name, after, PAGE_SIZE), loaded, log.name
            )
        else:
            self._commits.read(log.name, after, PAGE_SIZE, loaded)

    def resume(self, subscription: Subscription) -> None:
        """Dispatch to a subscription again, which has credit or a free socket now."""
        for log in subscription.logs:
            self.touch(cast("MessageLog", log))
        if subscription.pending:
            self._topic_dispatcher.retry(subscription)
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.drain(subscription)
        if subscription.browse_cursor is not None:
            subscription.browse_cursor.resume()

    # -- queues

    def dispatch(self, log: MessageLog, subscription: Subscription, entries: list[LogEntry]) -> None:
        """Hand messages of a queue to a consumer; those that expired meanwhile are treated as expired."""
        now_us = time.time_ns() // 1000  # not that of a tick, nor when they were born: latencies are told from it
        now_ms = now_us // 1000
        if any(map(_expires, entries)):
            entries, expired = partition(entries, lambda entry: not 0 < entry.message.expires <= now_ms)
            for entry in expired:
                subscription.credit += 1
                self._dead_letters.expire(log, entry)
            if expired and log.ready:
                self._ready_logs[log] = None
        client: Client = subscription.client
        log.counts.count_dispatched([entry.message.born_us for entry in entries], now_us)
        self._counters.mark_changed(log.counts)
        client.delivered_count += len(entries)
        self._unflushed_clients[client] = None
        self._accounting.record(DISPATCH, log.name, entries, client.client_id, now_us)
        if self._advisories.watching:
            self._advisories.dispatched(log.destination, entries)
        if subscription.ack_mode != "auto":
            client.sink.deliver(subscription, entries, self.ack_ids(subscription, entries))
            return
        subscription.credit += len(entries)
        if log.ready:  # what its credit did not reach
            self._ready_logs[log] = None
        client.sink.deliver(subscription, entries, ())
        self._accounting.on_acknowledged(log, entries, client, time.time_ns() // 1000)
        self._commits.remove_settled(entries)

    @staticmethod
    def ack_ids(subscription: Subscription, entries: Sequence[LogEntry]) -> list[str]:
        """Return the ids by which a client acknowledges deliveries: its own in STOMP 1.2, message-ids before."""
        client: Client = subscription.client
        if client.names_messages:
            for entry in entries:
                subscription.add_unacked(entry.message.id, entry)
            return [entry.message.id for entry in entries]
        first = client.last_ack_number + 1
        client.last_ack_number += len(entries)
        begin = f"{subscription.key}-".__add__
        ack_ids = list(map(begin, map(str, range(first, first + len(entries)))))
        subscription.unacked.update(zip(ack_ids, entries, strict=True))
        return ack_ids
