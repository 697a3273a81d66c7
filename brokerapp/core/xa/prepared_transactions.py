"""Handle what clients ask about branches of distributed transactions (XA).

Until it is prepared a branch is a transaction like others, but that several clients may take part in it. Then it is in
the store alone: see prepared_branches.py. Other nodes may have a part in it: see joint_branches.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.core.xa.joint_branches import JointBranches
from brokerapp.engine.clients.branch_parts import BranchStep, branch_of
from brokerapp.engine.clients.client import Client, Transaction
from brokerapp.errors import BrokerError, RequestRefused, TransactionNotFound, TransactionNotPrepared
from brokerapp.model.commands import (
    BeginBranchCommand,
    CommitBranchCommand,
    PrepareBranchCommand,
    RecoverBranchesCommand,
    RollBackBranchCommand,
)

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, PreparedBranchesPort, Replies, TransactionsPort


class PreparedTransactions:
    """Prepares branches of distributed transactions, and ends them, for clients. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        branches: PreparedBranchesPort,
        joint_branches: JointBranches,
        replies: Replies,
        transactions: TransactionsPort,
    ) -> None:
        self._commits, self._branches, self._joint = context.commits, branches, joint_branches
        self._replies, self._transactions = replies, transactions

    def begin(self, client: Client, begin: BeginBranchCommand) -> None:
        """Let a client take part in a branch. Raises RequestRefused."""
        self._transactions.join_branch(client, begin.branch, is_prepared=begin.branch in self._branches.known)
        self._joint.join(client, begin.branch, lambda: self._replies.confirm(client, begin.receipt))

    def prepare(self, client: Client, prepare: PrepareBranchCommand) -> None:
        """Store all that was done in a branch. What cannot be prepared is rolled back."""

        def done(error: BrokerError | None, is_read_only: bool) -> None:
            client.on_write_done()
            if error is not None:
                self._replies.refuse(client, error, prepare.receipt)
                return
            prepare.is_read_only = is_read_only
            self._replies.confirm_after(client, prepare.receipt)

        client.on_write_started()
        self._joint.prepare(prepare.branch, done)

    def commit(self, client: Client, commit: CommitBranchCommand) -> None:
        """Let everything in a branch happen. Raises RequestRefused."""
        name, transaction = commit.branch, self._joint.find_open(commit.branch)
        if transaction is None:
            elsewhere = BranchStep.COMMIT if commit.is_one_phase else None
            self._end_for(client, name, commit.receipt, is_committed=True, elsewhere=elsewhere)
        elif not commit.is_one_phase:
            raise TransactionNotPrepared(f"transaction {name!r} is to be committed, and not prepared")
        else:
            self._joint.when_joined(transaction, lambda: self._commit_open(client, name, transaction, commit.receipt))

    def _commit_open(self, client: Client, name: str, transaction: Transaction, receipt: str | None) -> None:
        if transaction.joined:
            self._answer_when(client, receipt, lambda then: self._joint.commit(name, then))
            return
        try:
            self._transactions.commit(client, self._transactions.take_branch(name), receipt)
        except RequestRefused as error:
            self._replies.refuse(client, error, receipt)

    def roll_back(self, client: Client, roll_back: RollBackBranchCommand) -> None:
        """Let nothing in a branch happen."""
        name = roll_back.branch
        if self._joint.find_open(name) is not None:
            self._joint.roll_back(name, "rolled back")
            self._replies.confirm_after(client, roll_back.receipt)
        else:
            self._end_for(client, name, roll_back.receipt, is_committed=False, elsewhere=BranchStep.ROLL_BACK)

    def recover(self, client: Client, recover: RecoverBranchesCommand) -> None:
        """Tell a client which branches are prepared, whoever prepared them."""

        def found(summaries: dict[str, bytes]) -> None:
            client.on_write_done()
            recover.branches = sorted(set(map(branch_of, summaries)))
            self._replies.confirm(client, recover.receipt)

        client.on_write_started()
        self._commits.read_with(lambda store: store.branches.summaries(), found)

    def _end_for(
        self, client: Client, name: str, receipt: str | None, *, is_committed: bool, elsewhere: BranchStep | None
    ) -> None:
        """End a prepared branch for a client, and answer it. One that is not may be open `elsewhere`."""
        if self._transactions.branch(name) is not None:
            self._transactions.take_branch(name)

        def end(then: Callable[[BrokerError | None], None]) -> None:
            def ended(error: BrokerError | None) -> None:
                if isinstance(error, TransactionNotFound) and elsewhere is not None:
                    self._joint.end_elsewhere(name, elsewhere, then)
                else:
                    then(error)

            self._branches.end(name, is_committed=is_committed, then=ended)

        self._answer_when(client, receipt, end)

    def _answer_when(
        self, client: Client, receipt: str | None, work: Callable[[Callable[[BrokerError | None], None]], None]
    ) -> None:
        def done(error: BrokerError | None) -> None:
            client.on_write_done()
            if error is None:
                self._replies.confirm(client, receipt)
            else:
                self._replies.refuse(client, error, receipt)

        client.on_write_started()
        work(done)
