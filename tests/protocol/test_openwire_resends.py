"""Messages that clients with failover: send again when their connection broke."""

from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import (
    ConnectionId,
    ExceptionResponse,
    LocalTransactionId,
    Response,
    TransactionInfo,
    XATransactionId,
)
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.protocol.running_node import RunningNode, node_of

XML = """
<broker brokerName="openwire-resends">
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.mark.parametrize("destinations", ["{0}", "{0},{0}.other"])
def test_a_message_that_was_stored_is_not_stored_again(node, name, destinations):
    where = queue(destinations.format(name))
    with OpenWireClient(node.port, fault_tolerant=True) as client:
        client.ask(client.message(where, "a", sequence=1))
    with OpenWireClient(node.port, fault_tolerant=True, connection_id=client.connection_id) as again:
        for text, sequence in ("a", 1), ("b", 2), ("b", 2):
            assert type(again.ask(again.message(where, text, sequence=sequence))) is Response
    assert node.bodies(name) == ["a", "b"]
    if "," in where.physical_name:
        assert node.bodies(f"{name}.other") == ["a", "b"]


def test_a_message_in_one_read_with_its_repetition_is_stored_once(node, name):
    with OpenWireClient(node.port, fault_tolerant=True) as client:
        for sequence in 1, 2, 1, 3, 2:
            client.tell(client.message(queue(name), str(sequence), sequence=sequence))
        client.ask(client.message(queue(name), "4", sequence=4))
    assert node.bodies(name) == ["1", "2", "3", "4"]


def test_a_message_is_once_in_a_transaction(node, name):
    with OpenWireClient(node.port, fault_tolerant=True) as client:
        connection = ConnectionId(client.connection_id)
        transaction = LocalTransactionId(1, connection)
        for operation in TransactionOperation.BEGIN, TransactionOperation.COMMIT_ONE_PHASE:
            client.ask(TransactionInfo(connection_id=connection, transaction_id=transaction, type=operation))
            for sequence in (1, 2, 1) if operation is TransactionOperation.BEGIN else ():
                sent = client.message(queue(name), str(sequence), sequence=sequence, transaction_id=transaction)
                assert type(client.ask(sent)) is Response
    assert node.bodies(name) == ["1", "2"]


def test_the_ids_of_clients_that_never_repeat_are_not_remembered(node, name):
    with OpenWireClient(node.port) as client:
        for _ in range(2):
            client.ask(client.message(queue(name), "same", sequence=1))
    assert node.bodies(name) == ["same", "same"]


@pytest.mark.parametrize(
    ("prefetch", "why"),
    [(0, "acknowledged in it what it had got on a former connection"), (1, "is not held by")],
    ids=["before its consumer is given anything", "after it was given another message"],
)
def test_what_acknowledges_messages_of_a_former_connection_is_rolled_back_with_what_was_sent(node, name, prefetch, why):
    """Else a message that is passed on in a transaction is passed on again by whoever gets it next."""
    with OpenWireClient(node.port, fault_tolerant=True) as client:
        client.send(queue(name), "first", "second")
        client.consumer(1, queue(name), prefetch=2)
        first, second = client.dispatches(2)
        client.acknowledge(first)
    with (
        OpenWireClient(node.port) as other,
        OpenWireClient(node.port, fault_tolerant=True, connection_id=client.connection_id) as again,
    ):
        other.consumer(1, queue(name), prefetch=1)
        assert other.texts(1) == ["second"]
        again.consumer(1, queue(name), prefetch=prefetch)
        if prefetch:
            again.ask(again.message(queue(name), "third", sequence=3))
            assert again.texts(1) == ["third"]
        connection = ConnectionId(again.connection_id)
        transaction = LocalTransactionId(1, connection)
        begin, commit = (
            TransactionInfo(connection_id=connection, transaction_id=transaction, type=operation)
            for operation in (TransactionOperation.BEGIN, TransactionOperation.COMMIT_ONE_PHASE)
        )
        again.ask(begin)
        again.ask(again.message(queue(f"{name}.passed"), "second", sequence=9, transaction_id=transaction))
        again.tell(again.ack_of(second, transaction_id=transaction))
        refused = again.ask(commit)
    assert isinstance(refused, ExceptionResponse)
    assert refused.exception.class_name == "javax.jms.TransactionRolledBackException"
    assert why in refused.exception.message
    assert node.bodies(f"{name}.passed") == []
    assert "second" in node.bodies(name)


def test_a_branch_that_acknowledges_messages_of_a_former_connection_is_rolled_back_as_transaction_managers_know_it(
    node, name
):
    with OpenWireClient(node.port, fault_tolerant=True) as client:
        client.send(queue(name), "a")
        client.consumer(1, queue(name), prefetch=1)
        [held] = client.dispatches(1)
    with OpenWireClient(node.port, fault_tolerant=True, connection_id=client.connection_id) as again:
        again.consumer(1, queue(name), prefetch=0)
        connection = ConnectionId(again.connection_id)
        branch = XATransactionId(format_id=1, global_transaction_id=b"g", branch_qualifier=b"former")
        begin, commit = (
            TransactionInfo(connection_id=connection, transaction_id=branch, type=operation)
            for operation in (TransactionOperation.BEGIN, TransactionOperation.COMMIT_ONE_PHASE)
        )
        again.ask(begin)
        again.tell(again.ack_of(held, transaction_id=branch))
        refused = again.ask(commit)
    assert refused.exception.class_name == "javax.transaction.xa.XAException"
    assert refused.exception.message.endswith("xaErrorCode:100")
    assert node.bodies(name) == ["a"]
