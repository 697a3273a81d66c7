"""Translate what a client asks about transactions: its own, and branches of distributed ones (XA). No I/O.

A branch is known by its Xid, whoever works in it. A transaction of the client alone has an id of its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from brokerapp.engine.clients.client import MAX_TRANSACTIONS
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import (
    AbortCommand,
    BeginBranchCommand,
    BeginCommand,
    ClientCommand,
    CommitBranchCommand,
    CommitCommand,
    PrepareBranchCommand,
    RecoverBranchesCommand,
    RollBackBranchCommand,
    SendBatchCommand,
    TransactionCommand,
    WindowCommand,
)
from brokerapp.openwire.commands import (
    DataArrayResponse,
    IntegerResponse,
    LocalTransactionId,
    Response,
    TransactionInfo,
    XATransactionId,
)
from brokerapp.openwire.session.consumers import Delivery, OpenWireConsumer
from brokerapp.openwire.session.jms_values import transaction_of, transaction_text

#: Bytes of each part of an Xid, by the specification of XA.
MAX_XID_PART = 64


class TransactionOperation(IntEnum):
    """What a TransactionInfo asks for."""

    BEGIN = 0
    PREPARE = 1
    COMMIT_ONE_PHASE = 2
    COMMIT_TWO_PHASE = 3
    ROLLBACK = 4
    RECOVER = 5
    FORGET = 6
    END = 7


class Vote(IntEnum):
    """The answer to a PREPARE."""

    OK = 0
    READ_ONLY = 3  #: nothing was done: the branch is over


def transaction_name(id: LocalTransactionId | XATransactionId) -> str:
    """Return the name by which the broker knows a transaction. Raises RequestRefused for what is no Xid."""
    if isinstance(id, XATransactionId):
        parts = id.global_transaction_id or b"", id.branch_qualifier or b""
        if any(len(each) > MAX_XID_PART for each in parts):
            raise RequestRefused(f"the parts of an Xid have at most {MAX_XID_PART} bytes: {str(id)[:80]}...")
    return transaction_text(id)


class ClientTransactions:
    """The transactions that a client has a part in, with what its consumers acknowledged in them."""

    def __init__(self) -> None:
        self._settled: dict[str, list[tuple[OpenWireConsumer, list[Delivery]]]] = {}
        self._begun: set[str] = set()  # a transport that reconnects may begin them again
        self._ending: dict[str, list[tuple[OpenWireConsumer, list[Delivery]]]] = {}  # by receipt of a commit
        self._asked: dict[str, PrepareBranchCommand | RecoverBranchesCommand] = {}  # by receipt, with values as answers

    def on_acknowledged(self, name: str, consumer: OpenWireConsumer, taken: list[Delivery]) -> None:
        """Note what was acknowledged in a transaction: it is held again when that is rolled back."""
        self._settled.setdefault(name, []).append((consumer, taken))

    def perform(self, info: TransactionInfo, receipt: str | None) -> Sequence[ClientCommand]:
        """Return what the broker is to do. Raises RequestRefused."""
        operation = _operation_of(info)
        if operation is TransactionOperation.END:  # of the work of one session: others may go on in it
            return ()
        if operation is TransactionOperation.RECOVER:
            return (self._ask(RecoverBranchesCommand(receipt)),)
        if info.transaction_id is None:
            raise RequestRefused(f"{operation.name} without a transaction id")
        name = transaction_name(info.transaction_id)
        if operation is TransactionOperation.BEGIN and name in self._begun:
            return ()
        widened = self._note(operation, name, receipt)
        if isinstance(info.transaction_id, XATransactionId):
            self._begun.discard(name)  # another client may end it
            return (self._on_branch(operation, name, receipt), *widened)
        return (SendBatchCommand([_on_own(operation, name, receipt)]), *widened)

    def _note(self, operation: TransactionOperation, name: str, receipt: str | None) -> Sequence[ClientCommand]:
        """Note what a transaction begins or ends with; return what the broker is to do for consumers besides."""
        if operation is TransactionOperation.BEGIN:
            if len(self._begun) < MAX_TRANSACTIONS:  # one more is refused, however often it is begun
                self._begun.add(name)
        elif operation is not TransactionOperation.PREPARE:
            self._begun.discard(name)
            settled = self._settled.pop(name, [])
            if operation in (TransactionOperation.ROLLBACK, TransactionOperation.FORGET):
                return _hold_again(settled)
            if settled and receipt is not None:
                self._ending[receipt] = settled
        return ()

    def _on_branch(self, operation: TransactionOperation, name: str, receipt: str | None) -> ClientCommand:
        match operation:
            case TransactionOperation.BEGIN:
                return BeginBranchCommand(name, receipt)
            case TransactionOperation.PREPARE:
                return self._ask(PrepareBranchCommand(name, receipt))
            case TransactionOperation.ROLLBACK | TransactionOperation.FORGET:  # nothing is lost by what is forgotten
                return RollBackBranchCommand(name, receipt)
            case _:
                return CommitBranchCommand(name, operation is TransactionOperation.COMMIT_ONE_PHASE, receipt)

    def _ask(
        self, command: PrepareBranchCommand | RecoverBranchesCommand
    ) -> PrepareBranchCommand | RecoverBranchesCommand:
        if command.receipt is not None:
            self._asked[command.receipt] = command
        return command

    def response(self, receipt: str) -> Response:
        """Return what confirms a command of the client: with a value, where it asked for one."""
        number, asked = int(receipt), self._asked.pop(receipt, None)
        self._ending.pop(receipt, None)
        if isinstance(asked, PrepareBranchCommand):
            return IntegerResponse(correlation_id=number, result=Vote.READ_ONLY if asked.is_read_only else Vote.OK)
        if isinstance(asked, RecoverBranchesCommand):
            return DataArrayResponse(correlation_id=number, data=tuple(map(transaction_of, asked.branches)))
        return Response(correlation_id=number)

    def on_refused(self, receipt: str, is_held: Callable[[Delivery], bool]) -> None:
        """Forget that a command was to be answered; what cannot be prepared or committed is rolled back.

        `is_held` says whether the broker lets the consumer hold a message again; others went back to their queues.
        """
        asked, settled = self._asked.pop(receipt, None), self._ending.pop(receipt, [])
        if isinstance(asked, PrepareBranchCommand):
            settled = self._settled.pop(asked.branch, [])
        _hold_what_is_held(settled, is_held)

    def on_branch_ended(self, branch: str, is_held: Callable[[Delivery], bool]) -> None:
        """Forget a branch that is over, ended by another client perhaps; what is held again tells `is_held`."""
        _hold_what_is_held(self._settled.pop(branch, []), is_held)


def _operation_of(info: TransactionInfo) -> TransactionOperation:
    try:
        return TransactionOperation(info.type)
    except ValueError:
        raise RequestRefused(f"{info.type} is not an operation of a TransactionInfo") from None


def _hold_again(settled: Sequence[tuple[OpenWireConsumer, list[Delivery]]]) -> list[WindowCommand]:
    """Let consumers hold what they acknowledged, and have as many more messages as they had before that."""
    for consumer, taken in reversed(settled):
        consumer.give_back(taken)
    counts = [(consumer.name, sum([each.is_extended for each in taken])) for consumer, taken in settled]
    return [WindowCommand(name, count) for name, count in counts if count]


def _hold_what_is_held(
    settled: Sequence[tuple[OpenWireConsumer, list[Delivery]]], is_held: Callable[[Delivery], bool]
) -> None:
    """Let consumers hold what the broker lets them hold again."""
    for consumer, taken in reversed(settled):
        back = [each for each in taken if is_held(each)]
        for each in back:
            each.is_extended = False
        consumer.give_back(back)


def _on_own(operation: TransactionOperation, name: str, receipt: str | None) -> TransactionCommand:
    match operation:
        case TransactionOperation.BEGIN:
            return BeginCommand(name, receipt)
        case TransactionOperation.COMMIT_ONE_PHASE | TransactionOperation.COMMIT_TWO_PHASE:
            return CommitCommand(name, receipt)
        case TransactionOperation.PREPARE:
            raise RequestRefused("a transaction that is not distributed cannot be prepared")
        case _:
            return AbortCommand(name, receipt)
