"""Handle what clients ask about branches of distributed transactions (XA).

Until it is prepared a branch is a transaction like others, but that several clients may take part in it. Then it is in
the store alone: see prepared_branches.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.core.writes.client_write import BranchWrite
from brokerapp.engine.clients.client import Client, Transaction, persistent_first
from brokerapp.engine.clients.prepared_branch import (
    MAX_PREPARED_BRANCHES,
    MAX_PREPARED_BYTES,
    PreparedAck,
    PreparedBranch,
    PreparedSends,
    PreparedSummary,
)
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.entry_factory import is_from_log
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import RemoteLogEntry
from brokerapp.errors import (
    BrokerError,
    RequestRefused,
    TransactionNotFound,
    TransactionNotPrepared,
    TransactionRolledBack,
)
from brokerapp.model.commands import (
    BeginBranchCommand,
    CommitBranchCommand,
    PrepareBranchCommand,
    RecoverBranchesCommand,
    RollBackBranchCommand,
)
from brokerapp.store import GONE, BranchChange, ScheduledJobChange
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AcknowledgementsPort,
        BrokerContext,
        LimitsPort,
        MessageRouterPort,
        PreparedBranchesPort,
        Replies,
        TransactionsPort,
    )


class PreparedTransactions:
    """Prepares branches of distributed transactions, and ends them for clients. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        acknowledgements: AcknowledgementsPort,
        branches: PreparedBranchesPort,
        limits: LimitsPort,
        replies: Replies,
        router: MessageRouterPort,
        transactions: TransactionsPort,
    ) -> None:
        self._commits, self._acknowledgements, self._branches = context.commits, acknowledgements, branches
        self._limits, self._replies, self._router = limits, replies, router
        self._transactions = transactions

    def begin(self, client: Client, begin: BeginBranchCommand) -> None:
        """Let a client take part in a branch. Raises RequestRefused."""
        self._transactions.join_branch(client, begin.branch, is_prepared=begin.branch in self._branches.known)
        self._replies.confirm(client, begin.receipt)

    def prepare(self, client: Client, prepare: PrepareBranchCommand) -> None:
        """Store all that was done in a branch. What cannot be prepared is rolled back. Raises RequestRefused."""
        name = prepare.branch
        transaction = self._transactions.branch(name)
        if transaction is None and name not in self._branches.known:
            raise TransactionNotFound(
                f"transaction {name!r} cannot be prepared: it is not open, or had nothing to prepare"
            )
        if transaction is None or transaction.is_prepared:  # the client did not get the answer
            self._replies.confirm_after(client, prepare.receipt)
            return
        self._transactions.take_branch(name)
        try:
            branch, settled = self._contents(transaction)
            held = branch.encode()
            if len(held) > MAX_PREPARED_BYTES:
                raise RequestRefused(f"a prepared transaction holds at most {MAX_PREPARED_BYTES} bytes of messages")
        except RequestRefused as error:
            self._transactions.roll_back(transaction, str(error))
            raise TransactionRolledBack(f"transaction {name!r} was rolled back: {error}") from error
        if not (branch.sends or branch.jobs or settled):
            prepare.is_read_only = True
            self._replies.confirm_after(client, prepare.receipt)
            return
        self._keep(client, prepare, transaction, branch, settled, held)

    def _contents(self, transaction: Transaction) -> tuple[PreparedBranch, list[tuple[Subscription, str, LogEntry]]]:
        """What a branch holds, and what it acknowledged. Raises RequestRefused where that cannot be prepared."""
        if transaction.failure:
            raise RequestRefused(f"a SEND in it was refused: {transaction.failure}")
        if len(self._branches.known) >= MAX_PREPARED_BRANCHES:
            raise RequestRefused(f"{MAX_PREPARED_BRANCHES} transactions are prepared, as many as the broker keeps")
        self._router.restore_queues(transaction.messages)
        settled = self._transactions.settled_there(transaction)
        if any(isinstance(entry, RemoteLogEntry) for _, _, entry in settled):
            raise RequestRefused("it acknowledges messages that another broker of the cluster keeps")
        jobs: list[ScheduledJobChange] = [each() for each in transaction.jobs]
        branch = PreparedBranch(
            [
                PreparedSends(each.destination, each.route.queues, each.route.topics, each.messages, each.places)
                for each in persistent_first(transaction.messages)
            ],
            [(each.id, each.record) for each in jobs],
            [_ack_of(entry) for _, _, entry in settled if is_from_log(entry)],
        )
        return branch, settled

    def _keep(
        self,
        client: Client,
        prepare: PrepareBranchCommand,
        transaction: Transaction,
        branch: PreparedBranch,
        settled: Sequence[tuple[Subscription, str, LogEntry]],
        held: bytes,
    ) -> None:
        """Move a branch to the store, out of the memory of this node and, what it acknowledged, out of the queues."""
        name, size = prepare.branch, len(held)
        summary = PreparedSummary(
            client.client_id, client.principal.name, clock.now_ms(), branch.send_count, len(settled), size
        )

        def done(_seq: int, refused: str) -> None:
            client.on_write_done(size)
            if refused:
                self._transactions.roll_back(transaction, "it was not prepared")
            if refused and refused != GONE:  # else it is prepared already, with the same
                why = self._limits.describe(refused)
                self._replies.refuse(
                    client, TransactionRolledBack(f"transaction {name!r} was rolled back: {why}"), prepare.receipt
                )
                return
            if not refused:
                self._acknowledgements.count_settled(settled)
            self._branches.note(name, summary, () if refused else settled)
            self._replies.confirm(client, prepare.receipt)

        client.on_write_started(size)
        settles = [entry for _, _, entry in settled if entry.seq and is_from_log(entry)]
        change = BranchChange(name, summary.encode(), held)
        self._commits.submit(BranchWrite(change, settles=settles, callback=done))

    def commit(self, client: Client, commit: CommitBranchCommand) -> None:
        """Let everything in a branch happen. Raises RequestRefused."""
        transaction = self._transactions.branch(commit.branch)
        if transaction is not None and not transaction.is_prepared:
            if not commit.is_one_phase:
                raise TransactionNotPrepared(f"transaction {commit.branch!r} is to be committed, and not prepared")
            self._transactions.commit(client, self._transactions.take_branch(commit.branch), commit.receipt)
            return
        self._end_for(client, commit.branch, commit.receipt, is_committed=True)

    def roll_back(self, client: Client, roll_back: RollBackBranchCommand) -> None:
        """Let nothing in a branch happen."""
        transaction = self._transactions.branch(roll_back.branch)
        if transaction is not None and not transaction.is_prepared:
            self._transactions.roll_back(self._transactions.take_branch(roll_back.branch), "rolled back")
            self._replies.confirm_after(client, roll_back.receipt)
            return
        self._end_for(client, roll_back.branch, roll_back.receipt, is_committed=False)

    def recover(self, client: Client, recover: RecoverBranchesCommand) -> None:
        """Tell a client which branches are prepared, whoever prepared them."""

        def found(summaries: dict[str, bytes]) -> None:
            client.on_write_done()
            recover.branches = sorted(summaries)
            self._replies.confirm(client, recover.receipt)

        client.on_write_started()
        self._commits.read_with(lambda store: store.branches.summaries(), found)

    def _end_for(self, client: Client, name: str, receipt: str | None, *, is_committed: bool) -> None:
        """End a prepared branch for a client, and answer it."""
        if self._transactions.branch(name) is not None:
            self._transactions.take_branch(name)

        def done(error: BrokerError | None) -> None:
            client.on_write_done()
            if error is None:
                self._replies.confirm(client, receipt)
            else:
                self._replies.refuse(client, error, receipt)

        client.on_write_started()
        self._branches.end(name, is_committed=is_committed, then=done)


def _ack_of(entry: LogEntry) -> PreparedAck:
    message = replace(entry.message, deliveries=entry.redelivery_count + 1)
    return PreparedAck(entry.log, entry.original_destination, entry.shown_destination, message)
