"""What clients ask about transactions, as commands of the broker, and the answers with values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.errors import RequestRefused, TransactionNotFound, TransactionNotPrepared, TransactionRolledBack
from brokerapp.model.commands import (
    AbortCommand,
    BeginBranchCommand,
    BeginCommand,
    CommitBranchCommand,
    CommitCommand,
    PrepareBranchCommand,
    RecoverBranchesCommand,
    RollBackBranchCommand,
    SendBatchCommand,
)
from brokerapp.openwire.commands import (
    ConnectionId,
    DataArrayResponse,
    IntegerResponse,
    LocalTransactionId,
    Response,
    TransactionInfo,
    XATransactionId,
)
from brokerapp.openwire.session.exceptions import throwable
from brokerapp.openwire.session.jms_values import transaction_of
from brokerapp.openwire.session.transactions import ClientTransactions, TransactionOperation, transaction_name

OWN = LocalTransactionId(7, ConnectionId("ID:c"))
XID = XATransactionId(-3, b"\x00\xffglobal", b"")
BRANCH = "XA:-3:00ff676c6f62616c:"
OPERATIONS = TransactionOperation


def perform(operation, id=XID, receipt="1", transactions=None):
    return tuple(
        (transactions or ClientTransactions()).perform(TransactionInfo(transaction_id=id, type=operation), receipt)
    )


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=64), st.binary(max_size=64))
def test_an_xid_can_be_read_from_its_name(format, transaction, branch):
    xid = XATransactionId(format, transaction, branch)
    assert transaction_of(transaction_name(xid)) == xid


def test_parts_of_an_xid_that_are_too_long_are_refused():
    with pytest.raises(RequestRefused, match="at most 64 bytes"):
        transaction_name(XATransactionId(1, b"x" * 65, b""))


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        (OPERATIONS.BEGIN, BeginBranchCommand(BRANCH, "1")),
        (OPERATIONS.PREPARE, PrepareBranchCommand(BRANCH, "1")),
        (OPERATIONS.COMMIT_ONE_PHASE, CommitBranchCommand(BRANCH, True, "1")),
        (OPERATIONS.COMMIT_TWO_PHASE, CommitBranchCommand(BRANCH, False, "1")),
        (OPERATIONS.ROLLBACK, RollBackBranchCommand(BRANCH, "1")),
        (OPERATIONS.FORGET, RollBackBranchCommand(BRANCH, "1")),
        (OPERATIONS.RECOVER, RecoverBranchesCommand("1")),
    ],
)
def test_what_is_asked_of_a_branch_is_a_command_about_it(operation, command):
    assert perform(operation) == (command,)


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        (OPERATIONS.BEGIN, BeginCommand(transaction_name(OWN), "1")),
        (OPERATIONS.COMMIT_ONE_PHASE, CommitCommand(transaction_name(OWN), "1")),
        (OPERATIONS.COMMIT_TWO_PHASE, CommitCommand(transaction_name(OWN), "1")),
        (OPERATIONS.ROLLBACK, AbortCommand(transaction_name(OWN), "1")),
        (OPERATIONS.FORGET, AbortCommand(transaction_name(OWN), "1")),
    ],
)
def test_what_is_asked_of_a_transaction_of_the_client_is_part_of_a_batch(operation, command):
    assert perform(operation, OWN) == (SendBatchCommand([command]),)


def test_the_end_of_work_in_a_branch_needs_nothing_of_the_broker():
    assert perform(OPERATIONS.END) == ()


def test_a_transport_that_reconnects_may_begin_a_transaction_again_until_it_is_over():
    transactions = ClientTransactions()
    assert perform(OPERATIONS.BEGIN, OWN, transactions=transactions)
    assert perform(OPERATIONS.BEGIN, OWN, transactions=transactions) == ()
    assert perform(OPERATIONS.COMMIT_ONE_PHASE, OWN, transactions=transactions)
    assert perform(OPERATIONS.BEGIN, OWN, transactions=transactions)


@pytest.mark.parametrize(
    ("operation", "id", "rule"),
    [
        (OPERATIONS.PREPARE, OWN, "not distributed"),
        (OPERATIONS.BEGIN, None, "without a transaction id"),
        (99, XID, "99 is not an operation"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_rule(operation, id, rule):
    with pytest.raises(RequestRefused, match=rule):
        perform(operation, id)


@pytest.mark.parametrize(("is_read_only", "vote"), [(False, 0), (True, 3)])
def test_the_answer_to_a_prepare_is_the_vote(is_read_only, vote):
    transactions = ClientTransactions()
    [prepare] = perform(OPERATIONS.PREPARE, transactions=transactions)
    prepare.is_read_only = is_read_only
    assert transactions.response("1") == IntegerResponse(correlation_id=1, result=vote)
    assert transactions.response("1") == Response(correlation_id=1)


def test_the_answer_to_a_recovery_is_the_xids():
    transactions = ClientTransactions()
    [recover] = perform(OPERATIONS.RECOVER, None, transactions=transactions)
    recover.branches = [BRANCH]
    assert transactions.response("1") == DataArrayResponse(correlation_id=1, data=(XID,))


def test_a_prepare_that_was_refused_has_no_vote():
    transactions = ClientTransactions()
    perform(OPERATIONS.PREPARE, transactions=transactions)
    transactions.on_refused("1", lambda _: True)
    assert type(transactions.response("1")) is Response


@pytest.mark.parametrize(
    ("error", "code"), [(TransactionNotFound, -4), (TransactionNotPrepared, -6), (TransactionRolledBack, 100)]
)
def test_errors_of_branches_bear_the_number_that_transaction_managers_know(error, code):
    told = throwable(error(f"transaction {BRANCH!r} is not open"))
    assert (told.class_name, told.message.rpartition(" ")[2]) == (
        "javax.transaction.xa.XAException", f"xaErrorCode:{code}",
    )  # fmt: skip


def test_errors_of_other_transactions_bear_none():
    assert (
        "xaErrorCode"
        not in throwable(TransactionNotFound(f"transaction {transaction_name(OWN)!r} is not open")).message
    )
