"""Prepare, commit and roll back branches of distributed transactions wherever their clients are.

Clients of several nodes may take part in one branch, and another node may be asked to end it. A node where a client
joins a branch asks the others whether it is open there, too; they know of each other's parts from then on. A branch of
which one part is lost is rolled back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from brokerapp.core.xa.branch_preparation import BranchPreparation, OnPrepared
from brokerapp.engine.clients.branch_parts import DONE, READ_ONLY, BranchStep, part_id, parts_of
from brokerapp.engine.clients.client import Client, Transaction
from brokerapp.errors import BrokerError, TransactionNotFound, TransactionRolledBack

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, Placement, PreparedBranchesPort, TransactionsPort

#: Told how it ended: None, or why it did not.
Outcome = Callable[[BrokerError | None], None]
#: Told what this node answers another one, see branch_parts.py.
Answer = Callable[[str], None]


class JointBranches:
    """Handles branches that clients of several nodes take part in, or end. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        branches: PreparedBranchesPort,
        placement: Placement,
        preparation: BranchPreparation,
        transactions: TransactionsPort,
    ) -> None:
        self._session, self._branches, self._placement = context.session, branches, placement
        self._preparation, self._transactions = preparation, transactions

    def find_open(self, name: str) -> Transaction | None:
        """Return the part of a branch that is open at this node, and not prepared."""
        transaction = self._transactions.branch(name)
        return None if transaction is None or transaction.is_prepared else transaction

    # -- taking part

    def join(self, client: Client, name: str, then: Callable[[], None]) -> None:
        """Learn where else a branch is open in which a client takes part now; then call back."""
        transaction = self.find_open(name)
        if transaction is None or self._placement.is_alone:
            then()
            return

        def answered(answers: Mapping[str, str]) -> None:
            transaction.joined.update(session for session, answer in answers.items() if answer)
            transaction.pending_joins -= 1
            then()
            if not transaction.pending_joins:
                for callback in transaction.after_joining:
                    callback()
                transaction.after_joining.clear()

        transaction.pending_joins += 1
        self._placement.branch_exchange.ask(BranchStep.JOIN, name, answered, connection=client.connection_id)

    def when_joined(self, transaction: Transaction, then: Callable[[], None]) -> None:
        """Call back when it is known where else an open branch is open: at once, unless it was begun this moment."""
        if transaction.pending_joins:
            transaction.after_joining.append(then)
        else:
            then()

    # -- ending it

    def prepare(self, name: str, then: OnPrepared) -> None:
        """Prepare a branch, wherever it is open."""
        transaction = self._transactions.branch(name)
        if (transaction is not None and transaction.is_prepared) or parts_of(name, self._branches.known):
            then(None, False)  # the client did not get the answer
        elif transaction is None:
            missing = f"transaction {name!r} cannot be prepared: it is not open, or had nothing to prepare"
            self._forward(BranchStep.PREPARE, name, missing, then)
        else:
            self.when_joined(transaction, lambda: self._prepare_all(name, then))

    def _prepare_all(self, name: str, then: OnPrepared) -> None:
        transaction = self.find_open(name)
        if transaction is None or not transaction.joined:
            self._prepare_here(name, then)
            return

        def answered(answers: Mapping[str, str]) -> None:
            refusals = [each or "a part of it was lost" for each in answers.values() if each not in (DONE, READ_ONLY)]
            if refusals:
                self._roll_back_all(name, refusals[0])
                then(TransactionRolledBack(f"transaction {name!r} was rolled back: {refusals[0]}"), False)
            else:
                for session in (each for each, answer in answers.items() if answer == DONE):
                    self._branches.note_part(part_id(name, session), session)
                nothing_there = all(each == READ_ONLY for each in answers.values())
                self._prepare_here(name, lambda error, nothing: prepared(error, nothing and nothing_there))

        def prepared(error: BrokerError | None, is_read_only: bool) -> None:
            if error is not None:
                self._roll_back_all(name, str(error))
            then(error, is_read_only)

        self._placement.branch_exchange.ask(BranchStep.PREPARE_PART, name, answered, sessions=transaction.joined)

    def _prepare_here(self, name: str, then: OnPrepared) -> None:
        if self.find_open(name) is None:  # a client that took part in it is gone
            then(TransactionRolledBack(f"transaction {name!r} was rolled back: a connection ended"), False)
        else:
            self._preparation.prepare(name, name, then)

    def _roll_back_all(self, name: str, why: str) -> None:
        """Roll back what is open of a branch, and what is prepared of it already."""
        if self.find_open(name) is not None:
            self.roll_back(name, why)
        self._branches.end(name, is_committed=False, then=lambda _: None)

    def commit(self, name: str, then: Outcome) -> None:
        """Commit a branch that is open here without having been prepared, with the parts at other nodes."""

        def prepared(error: BrokerError | None, is_read_only: bool) -> None:
            if error is not None or is_read_only:
                then(error)
            else:
                self._branches.end(name, is_committed=True, then=then)

        self.prepare(name, prepared)

    def roll_back(self, name: str, why: str) -> None:
        """Roll back a branch that is open here, with its parts at other nodes, which are told."""
        transaction = self._transactions.take_branch(name)
        self._transactions.roll_back(transaction, why)
        self.when_joined(transaction, lambda: self.on_rolled_back(name, transaction))

    def on_rolled_back(self, name: str, transaction: Transaction) -> None:
        """Tell the nodes that have parts of a branch that this one rolled back its own."""
        if transaction.joined:
            self._placement.branch_exchange.ask(
                BranchStep.ROLL_BACK_PART, name, lambda _: None, sessions=transaction.joined
            )

    def end_elsewhere(self, name: str, step: BranchStep, then: Outcome) -> None:
        """Let a node where a branch is open commit it, or roll it back."""
        missing = f"transaction {name!r} is neither open nor prepared"
        self._forward(step, name, missing, lambda error, _: then(error))

    def _forward(self, step: BranchStep, name: str, missing: str, then: OnPrepared) -> None:
        """Ask other nodes, one after the other, until one has the branch."""
        waiting = deque(self._placement.branch_exchange.others())

        def ask_next(answers: Mapping[str, str]) -> None:
            for answer in filter(None, answers.values()):
                error = None if answer in (DONE, READ_ONLY) else TransactionRolledBack(answer)
                then(error, answer == READ_ONLY)
                return
            if waiting:
                self._placement.branch_exchange.ask(step, name, ask_next, sessions=[waiting.popleft()])
            else:
                then(TransactionNotFound(missing), False)

        ask_next({})

    # -- what other nodes ask

    def on_step(self, session: str, step: BranchStep, name: str, connection: str, then: Answer) -> None:
        """Do what another node asks about a branch, and call back with the answer."""
        if step is BranchStep.RETURN:
            self._branches.end_part(name, is_committed=False, then=lambda error: then("" if error else DONE))
        elif (transaction := self.find_open(name)) is not None:
            _STEPS[step](self, session, name, connection, transaction, then)
        elif step in (BranchStep.PREPARE_PART, BranchStep.PREPARE) and parts_of(name, self._branches.known):
            then(DONE)  # the link was lost before the answer
        else:
            then("")

    def _on_join(self, session: str, name: str, connection: str, transaction: Transaction, then: Answer) -> None:
        if connection and any(each.connection_id == connection for each in transaction.clients):
            self.roll_back(name, "its client reconnected to another node")  # where it repeats all
            then("")
        else:
            transaction.joined.add(session)
            then(DONE)

    def _on_prepare_part(self, _session: str, name: str, _connection: str, _open: Transaction, then: Answer) -> None:
        self._preparation.prepare(name, part_id(name, self._session), _answering(then))

    def _on_roll_back_part(self, _session: str, name: str, _connection: str, _open: Transaction, then: Answer) -> None:
        self._transactions.roll_back(self._transactions.take_branch(name), "another part of it was rolled back")
        then(DONE)

    def _on_prepare(self, _session: str, name: str, _connection: str, _open: Transaction, then: Answer) -> None:
        self.prepare(name, _answering(then))

    def _on_commit(self, _session: str, name: str, _connection: str, _open: Transaction, then: Answer) -> None:
        self.commit(name, lambda error: _answering(then)(error, False))

    def _on_roll_back(self, _session: str, name: str, _connection: str, _open: Transaction, then: Answer) -> None:
        self.roll_back(name, "rolled back")
        then(DONE)

    def on_node_lost(self, session: str) -> None:
        """Roll back the open branches that have a part at a node that is gone; find out what it has prepared."""
        self._branches.refresh()
        for name, transaction in list(self._transactions.branches()):
            if session in transaction.joined and not transaction.is_prepared:
                transaction.joined.discard(session)
                self.roll_back(name, "a node whose clients took part in it failed")


def _answering(then: Answer) -> OnPrepared:
    return lambda error, is_read_only: then(str(error) if error else READ_ONLY if is_read_only else DONE)


_STEPS: Mapping[BranchStep, Callable[[JointBranches, str, str, str, Transaction, Answer], None]] = {
    BranchStep.JOIN: JointBranches._on_join,
    BranchStep.PREPARE_PART: JointBranches._on_prepare_part,
    BranchStep.ROLL_BACK_PART: JointBranches._on_roll_back_part,
    BranchStep.PREPARE: JointBranches._on_prepare,
    BranchStep.COMMIT: JointBranches._on_commit,
    BranchStep.ROLL_BACK: JointBranches._on_roll_back,
}
