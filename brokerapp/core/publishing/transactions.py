"""Handle BEGIN, COMMIT and ABORT; a transaction is one pending write of the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from brokerapp.core.publishing.routed_batches import RoutedBatches
from brokerapp.engine.clients.acknowledged import Acknowledged
from brokerapp.engine.clients.branch_parts import BranchStep
from brokerapp.engine.clients.client import (
    MAX_TRANSACTION_ACTIONS,
    MAX_TRANSACTIONS,
    Client,
    RoutedBatch,
    Transaction,
    persistent_first,
)
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.errors import RequestRefused, TransactionRolledBack
from brokerapp.model.commands import AbortCommand, BeginCommand, CommitCommand, RollBackOnlyCommand, TransactionCommand
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        ConsumersPort,
        Destinations,
        ExpirationPort,
        MessageRouterPort,
        MessageWriterPort,
        Placement,
        Replies,
    )
    from brokerapp.engine.clients.quotas import Quotas


class Transactions:
    """Opens, commits and aborts the transactions of clients. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        consumers: ConsumersPort,
        expiration: ExpirationPort,
        placement: Placement,
        queues: Destinations,
        quotas: Quotas,
        replies: Replies,
        router: MessageRouterPort,
        writer: MessageWriterPort,
    ) -> None:
        self._settings, self._counters = context.settings, context.counters
        self._consumers, self._expiration, self._placement = consumers, expiration, placement
        self._router, self._queues, self._quotas = router, queues, quotas
        self._replies, self._writer = replies, writer
        self._branches: dict[str, Transaction] = {}  # of distributed transactions: several clients may take part in one

    def perform(self, client: Client, command: TransactionCommand) -> None:
        """Begin or end a transaction. Raises RequestRefused."""
        if isinstance(command, BeginCommand):
            self._begin(client, command)
        elif isinstance(command, CommitCommand):
            self._commit(client, command)
        else:
            self._abort(client, command)

    def _begin(self, client: Client, begin: BeginCommand) -> None:
        if begin.transaction in client.transactions:
            raise RequestRefused(f"the transaction {begin.transaction!r} is open already")
        self._open(client, begin.transaction)
        self._replies.confirm(client, begin.receipt)

    def _open(self, client: Client, name: str) -> Transaction:
        self._check_count(client)
        self._quotas.begin_transaction()
        limit = min(self._settings.max_uncommitted_count or MAX_TRANSACTION_ACTIONS, MAX_TRANSACTION_ACTIONS)
        transaction = client.transactions[name] = Transaction(limit=limit, clients=[client])
        return transaction

    @staticmethod
    def _check_count(client: Client) -> None:
        if len(client.transactions) >= MAX_TRANSACTIONS:
            raise RequestRefused(f"at most {MAX_TRANSACTIONS} transactions may be open")

    def join_branch(self, client: Client, name: str, *, is_prepared: bool) -> None:
        """Let a client take part in a branch, which others may have begun; again if it does already.

        What it repeats of one that `is_prepared` is done already. Raises RequestRefused.
        """
        if name in client.transactions:
            return
        transaction = self._branches.get(name)
        if transaction is None:
            transaction = self._branches[name] = self._open(client, name)
            transaction.branch, transaction.is_prepared = name, is_prepared
            return
        self._check_count(client)
        transaction.clients.append(client)
        client.transactions[name] = transaction

    def branch(self, name: str) -> Transaction | None:
        """Return the branch of this name that is open at this node."""
        return self._branches.get(name)

    def branches(self) -> Iterable[tuple[str, Transaction]]:
        """Return the names of the branches that are open at this node, with these."""
        return self._branches.items()

    def take_branch(self, name: str) -> Transaction:
        """Return an open branch, which is over for all who take part in it."""
        transaction = self._branches[name]
        return self._take(transaction.clients[0], name)

    def add(
        self, client: Client, transaction: Transaction, placed: Sequence[RoutedBatch], receipts: Sequence[str | None]
    ) -> None:
        """Add messages to a transaction, and confirm them. Raises RequestRefused where a limit refuses one of them."""
        if transaction.is_prepared:  # with these messages
            self._replies.confirm(client, *receipts)
            return
        count = size = copies = 0
        last = 0  # copies of the last message: what comes after it may be too much, not it
        for each in placed:
            count += len(each.messages)
            size += sum(map(len, each.stored))
            last = sum([len(rows) for rows in each.rows])
            copies += len(each.messages) * last
        client.check_transaction_limits(transaction, count, size, copies - last)
        self._quotas.reserve(size)
        transaction.bytes += size
        for number, each in enumerate(placed, transaction.message_count):
            each.places = [transaction.message_count + place for place in each.places] or [number]
        transaction.messages += placed
        transaction.message_count += count
        transaction.copy_count += copies
        client.sent_count += len(receipts)
        self._replies.confirm(client, *receipts)

    def require_rollback(self, client: Client, command: RollBackOnlyCommand) -> None:
        """Let a transaction end with its rollback only. Raises RequestRefused where the client is to know at once.

        Without this, what was sent in it would be stored although a message that it was made of stays in its queue.
        """
        transaction = client.transaction(command.transaction)
        if not transaction.is_prepared:  # else the client repeats what it did before
            transaction.failure = transaction.failure or command.reason
        if command.is_refused:
            raise RequestRefused(command.reason)
        self._replies.confirm(client, command.receipt)

    def _commit(self, client: Client, commit: CommitCommand) -> None:
        self.commit(client, self._take(client, commit.transaction), commit.receipt)

    def commit(self, client: Client, transaction: Transaction, receipt: str | None) -> None:
        """Store all that was done in a transaction, or nothing, and tell the client. Raises RequestRefused."""
        try:
            if transaction.failure:
                which = f"transaction {transaction.branch!r}" if transaction.branch else "the transaction"
                raise TransactionRolledBack(f"{which} was rolled back, as {transaction.failure}")
            self._router.restore_queues(transaction.messages)
        except RequestRefused as error:
            self.roll_back(transaction, str(error))
            raise

        settled = self.settled_there(transaction)

        gathered = RoutedBatches(client)
        for each in persistent_first(transaction.messages):
            gathered.add_batch(each)
        jobs, placed = [each() for each in transaction.jobs], gathered.placed
        self._writer.perform(
            client, placed, [receipt], settled=settled, jobs=jobs, is_commit=True,
            undo=lambda: self._return_acknowledged(settled),
        )  # fmt: skip
        self._expiration.expire_on_arrival(placed)
        _tell_of_end(transaction)

    def settled_there(self, transaction: Transaction) -> list[tuple[Subscription, str, LogEntry]]:
        """Return what a transaction acknowledged, as far as it is there still."""
        return [each for each in transaction.settled if self._is_there(each[2])]

    def _is_there(self, entry: LogEntry) -> bool:
        """Whether it can be acked still: its log may be gone with all it held."""
        return not is_from_log(entry) or self._queues.get(entry.log) is not None

    def _take(self, client: Client, name: str) -> Transaction:
        """An open transaction, which is over."""
        transaction = client.transaction(name)
        self._branches.pop(name, None)
        for each in transaction.clients:
            each.transactions.pop(name, None)
        self._quotas.end_transaction(transaction.bytes)
        return transaction

    def give_up(self, client: Client) -> None:
        """The client is gone: its transactions come to nothing."""
        for name in list(client.transactions):
            if name in client.transactions:
                transaction = self._take(client, name)
                self.roll_back(transaction, "the connection ended")
                if transaction.joined:
                    self._placement.branch_exchange.ask(
                        BranchStep.ROLL_BACK_PART, name, lambda _: None, sessions=transaction.joined
                    )

    def _abort(self, client: Client, abort: AbortCommand) -> None:
        """Nothing of it happens: what was acked in it waits for an ack again, with the same ids."""
        self.roll_back(self._take(client, abort.transaction), "ABORT")
        self._replies.confirm_after(client, abort.receipt)

    def find(self, client: Client, ack_id: str, subscription: str | None) -> Acknowledged | None:
        """The ACK of a message, by its id, in an open transaction; None when there is none."""
        for transaction in client.transactions.values():
            for each, key in transaction.settled_as(ack_id):
                if subscription in (None, each.name) and client.by_key.get(each.key) is each:
                    return Acknowledged(transaction, each, key)
        return None

    def hand_back(self, found: Acknowledged) -> None:
        """Take an ACK out of its transaction: the message is held by its consumer again, in mode `client` with what
        that ACK included.
        """
        transaction, subscription, key = found
        keys = [each for owner, each, _ in transaction.settled if owner is subscription]
        back = set(keys[: keys.index(key) + 1]) if subscription.ack_mode == "client" else {key}
        entries = {each: entry for owner, each, entry in transaction.settled if owner is subscription and each in back}
        transaction.settled = [
            each for each in transaction.settled if each[0] is not subscription or each[1] not in back
        ]
        self.hold_again(subscription, entries)

    def roll_back(self, transaction: Transaction, why: str) -> None:
        """Let nothing of a transaction happen, for this reason."""
        self._router.record_rolled_back(transaction.messages, why)
        self._return_acknowledged(transaction.settled)
        _tell_of_end(transaction)

    def _return_acknowledged(self, settled: Sequence[tuple[Subscription, str, LogEntry]]) -> None:
        """Return what was acknowledged to the consumer that held it or, when it is gone, to the queue."""
        held: dict[Subscription, dict[str, LogEntry]] = {}
        homeless: list[LogEntry] = []
        for subscription, key, entry in settled:
            if subscription.client.by_key.get(subscription.key) is subscription:
                held.setdefault(subscription, {})[key] = entry
            elif is_from_log(entry):
                homeless.append(entry)
            elif not isinstance(entry, RemoteLogEntry):  # which goes back where it is kept
                self._counters.of(Destination.parse(entry.shown_destination)).InFlightCount -= 1
        for subscription, entries in held.items():
            self.hold_again(subscription, entries)
        self._consumers.requeue(homeless)

    def hold_again(self, subscription: Subscription, entries: Mapping[str, LogEntry]) -> None:
        """Let a subscription hold messages again that it acknowledged."""
        subscription.restore_unacked(entries)
        if subscription.has_remote_logs:
            self._placement.outbound_settlement.take_credit(subscription, entries.values())


def _tell_of_end(transaction: Transaction) -> None:
    """Tell all who took part in a branch that it is over; it was one of them who ended it, or somebody else."""
    if transaction.branch:
        for each in transaction.clients:
            each.on_branch_ended(transaction.branch)
