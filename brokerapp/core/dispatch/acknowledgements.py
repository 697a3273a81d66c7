"""Settling: ACK and NACK."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client, Transaction
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log, way_of_entry
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import AckBatchCommand, SettleCommand
from brokerapp.model.destination import Destination
from brokerapp.tracing.schema import BRIDGE_REFUSE, DROP

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        BrowsersPort,
        DeadLettersPort,
        Destinations,
        DispatcherPort,
        MessageWriterPort,
        Placement,
        RedeliveryPort,
        Replies,
        TransactionsPort,
    )


class Acknowledgements:
    """What concerns acknowledgements. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        browsers: BrowsersPort,
        dead_letters: DeadLettersPort,
        dispatcher: DispatcherPort,
        placement: Placement,
        queues: Destinations,
        redelivery: RedeliveryPort,
        replies: Replies,
        transactions: TransactionsPort,
        writer: MessageWriterPort,
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._browsers, self._dead_letters, self._dispatcher = browsers, dead_letters, dispatcher
        self._placement, self._queues, self._redelivery = placement, queues, redelivery
        self._replies, self._transactions, self._writer = replies, transactions, writer

    def settle(self, client: Client, settle: SettleCommand) -> None:
        """ACK or NACK. Raises RequestRefused when the client does not hold the message.

        As in ActiveMQ it comes to nothing when the client unsubscribed meanwhile.
        """
        transaction = client.transaction(settle.transaction) if settle.transaction is not None else None
        if transaction is not None:
            if not settle.accepted:
                raise RequestRefused("a NACK cannot be part of a transaction")
            client.check_transaction_limits(transaction)
        held = self._find_unacked(client, settle, transaction)
        if held is None:
            self._replies.confirm_after(client, settle.receipt)
            return
        subscription, key = held
        if subscription.browse_cursor is not None:
            self._browsers.settle(client, subscription, key, settle)
            return
        if not settle.accepted:
            if settle.reason:
                self._reject_if_in_dlq(subscription.unacked[key])
            self._reject(client, subscription, key, settle.reason)
            self._replies.confirm_after(client, settle.receipt)
            return
        settled = take_unacked(subscription, key)
        self._grant_credit(subscription, [entry for _, _, entry in settled])
        if transaction is not None:
            transaction.settled += settled
            self._replies.confirm(client, settle.receipt)
            return
        if settle.receipt is not None:
            self._writer.submit(client, (), settled, settle.receipt)
            return
        if subscription.has_remote_logs:
            settled = self._settle_remote(subscription, settled)
        self.count_settled(settled)
        self._commits.remove_settled([entry for _, _, entry in settled])

    def _find_unacked(
        self, client: Client, settle: SettleCommand, transaction: Transaction | None
    ) -> tuple[Subscription, str] | None:
        """Who holds the message, and its key; None when nothing is left to do. Raises RequestRefused.

        Before STOMP 1.2 what an open transaction acknowledged can be acknowledged again, as in ActiveMQ: in the same
        transaction in vain, otherwise it is taken out of that one.
        """
        try:
            return client.find_unacked(settle.ack_id, settle.subscription)
        except RequestRefused:
            if not client.names_messages:
                raise
            found = self._transactions.find(client, settle.ack_id, settle.subscription)
            if found is None:
                raise
        if found.transaction is transaction:
            return None
        self._transactions.hand_back(found)
        return found.subscription, found.key

    def _settle_remote(
        self, subscription: Subscription, settled: Sequence[tuple[Subscription, str, LogEntry]]
    ) -> list[tuple[Subscription, str, LogEntry]]:
        """Let the store remove what is of logs at home elsewhere, and then their homes know; the rest."""
        queues = self._queues
        away = [e for _, _, e in settled if (log := queues.get(e.log)) is not None and log.is_remote]
        if away:
            self._placement.outbound_consumers.settle(away, subscription.client)
        known = set(map(id, away))
        return [each for each in settled if id(each[2]) not in known]

    def settle_run(self, client: Client, run: AckBatchCommand) -> None:
        """ACKs that came one after the other: those of one subscription to one queue are dealt with at once."""
        ack_ids: Sequence[str] = run.ack_ids
        now_us = time.time_ns() // 1000
        while ack_ids:
            subscription = client.by_key.get(ack_ids[0].partition("-")[0])
            log = subscription and subscription.only_log
            if log is None or subscription.ack_mode == "client":
                break
            take = subscription.unacked.pop
            found = [take(ack_id, None) for ack_id in ack_ids]
            entries = [entry for entry in found if entry is not None]
            if not entries:
                break
            self._grant_credit(subscription, entries)
            if log.is_remote:
                self._placement.outbound_consumers.settle(entries, client)
            else:
                self._dispatcher.on_acknowledged(log, entries, client, now_us)
                self._commits.remove_settled(entries)
            ack_ids = [ack_id for ack_id, entry in zip(ack_ids, found, strict=True) if entry is None]
        for each in AckBatchCommand(ack_ids):
            self._replies.try_command(client, self.settle, each)

    def _grant_credit(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None:
        """It holds these messages no longer."""
        count = len(entries)
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.give_credit(subscription, entries)
        subscription.credit += count
        subscription.acked_count += count
        if subscription.credit <= count:  # it had none
            self._dispatcher.resume(subscription)

    def count_settled(self, settled: Sequence[tuple[Subscription, str, LogEntry]]) -> None:
        """Account for messages that consumers acknowledged."""
        now_us = time.time_ns() // 1000
        for (subscription, (name, shown, _)), alike in groupby(settled, lambda each: (each[0], way_of_entry(each[2]))):
            entries = [entry for _, _, entry in alike]
            if is_from_log(entries[0]):
                log = self._queues.get(name)
                if log is not None and log.is_remote:
                    self._placement.outbound_consumers.on_settled(name, entries, subscription.client)
                elif log is not None:  # else it was removed meanwhile, with all it held
                    self._dispatcher.on_acknowledged(log, entries, subscription.client, now_us)
            elif isinstance(entries[0], RemoteLogEntry):
                for entry in entries:
                    entry.owner.accept(entry)
            else:
                self._counters.of(Destination.parse(shown)).InFlightCount -= len(entries)
                self._dispatcher.acknowledge_topic(subscription, entries, now_us)

    def _reject_if_in_dlq(self, entry: LogEntry) -> None:
        """Raise RequestRefused for what a bridge cannot pass on where dead letters lie: it would be dropped."""
        log = self._queues.get(entry.log)
        if is_from_log(entry) and log is not None and self._dead_letters.is_in_dlq(log, entry):
            raise RequestRefused(
                f"what a bridge cannot pass on of {log.destination} stays there: dead letters that fail are dropped"
            )

    def expire_remote(self, client: Client, ack_id: str) -> None:
        """Another broker of the cluster finds a message past its time, before its consumer there had it."""
        held = client.find_unacked(ack_id, None)
        if held is None:
            return
        subscription, key = held
        entry = subscription.unacked.pop(key)
        self._grant_credit(subscription, (entry,))
        if (log := self._queues.get(entry.log)) is not None:
            self._dead_letters.expire(log, entry, client.client_id)

    def _reject(self, client: Client, subscription: Subscription, key: str, reason: str) -> None:
        """One message failed: see Redelivering; straight from a topic it is dropped, as in ActiveMQ."""
        entry = subscription.unacked.pop(key)
        subscription.credit += 1
        if subscription.has_remote_logs:
            self._placement.outbound_consumers.give_credit(subscription, (entry,))
        self._dispatcher.resume(subscription)
        cause = f"rejected by {client.client_id} ({reason or 'NACK'})"
        if client.bridge:
            self._dead_letters.record(BRIDGE_REFUSE, time.time_ns() // 1000, entry, client.client_id, reason or None)
        if is_from_log(entry):
            log, again = self._queues[entry.log], not reason
            self._redelivery.reject(log, entry, client.client_id, cause, may_redeliver=again)
        elif isinstance(entry, RemoteLogEntry):
            entry.owner.reject(entry)
        else:
            self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount -= 1
            self._dead_letters.record(DROP, time.time_ns() // 1000, entry, client.client_id, cause)


def take_unacked(subscription: Subscription, key: str) -> list[tuple[Subscription, str, LogEntry]]:
    """What an ACK settles: in mode `client` all up to the message, else the one."""
    if subscription.ack_mode != "client":
        return [(subscription, key, subscription.unacked.pop(key))]
    taken = []
    for each in subscription.unacked:
        taken.append(each)
        if each == key:
            break
    return [(subscription, each, subscription.unacked.pop(each)) for each in taken]
