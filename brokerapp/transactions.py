"""Transactions: BEGIN, COMMIT, ABORT. A transaction is one unit of the store, whatever is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.actions import Abort, Begin, Commit
from brokerapp.client import MAX_TRANSACTION_ACTIONS, MAX_TRANSACTIONS, Client, Transaction
from brokerapp.destination import Destination
from brokerapp.engine.entry import Entry
from brokerapp.engine.remote_entry import RemoteEntry
from brokerapp.engine.subscription import Subscription
from brokerapp.entries import from_log
from brokerapp.errors import RequestRefused

if TYPE_CHECKING:
    from brokerapp.broker import Broker


class Transactions:
    """What concerns transactions. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def begin(self, client: Client, begin: Begin) -> None:
        """Open a transaction. Raises RequestRefused."""
        if begin.transaction in client.transactions:
            raise RequestRefused(f"the transaction {begin.transaction!r} is open already")
        if len(client.transactions) >= MAX_TRANSACTIONS:
            raise RequestRefused(f"at most {MAX_TRANSACTIONS} transactions may be open")
        self._broker.quotas.begin()
        limit = min(self._broker.settings.max_uncommitted_count or MAX_TRANSACTION_ACTIONS, MAX_TRANSACTION_ACTIONS)
        client.transactions[begin.transaction] = Transaction(limit=limit)
        self._broker.confirm(client, begin.receipt)

    def commit(self, client: Client, commit: Commit) -> None:
        """All that was done in the transaction happens, or the client gets an ERROR and nothing does."""
        transaction = self._take(client, commit.transaction)
        try:
            if transaction.failed:
                raise RequestRefused(
                    f"the transaction was rolled back, as a SEND in it was refused: {transaction.failed}"
                )
            self._broker.storing.restore_queues(transaction.placed)
        except RequestRefused:
            self.roll_back(client, transaction)
            raise

        settled = [each for each in transaction.settled if self._is_there(each[2])]

        def undo() -> None:
            self._broker.consuming.take_back(entry for _, _, entry in settled if from_log(entry))

        jobs = [each() for each in transaction.jobs]
        self._broker.storing.submit(client, transaction.placed, settled, commit.receipt, undo, jobs)
        self._broker.expiry.arrived(transaction.placed)

    def _is_there(self, entry: Entry) -> bool:
        """Whether it can be acked still: its log may be gone with all it held."""
        return not from_log(entry) or self._broker.queues.get(entry.log) is not None

    def _take(self, client: Client, name: str) -> Transaction:
        """An open transaction, which is over."""
        transaction = client.transaction(name)
        del client.transactions[name]
        self._broker.quotas.end(transaction.bytes)
        return transaction

    def give_up(self, client: Client) -> None:
        """The client is gone: its transactions come to nothing."""
        for name in list(client.transactions):
            self.roll_back(client, self._take(client, name))

    def abort(self, client: Client, abort: Abort) -> None:
        """Nothing of it happens: what was acked in it waits for an ack again, with the same ids."""
        self.roll_back(client, self._take(client, abort.transaction))
        self._broker.barrier(client, abort.receipt)

    def roll_back(self, client: Client, transaction: Transaction) -> None:
        """What was acked goes back to the consumer that held it or, when it is gone, to the queue."""
        held: dict[Subscription, dict[str, Entry]] = {}
        homeless: list[Entry] = []
        for subscription, key, entry in transaction.settled:
            if client.by_key.get(subscription.key) is subscription:
                held.setdefault(subscription, {})[key] = entry
            elif from_log(entry):
                homeless.append(entry)
            elif not isinstance(entry, RemoteEntry):  # which goes back where it is kept
                self._broker.stats.of(Destination.parse(entry.shown)).InFlightCount -= 1
        for subscription, entries in held.items():
            subscription.hold_again(entries)
            if subscription.abroad:
                self._broker.homes.abroad.take_credit(subscription, entries.values())
        self._broker.consuming.take_back(homeless)
