"""Prepare what was done at this node in a branch of a distributed transaction: move it to the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.core.writes.client_write import BranchWrite
from brokerapp.engine.clients.client import Transaction
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
from brokerapp.errors import BrokerError, RequestRefused, TransactionRolledBack
from brokerapp.store import GONE, BranchChange, ScheduledJobChange
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AcknowledgementsPort,
        BrokerContext,
        LimitsPort,
        MessageRouterPort,
        PreparedBranchesPort,
        TransactionsPort,
    )

#: Told why a branch could not be prepared and was rolled back, or None; and whether there was nothing to prepare.
OnPrepared = Callable[[BrokerError | None, bool], None]
#: What a branch acknowledged: who held each message, under which key.
_Settled = Sequence[tuple[Subscription, str, LogEntry]]


class BranchPreparation:
    """Moves branches that are open at this node to the store. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        acknowledgements: AcknowledgementsPort,
        branches: PreparedBranchesPort,
        limits: LimitsPort,
        router: MessageRouterPort,
        transactions: TransactionsPort,
    ) -> None:
        self._session, self._commits = context.session, context.commits
        self._acknowledgements, self._branches, self._limits = acknowledgements, branches, limits
        self._router, self._transactions = router, transactions

    def prepare(self, name: str, id: str, then: OnPrepared) -> None:
        """Store under this id all that was done here in a branch, which is open. What cannot be is rolled back."""
        transaction = self._transactions.take_branch(name)
        try:
            branch, settled = self._contents(transaction)
            held = branch.encode()
            if len(held) > MAX_PREPARED_BYTES:
                raise RequestRefused(f"a prepared transaction holds at most {MAX_PREPARED_BYTES} bytes of messages")
        except RequestRefused as error:
            self._transactions.roll_back(transaction, str(error))
            then(TransactionRolledBack(f"transaction {name!r} was rolled back: {error}"), False)
            return
        if branch.sends or branch.jobs or settled:
            self._keep(name, id, transaction, branch, settled, held, then)
        else:
            then(None, True)

    def _contents(self, transaction: Transaction) -> tuple[PreparedBranch, _Settled]:
        """What a branch holds, and what it acknowledged. Raises RequestRefused where that cannot be prepared."""
        if transaction.failure:
            raise RequestRefused(transaction.failure)
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
                for each in transaction.messages
            ],
            [(each.id, each.record) for each in jobs],
            [_ack_of(entry) for _, _, entry in settled if is_from_log(entry)],
        )
        return branch, settled

    def _keep(
        self,
        name: str,
        id: str,
        transaction: Transaction,
        branch: PreparedBranch,
        settled: _Settled,
        held: bytes,
        then: OnPrepared,
    ) -> None:
        """Move a branch to the store, out of the memory of this node and, what it acknowledged, out of the queues."""
        client, size = transaction.clients[0], len(held)
        summary = PreparedSummary(
            client.client_id, client.principal.name, clock.now_ms(), branch.send_count, len(settled), size,
            self._session,
        )  # fmt: skip

        def done(_seq: int, refused: str) -> None:
            client.on_write_done(size)
            if refused:
                self._transactions.roll_back(transaction, "it was not prepared")
            if refused and refused != GONE:  # else it is prepared already, with the same
                why = self._limits.describe(refused)
                then(TransactionRolledBack(f"transaction {name!r} was rolled back: {why}"), False)
                return
            if not refused:
                self._acknowledgements.count_settled(settled)
            self._branches.note(id, summary, () if refused else settled)
            then(None, False)

        client.on_write_started(size)
        settles = [entry for _, _, entry in settled if entry.seq and is_from_log(entry)]
        change = BranchChange(id, summary.encode(), held)
        self._commits.submit(BranchWrite(change, settles=settles, callback=done))


def _ack_of(entry: LogEntry) -> PreparedAck:
    message = replace(entry.message, deliveries=entry.redelivery_count + 1)
    return PreparedAck(entry.log, entry.original_destination, entry.shown_destination, message)
