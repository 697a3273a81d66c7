"""Temporary destinations of OpenWire clients, and queues that they delete, with the nodes of one broker."""

from collections.abc import Iterator

import pytest

from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.openwire.commands import ConnectionId, DestinationInfo, ExceptionResponse, OpenWireDestination, Response
from brokerapp.openwire.commands import data_types as t
from tests.nodes.conftest import SeveralNodes, several_nodes
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.waiting import wait_until

ADDED, REMOVED = 0, 1
KINDS = pytest.mark.parametrize("kind", [t.TEMP_QUEUE, t.TEMP_TOPIC])


@pytest.fixture(scope="module")
def broker(redis_url) -> Iterator[SeveralNodes]:
    connectors = (TransportConnector("openwire", "auto", "127.0.0.1", 0),)
    with several_nodes(redis_url, "a", "b", connectors=connectors) as several:
        yield several


def change(client: OpenWireClient, destination: OpenWireDestination, operation: int) -> Response:
    connection = ConnectionId(client.connection_id)
    return client.ask(DestinationInfo(connection_id=connection, destination=destination, operation_type=operation))


def temporary(client: OpenWireClient, number: int, kind: int) -> OpenWireDestination:
    destination = OpenWireDestination(kind, f"{client.connection_id}:{number}")
    assert type(change(client, destination, ADDED)) is Response
    return destination


@KINDS
def test_a_reply_comes_from_another_node(broker, kind):
    with OpenWireClient(broker["a"].port) as asks, OpenWireClient(broker["b"].port) as answers:
        for number in range(1, 5):  # nodes own queues by their names: both get some
            reply_to = temporary(asks, number, kind)
            asks.consumer(number, reply_to)
            answers.send(reply_to, f"answer {number}")
            assert asks.texts(1) == [f"answer {number}"]


@KINDS
def test_what_is_deleted_at_one_node_is_gone_at_all(broker, kind):
    with OpenWireClient(broker["a"].port) as owner, OpenWireClient(broker["b"].port) as other:
        destination = temporary(owner, 1, kind)
        other.send(destination, "while it is there")
        assert type(change(owner, destination, REMOVED)) is Response
        wait_until(lambda: _is_refused(other, destination), "the other node refuses messages for it")


@KINDS
def test_what_a_connection_had_is_gone_at_all_nodes_with_it(broker, kind):
    with OpenWireClient(broker["b"].port) as other:
        with OpenWireClient(broker["a"].port) as owner:
            destination = temporary(owner, 1, kind)
            other.send(destination, "while it is there")
        wait_until(lambda: _is_refused(other, destination), "the other node refuses messages for it")


@KINDS
def test_a_connection_that_goes_on_at_another_node_takes_its_destinations_along(broker, kind):
    with OpenWireClient(broker["a"].port, client_id="moves") as before:
        destination = temporary(before, 1, kind)
        with OpenWireClient(broker["b"].port, connection_id=before.connection_id) as after:
            assert type(change(after, destination, ADDED)) is Response
            before.close()
            after.consumer(1, destination)
            with OpenWireClient(broker["a"].port) as other:
                wait_until(lambda: _is_owned(broker, "b", destination), "it is at the other node")
                other.send(destination, "hello")
            assert after.texts(1) == ["hello"]


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_stomp_and_jms_clients_of_two_nodes_reply_to_each_other_and_are_refused_what_ended(broker, name, kind):
    with OpenWireClient(broker["b"].port) as jms:
        stomp = broker["a"].client()
        stomp.subscribe(f"/temp-{kind}/box", id="box")
        jms.consumer(1, queue(name))
        stomp.send(f"/queue/{name}", "?", reply_to=f"/temp-{kind}/box")
        [request] = jms.dispatches(1)
        of_stomp = request.message.reply_to
        jms.send(of_stomp, "for STOMP")
        assert stomp.bodies() == ["for STOMP"]
        of_jms = temporary(jms, 1, t.TEMP_QUEUE if kind == "queue" else t.TEMP_TOPIC)
        jms.consumer(2, of_jms)
        stomp.subscribe(f"/queue/{name}.back", id="back")
        jms.ask(jms.message(queue(f"{name}.back"), "?", reply_to=of_jms))
        [request] = stomp.take()
        stomp.send(request.headers["reply-to"], "for JMS", content_length="")
        assert jms.dispatches(1)[0].message.content == b"for JMS"
        stomp.leave()
        wait_until(lambda: _is_refused(jms, of_stomp), "the other node refuses messages for it")


def test_a_queue_of_any_node_can_be_deleted(broker):
    with OpenWireClient(broker["a"].port) as client:
        for node in "a", "b":
            where = queue(broker.queue_at(node, "deleted"))
            client.send(where, "x")
            assert type(change(client, where, REMOVED)) is Response
            client.consumer({"a": 1, "b": 2}[node], where)
            assert client.texts(0) == []


def _is_refused(client: OpenWireClient, destination: OpenWireDestination) -> bool:
    return type(client.ask(client.message(destination, "late"))) is ExceptionResponse


def _is_owned(broker: SeveralNodes, node: str, destination: OpenWireDestination) -> bool:
    temporaries = broker[node].node.broker.temporaries
    return broker[node].look(lambda: destination.physical_name in [each.name for each, _ in temporaries.at_home()])
