"""Settle messages that clients acknowledge (ACK)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client, Transaction
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import group_by_way, is_from_log
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry, accept_remote
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import AckBatchCommand
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AccountingPort,
        BrokerContext,
        Destinations,
        DispatcherPort,
        MessageWriterPort,
        Placement,
        Replies,
        TransactionsPort,
    )

#: A message that was acknowledged, with who held it under which key.
SettledBy = tuple[Subscription, str, LogEntry]


class Acknowledgements:
    """Settles messages by ACK."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        accounting: AccountingPort,
        dispatcher: DispatcherPort,
        placement: Placement,
        queues: Destinations,
        replies: Replies,
        transactions: TransactionsPort,
        writer: MessageWriterPort,
    ) -> None:
        self._commits, self._counters, self._accounting = context.commits, context.counters, accounting
        self._dispatcher, self._placement, self._queues = dispatcher, placement, queues
        self._replies, self._transactions, self._writer = replies, transactions, writer

    def acknowledge(self, client: Client, acks: AckBatchCommand) -> None:
        """Settle messages that a client is done with; an ACK that is refused does not stop the others."""
        ack_ids = acks.ack_ids
        if acks.receipts is None and acks.subscriptions is None and acks.transaction is None:
            ack_ids = self._acknowledge_by_key(client, ack_ids)
        rows = AckBatchCommand(ack_ids, acks.subscriptions, acks.receipts).rows
        settled: list[SettledBy] = []
        receipts: list[str] = []
        for ack_id, named, receipt in rows:
            try:
                transaction = client.transaction(acks.transaction) if acks.transaction is not None else None
                taken = self._take(client, ack_id, named, transaction)
            except RequestRefused as error:
                self._replies.refuse(client, error, receipt)
                continue
            if transaction is not None:
                transaction.settled += taken
                self._replies.confirm(client, receipt)
                continue
            settled += taken
            if receipt is not None:
                receipts.append(receipt)
        if receipts:
            self._writer.perform(client, (), receipts, settled=settled)
            return
        for subscription, alike in groupby(settled, itemgetter(0)):
            self._account(subscription, [entry for _, _, entry in alike], committed=False)

    def _acknowledge_by_key(self, client: Client, ack_ids: list[str]) -> list[str]:
        """Settle, a subscription at a time, what it holds under these very ids; return those that are left."""
        while ack_ids:
            subscription = client.by_key.get(ack_ids[0].partition("-")[0])
            if subscription is None or subscription.ack_mode == "client" or subscription.browse_cursor is not None:
                break
            take = subscription.unacked.pop
            found = [take(ack_id, None) for ack_id in ack_ids]
            entries = [entry for entry in found if entry is not None]
            if not entries:
                break
            self.grant_credit(subscription, entries)
            self._account(subscription, entries, committed=False)
            ack_ids = [ack_id for ack_id, entry in zip(ack_ids, found, strict=True) if entry is None]
        return ack_ids

    def _take(
        self, client: Client, ack_id: str, named: str | None, transaction: Transaction | None
    ) -> Sequence[SettledBy]:
        """Take what an ACK settles from the subscription that holds it. Raises RequestRefused.

        As in ActiveMQ that is nothing when the client unsubscribed meanwhile.
        """
        if transaction is not None:
            client.check_transaction_limits(transaction)
        held = self.find_unacked(client, ack_id, named, transaction)
        if held is None:
            return ()
        subscription, key = held
        settled = take_unacked(subscription, key)
        if subscription.browse_cursor is not None:  # nothing was consumed
            subscription.credit += len(settled)
            subscription.browse_cursor.resume()
            return ()
        self.grant_credit(subscription, [entry for _, _, entry in settled])
        return settled

    def find_unacked(
        self, client: Client, ack_id: str, named: str | None, transaction: Transaction | None = None
    ) -> tuple[Subscription, str] | None:
        """Return who holds a message, and its key; None when nothing is left to do. Raises RequestRefused.

        Before STOMP 1.2 what an open transaction acknowledged can be acknowledged again, as in ActiveMQ: in the same
        transaction in vain, otherwise it is taken out of that one.
        """
        try:
            return client.find_unacked(ack_id, named)
        except RequestRefused:
            if not client.names_messages:
                raise
            found = self._transactions.find(client, ack_id, named)
            if found is None:
                raise
        if found.transaction is transaction:
            return None
        self._transactions.hand_back(found)
        return found.subscription, found.key

    def grant_credit(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None:
        """Let a subscription have as many more messages as it acknowledged."""
        count = len(entries)
        if subscription.has_remote_logs:
            self._placement.outbound_settlement.give_credit(subscription, entries)
        subscription.credit += count
        subscription.acked_count += count
        if subscription.credit <= count:  # it had none
            self._dispatcher.resume(subscription)

    def count_settled(self, settled: Sequence[SettledBy]) -> None:
        """Account for acknowledged messages that the store has removed."""
        for subscription, alike in groupby(settled, itemgetter(0)):
            self._account(subscription, [entry for _, _, entry in alike], committed=True)

    def _account(self, subscription: Subscription, acknowledged: Sequence[LogEntry], *, committed: bool) -> None:
        """Account for messages that a subscription acknowledged, and let the store remove them unless it has."""
        now_us, client = time.time_ns() // 1000, subscription.client
        for (name, shown, _), entries in group_by_way(acknowledged):
            if isinstance(entries[0], RemoteLogEntry):
                accept_remote(entries)
            elif not is_from_log(entries[0]):
                self._counters.of(Destination.parse(shown)).InFlightCount -= len(entries)
                self._accounting.acknowledge_topic(subscription, entries, now_us)
            elif (log := self._queues.get(name)) is not None and log.is_remote:
                remote = self._placement.outbound_settlement
                remote.on_settled(name, entries, client) if committed else remote.settle(entries, client)
            else:
                if log is not None:  # else it was removed meanwhile, with all it held
                    self._accounting.on_acknowledged(log, entries, client, now_us)
                if not committed:
                    self._commits.remove_settled(entries)


def take_unacked(subscription: Subscription, key: str) -> list[SettledBy]:
    """Take what an ACK settles: in mode `client` all up to the message, else the one."""
    if subscription.ack_mode != "client":
        return [(subscription, key, subscription.unacked.pop(key))]
    taken = []
    for each in subscription.unacked:
        taken.append(each)
        if each == key:
            break
    return [(subscription, each, subscription.unacked.pop(each)) for each in taken]
