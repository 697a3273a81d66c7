"""How producers of OpenWire are held back: by their windows, and by places that are full."""

from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import (
    ConnectionError,
    ConnectionId,
    LocalTransactionId,
    ProducerAck,
    Response,
    TransactionInfo,
)
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.protocol.openwire_client import QUIET, OpenWireClient, queue, topic
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

XML = """
<broker brokerName="openwire-producers">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="FULL.>" memoryLimit="20kb">
      <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
    <policyEntry queue="REFUSING.>" memoryLimit="20kb" sendFailIfNoSpace="true">
      <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""
BODY = "x" * 8_000


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def client(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


@pytest.mark.parametrize("persistent", [True, False])
def test_a_producer_with_a_window_is_told_when_its_messages_are_kept(node, client, name, persistent):
    producer = client.producer(window_size=100_000)
    sent = [client.message(queue(name), text, persistent=persistent) for text in ("a", "bc")]
    for each in sent:
        client.tell(each)
    acks = [client.next(ProducerAck) for _ in sent]
    assert acks == [ProducerAck(producer_id=producer, size=1024 + len(each.content)) for each in sent]
    assert node.depth(name) == 2


def test_a_message_that_is_to_be_answered_is_answered_only(client, name):
    client.producer(window_size=100_000)
    assert type(client.ask(client.message(queue(name), "a"))) is Response
    assert client.next(ProducerAck, seconds=QUIET) is None


def sends(client: OpenWireClient, name: str, count: int) -> None:
    for number in range(count):
        client.tell(client.message(queue(name), f"{number}{BODY}"))


def test_a_client_that_holds_nothing_is_not_read_while_it_finds_a_queue_full(node, client, name):
    client.consumer(7, topic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"))
    full = f"FULL.{name}"
    sends(client, full, 5)
    waiting = node.node.broker.flow_control.places
    wait_until(lambda: node.look(lambda: any(full in each for each in waiting)), "a send that waits")
    client.tell(client.message(queue(name), "later"))
    assert client.next(Response, seconds=QUIET) is None
    assert (node.depth(full), node.depth(name)) == (2, 0)
    with OpenWireClient(node.port) as other:
        other.send(queue(f"{name}.other"), "goes on")
        other.consumer(1, queue(full), prefetch=1)
        for number in range(5):
            [held] = other.dispatches(1)
            assert held.message.content[4:5] == str(number).encode()
            other.acknowledge(held)
    wait_until(lambda: node.depth(name) == 1, "the client is read again")


def test_a_client_that_holds_messages_of_the_full_queue_makes_room_itself(node, client, name):
    full = f"FULL.{name}"
    client.consumer(1, queue(full), prefetch=1)
    sends(client, full, 6)
    for number in range(6):
        [held] = client.dispatches(1)
        assert held.message.content[4:5] == str(number).encode()
        client.acknowledge(held)
    wait_until(lambda: not node.depth(full), "all is consumed")


def test_a_message_that_is_refused_frees_its_part_of_the_window(client, name):
    client.producer(window_size=100_000)
    sends(client, f"REFUSING.{name}", 5)
    assert [client.next(ProducerAck).size for _ in range(5)] == [1024 + 4 + 1 + len(BODY)] * 5
    assert "is full (memoryLimit" in client.next(ConnectionError).exception.message


def test_a_consumer_keeps_what_a_commit_acknowledged_that_found_no_room(node, client, name):
    connection = ConnectionId(client.connection_id)

    def ask(id: LocalTransactionId, operation: TransactionOperation) -> Response:
        return client.ask(TransactionInfo(connection_id=connection, transaction_id=id, type=operation))

    full = queue(f"REFUSING.{name}")
    client.send(queue(name), "a", "b")
    client.send(full, BODY)
    client.consumer(1, queue(name))
    a, b = client.dispatches(2)
    first, second = LocalTransactionId(1, connection), LocalTransactionId(2, connection)
    ask(first, TransactionOperation.BEGIN)
    assert type(client.acknowledge(a, transaction_id=first)) is Response
    for _ in range(5):
        client.ask(client.message(full, BODY, transaction_id=first))
    assert "is full" in ask(first, TransactionOperation.COMMIT_ONE_PHASE).exception.message
    assert client.dispatches(0) == []  # its library hands "a" to the application again
    ask(second, TransactionOperation.BEGIN)
    for each in (a, b):
        assert type(client.acknowledge(each, transaction_id=second)) is Response
    assert type(ask(second, TransactionOperation.COMMIT_ONE_PHASE)) is Response
    assert (node.depth(name), node.depth(f"REFUSING.{name}")) == (0, 1)
