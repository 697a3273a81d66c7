"""Clients that err or mean harm: OpenWire clients are told so, and nobody else is worse off."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import (
    ConnectionError,
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    LocalTransactionId,
    MessageAck,
    MessageDispatch,
    MessagePull,
    OpenWireDestination,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
    Response,
    TransactionInfo,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.session.transactions import TransactionOperation
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.protocol.clients import StompClient
from tests.protocol.openwire_client import OpenWireClient, OpenWireSocket, queue, text_of
from tests.protocol.running_node import RunningNode, node_of

XML = """
<broker brokerName="openwire-bad-clients"{}>
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>{}
</broker>"""
USERS = """
  <plugins><simpleAuthenticationPlugin><users>
    <authenticationUser username="a" password="a" groups="g"/>
    <authenticationUser username="b" password="b" groups="g"/>
  </users></simpleAuthenticationPlugin></plugins>"""
CREATE = 0


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML.format("", ""), store) as running:
        yield running


@pytest.fixture
def client(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


def errors(caplog) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]


def local(client: OpenWireClient, number: int) -> LocalTransactionId:
    return LocalTransactionId(number, ConnectionId(client.connection_id))


def transact(client: OpenWireClient, number: int, operation: str) -> Response:
    return client.ask(
        TransactionInfo(
            connection_id=ConnectionId(client.connection_id), transaction_id=local(client, number),
            type=TransactionOperation[operation],
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        {"JMSXGroupSeq": "--5"}, {"JMSXGroupSeq": "99999999999"}, {"sluice-jms": "text a=l", "a": "9" * 30},
        {"sluice-jms": "text a=c", "a": "99"}, {"sluice-jms": "text a=o", "a": "00000000"},
    ],
    ids=str,
)  # fmt: skip
def test_a_message_whose_headers_do_not_fit_openwire_reaches_its_consumer(node, client, name, caplog, headers):
    stomp = StompClient(node.port)
    stomp.connection.send(f"/queue/{name}", "bad", headers={"amq-msg-type": "text", **headers})
    client.consumer(1, queue(name))
    assert client.texts(1) == ["bad"]
    assert errors(caplog) == []


def test_a_producer_names_its_connection(client, name, caplog):
    producer = ProducerId("", 1, 1)
    assert isinstance(client.ask(ProducerInfo(producer_id=producer, window_size=1000)), ExceptionResponse)
    client.tell(client.message(queue(name), "x", producer_id=producer))
    client.send(queue(name), "y")
    assert errors(caplog) == []


def test_a_consumer_names_its_connection(client, name):
    info = ConsumerInfo(consumer_id=ConsumerId(None, 1, 1), destination=queue(name), prefetch_size=1)
    assert isinstance(client.ask(info), ExceptionResponse)


def test_what_is_no_command_ends_the_connection_with_a_sentence(client, caplog):
    client.write(ConsumerId("a", 1, 1))
    assert "ConsumerId is not a command" in client.next(ConnectionError).exception.message
    assert errors(caplog) == []


def test_what_follows_the_end_of_a_connection_is_not_done(node, client, name):
    client.send(queue(name), "a")
    client.ask(RemoveInfo(object_id=ConnectionId(client.connection_id)))
    late = ConsumerId(client.connection_id, 1, 9)
    client.tell(ConsumerInfo(consumer_id=late, destination=queue(name), prefetch_size=10))
    assert client.is_closed()
    with OpenWireClient(node.port) as other:
        other.consumer(1, queue(name))
        assert other.texts(1) == ["a"]


def test_a_transaction_too_many_is_refused_however_often_it_is_begun(client):
    assert {type(transact(client, number, "BEGIN")) for number in range(100)} == {Response}
    for _ in range(2):
        assert isinstance(transact(client, 100, "BEGIN"), ExceptionResponse)


def test_what_a_refused_commit_acknowledged_is_acknowledged_again(client, name):
    client.send(queue(name), "a")
    client.consumer(1, queue(name))
    [given] = client.dispatches(1)
    transact(client, 1, "BEGIN")
    assert type(client.acknowledge(given, transaction_id=local(client, 1))) is Response
    client.ask(client.message(queue("x" * 2000), "x", transaction_id=local(client, 1)))
    assert isinstance(transact(client, 1, "COMMIT_ONE_PHASE"), ExceptionResponse)
    assert type(client.acknowledge(given)) is Response


def test_an_acknowledgement_from_a_later_to_an_earlier_message_is_refused(client, name, caplog):
    client.send(queue(name), "a", "b")
    client.consumer(1, queue(name))
    first, last = (each.message.message_id for each in client.dispatches(2))
    consumer = ConsumerId(client.connection_id, 1, 1)
    answer = client.ask(MessageAck(consumer_id=consumer, ack_type=2, first_message_id=last, last_message_id=first))
    assert "is behind its last" in answer.exception.message
    assert errors(caplog) == []


def test_a_pull_waits_as_long_as_it_says_whatever_one_before_it_said(client, name):
    consumer = client.consumer(1, queue(name), prefetch=0)
    client.tell(MessagePull(consumer_id=consumer, destination=queue(name), timeout=600))
    client.send(queue(name), "a")
    assert text_of(client.next(MessageDispatch)) == "a"
    client.tell(MessagePull(consumer_id=consumer, destination=queue(name), timeout=60_000))
    assert client.next(MessageDispatch, seconds=1.2) is None


def test_nobody_takes_over_the_temporary_destination_of_another_user(store):
    with (
        node_of(XML.format("", USERS), store) as node,
        OpenWireSocket(node.port) as owner,
        OpenWireSocket(node.port) as thief,
    ):
        answers = []
        for each, user in ((owner, "a"), (thief, "b")):
            each.agree(WireFormatOptions())
            id = ConnectionId("ID:same-1:1")
            assert type(each.connect(connection_id=id, user_name=user, password=user, client_id=user)) is Response
            temporary = OpenWireDestination(t.TEMP_QUEUE, "ID:same-1:1:1")
            answers.append(each.ask(DestinationInfo(destination=temporary, operation_type=CREATE)))
        assert list(map(type, answers)) == [Response, ExceptionResponse]
