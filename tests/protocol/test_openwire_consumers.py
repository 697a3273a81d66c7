"""What consumers of OpenWire get, and what becomes of what they acknowledge, reject or leave behind."""

from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import (
    ConnectionId,
    ExceptionResponse,
    LocalTransactionId,
    RemoveInfo,
    Response,
    TransactionInfo,
    WireThrowable,
)
from brokerapp.openwire.session.consumers import AckType
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.protocol.openwire_client import OpenWireClient, queue, text_of, topic
from tests.protocol.running_node import RunningNode, node_of

XML = """
<broker brokerName="openwire-consumers">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="OWN.>"><deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy></policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def client(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


def redeliveries(client: OpenWireClient, count: int) -> list[tuple[str | None, int]]:
    return [(text_of(each), each.redelivery_counter) for each in client.dispatches(count)]


def test_what_a_consumer_fails_to_use_is_a_dead_letter_with_the_cause_of_its_client(client, name):
    consumer = client.consumer(1, queue(f"OWN.{name}"))
    client.send(queue(f"OWN.{name}"), "bad", "good")
    bad, good = client.dispatches(2)
    cause = WireThrowable("java.lang.Throwable", "Delivery[2] exceeds redelivery policy limit")
    assert type(client.acknowledge(bad, AckType.POISON, poison_cause=cause)) is Response
    assert bad.consumer_id == consumer
    client.consumer(2, queue(f"ActiveMQ.DLQ.Queue.OWN.{name}"))
    [dead] = client.dispatches(1)
    assert text_of(dead) == "bad"
    assert b"java.lang.Throwable: Delivery[2] exceeds redelivery policy limit" in dead.message.marshalled_properties
    assert type(client.acknowledge(good)) is Response


def test_what_was_acknowledged_before_bytes_that_are_no_command_stays_acknowledged(node, client, name):
    with OpenWireClient(node.port) as bad:
        bad.consumer(1, queue(name))
        bad.send(queue(name), "a", "b", "c")
        a, b, _ = bad.dispatches(3)
        bad.write_bytes(bad.ack_bytes(a) + bad.ack_bytes(b) + b"\0\0\0\1\xff")
        assert bad.is_closed()
    client.consumer(1, queue(name))
    assert redeliveries(client, 1) == [("c", 1)]


def test_a_consumer_that_is_closed_counts_what_its_application_saw(client, name):
    consumer = client.consumer(1, queue(name))
    client.send(queue(name), "a", "b", "c")
    seen = client.dispatches(3)[1].message.message_id.broker_sequence_id
    client.ask(RemoveInfo(object_id=consumer, last_delivered_sequence_id=seen))
    client.consumer(2, queue(name))
    assert redeliveries(client, 3) == [("a", 1), ("b", 1), ("c", 0)]


def test_a_connection_that_is_lost_counts_all_that_it_had(node, client, name):
    with OpenWireClient(node.port) as lost:
        lost.consumer(1, queue(name))
        lost.send(queue(name), "a", "b")
        assert len(lost.dispatches(2)) == 2
    client.consumer(1, queue(name))
    assert redeliveries(client, 2) == [("a", 1), ("b", 1)]


def test_a_rollback_leaves_acknowledged_messages_with_their_consumer(client, name):
    consumer = client.consumer(1, queue(name), prefetch=2)
    client.send(queue(name), "a", "b", "c")
    first, second = client.dispatches(2)
    connection = ConnectionId(client.connection_id)
    transaction = LocalTransactionId(1, connection)

    def perform(operation: TransactionOperation) -> None:
        client.ask(TransactionInfo(connection_id=connection, transaction_id=transaction, type=operation))

    perform(TransactionOperation.BEGIN)
    client.acknowledge(first, AckType.DELIVERED)
    client.acknowledge(first, transaction_id=transaction)
    perform(TransactionOperation.ROLLBACK)
    assert type(client.acknowledge(second)) is Response
    assert type(client.acknowledge(first)) is Response
    assert client.texts(1) == ["c"]
    client.ask(RemoveInfo(object_id=consumer, last_delivered_sequence_id=-1))
    client.consumer(2, queue(name))
    assert redeliveries(client, 1) == [("c", 0)]


def test_two_copies_of_a_message_in_queues_of_one_pattern_are_acknowledged_apart(client, name):
    client.consumer(1, queue(f"{name}.>"))
    client.ask(client.message(queue(f"{name}.A,{name}.B"), "both"))
    first, second = client.dispatches(2)
    assert first.message.message_id == second.message.message_id
    assert type(client.acknowledge(second)) is Response
    assert type(client.acknowledge(first)) is Response
    client.close()


def test_a_message_that_is_not_held_cannot_be_acknowledged(client, name):
    client.consumer(1, queue(name))
    client.send(queue(name), "a")
    [held] = client.dispatches(1)
    assert type(client.acknowledge(held)) is Response
    answer = client.acknowledge(held)
    assert isinstance(answer, ExceptionResponse)
    assert "is not held by" in answer.exception.message


def test_what_a_client_finds_expired_expires_even_if_its_clock_is_ahead(client, name):
    client.consumer(1, queue(f"OWN.{name}"))
    client.ask(client.message(queue(f"OWN.{name}"), "late", expiration=4_000_000_000_000))
    [late] = client.dispatches(1)
    client.acknowledge(late, AckType.EXPIRED)
    client.consumer(2, queue(f"ActiveMQ.DLQ.Queue.OWN.{name}"))
    assert client.texts(1) == ["late"]


def test_messages_of_a_topic_are_acknowledged_one_by_one(client, name):
    client.consumer(1, topic(name), prefetch=2)
    client.send(topic(name), "a", "b", "c", "d")
    first, second = client.dispatches(2)
    client.acknowledge(second, AckType.INDIVIDUAL)
    client.acknowledge(first, AckType.INDIVIDUAL)
    assert client.texts(2) == ["c", "d"]


def test_a_browser_that_is_closed_midway_leaves_the_queue_as_it_is(node, client, name):
    client.send(queue(name), "a", "b", "c")
    browser = client.consumer(1, queue(name), prefetch=2, browser=True)
    seen = client.dispatches(2)[0].message.message_id.broker_sequence_id
    client.ask(RemoveInfo(object_id=browser, last_delivered_sequence_id=seen))
    client.consumer(2, queue(name))
    assert redeliveries(client, 3) == [("a", 0), ("b", 0), ("c", 0)]
    assert node.depth(name) == 3
