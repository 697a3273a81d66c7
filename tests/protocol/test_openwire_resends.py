"""Messages that clients with failover: send again when their connection broke."""

from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import ConnectionId, LocalTransactionId, Response, TransactionInfo
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
