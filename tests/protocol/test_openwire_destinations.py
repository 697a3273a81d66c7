"""Temporary destinations, producers and deletions of OpenWire clients, and what advisories tell of them."""

from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import (
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    OpenWireDestination,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
    Response,
    SessionId,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import decode_map
from tests.protocol.openwire_client import OpenWireClient, queue, text_of, topic
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

XML = """
<broker brokerName="openwire-destinations">
  <plugins>
    <simpleAuthenticationPlugin anonymousAccessAllowed="true"/>
    <authorizationPlugin><map><authorizationMap><authorizationEntries>
      <authorizationEntry queue="OPEN.>" read="anonymous" write="anonymous" admin="anonymous"/>
      <authorizationEntry queue="ActiveMQ.>" read="anonymous" write="anonymous" admin="anonymous"/>
      <authorizationEntry topic=">" read="anonymous" write="anonymous" admin="anonymous"/>
    </authorizationEntries></authorizationMap></map></authorizationPlugin>
    <statisticsBrokerPlugin/>
  </plugins>
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""
ADDED, REMOVED = 0, 1
GONE = "org.apache.activemq.DestinationDoesNotExistException"


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def name(name) -> str:
    """The name of a destination that everybody may use."""
    return f"OPEN.{name}"


@pytest.fixture
def client(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


@pytest.fixture
def other(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


def change(client: OpenWireClient, destination: OpenWireDestination, operation: int) -> Response:
    connection = ConnectionId(client.connection_id)
    return client.ask(DestinationInfo(connection_id=connection, destination=destination, operation_type=operation))


def temporary(client: OpenWireClient, number: int = 1, kind: int = t.TEMP_QUEUE) -> OpenWireDestination:
    """A temporary destination that a client creates, named as JMS clients name theirs."""
    destination = OpenWireDestination(kind, f"{client.connection_id}:{number}")
    assert type(change(client, destination, ADDED)) is Response
    return destination


def produce(client: OpenWireClient, number: int, destination: OpenWireDestination) -> Response:
    id = ProducerId(client.connection_id, number, 1)
    return client.ask(ProducerInfo(producer_id=id, destination=destination))


def told(client: OpenWireClient, count: int) -> list:
    """What the next advisories are about, and their properties."""
    dispatches = client.dispatches(count)
    return [(each.message.data_structure, decode_map(each.message.marshalled_properties)) for each in dispatches]


@pytest.mark.parametrize("kind", [t.TEMP_QUEUE, t.TEMP_TOPIC])
def test_a_request_is_replied_to_at_a_temporary_destination(client, other, name, kind):
    reply_to = temporary(client, kind=kind)
    client.consumer(1, reply_to)
    other.consumer(1, queue(name))
    assert type(client.ask(client.message(queue(name), "ask", reply_to=reply_to, persistent=False))) is Response
    [request] = other.dispatches(1)
    assert request.message.reply_to == reply_to
    other.send(request.message.reply_to, "answer")
    [answer] = client.dispatches(1)
    assert (text_of(answer), answer.destination) == ("answer", reply_to)


def test_a_stomp_client_replies_to_a_temporary_queue_of_openwire(node, client, connect, name):
    reply_to = temporary(client)
    client.consumer(1, reply_to)
    stomp = connect(port=node.port)
    stomp.subscribe(f"/queue/{name}")
    client.ask(client.message(queue(name), "ask", reply_to=reply_to))
    [request] = stomp.take()
    assert request.headers["reply-to"] == f"/remote-temp-queue/{reply_to.physical_name}"
    stomp.send(request.headers["reply-to"], "answer")
    [answer] = client.dispatches(1)
    assert (answer.message.data_type, answer.message.content) == (t.BYTES_MESSAGE, b"answer")


def test_a_client_of_openwire_replies_to_a_temporary_queue_of_stomp(node, client, connect, name):
    stomp = connect(port=node.port)
    stomp.subscribe("/temp-queue/mine", wait=False)
    stomp.send(f"/queue/{name}", "ask", **{"reply-to": "/temp-queue/mine"})
    client.consumer(1, queue(name))
    [request] = client.dispatches(1)
    assert request.message.reply_to.kind == t.TEMP_QUEUE
    client.send(request.message.reply_to, "answer")
    assert [each.body for each in stomp.take()] == ["answer"]


@pytest.mark.parametrize("kind", [t.TEMP_QUEUE, t.TEMP_TOPIC])
def test_nothing_can_be_sent_to_a_temporary_destination_that_was_deleted(client, other, kind):
    destination = temporary(client, kind=kind)
    other.send(destination, "while it is there")
    assert type(change(client, destination, REMOVED)) is Response
    assert type(change(client, destination, REMOVED)) is Response, "deleted twice"
    for refused in (
        other.ask(other.message(destination, "late")),
        produce(other, 2, destination),
        client.ask(ConsumerInfo(consumer_id=ConsumerId(client.connection_id, 1, 9), destination=destination)),
    ):
        assert type(refused) is ExceptionResponse
        assert refused.exception.class_name == GONE
        assert refused.exception.message == str(destination)


def test_a_temporary_destination_goes_with_its_connection(node, client, other):
    destination = temporary(other)
    other.close()
    wait_until(lambda: type(client.ask(client.message(destination, "late"))) is ExceptionResponse, "a refusal")


def test_a_temporary_destination_belongs_to_one_connection(client, other):
    destination = temporary(client)
    assert "exists already" in change(other, destination, ADDED).exception.message
    assert "belongs to another connection" in change(other, destination, REMOVED).exception.message
    client.send(destination, "still there")


def test_advisories_tell_of_temporary_destinations_with_the_connection_they_belong_to(client, other):
    before = temporary(client)
    listener = topic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")
    other.consumer(1, listener, no_local=True, dispatch_async=True)
    existing = [data for data, _ in told(other, 1)]
    assert [each for each in existing if each.destination == before] == [
        DestinationInfo(connection_id=ConnectionId(client.connection_id), destination=before)
    ]
    later = temporary(client, 2, t.TEMP_TOPIC)
    change(client, later, REMOVED)
    assert [(data.destination, data.operation_type) for data, _ in told(other, 2)] == [(later, ADDED), (later, REMOVED)]


def test_advisories_name_connections_and_consumers_as_their_client_does(node, client, name):
    client.consumer(1, topic(f"ActiveMQ.Advisory.Connection,ActiveMQ.Advisory.Consumer.Queue.{name}"))
    client.dispatches(1)
    with OpenWireClient(node.port) as watched:
        id = watched.consumer(5, queue(name), selector="a = 1", priority=3)
    come, consumes, *gone = told(client, 4)
    assert isinstance(come[0], ConnectionInfo)
    assert (come[0].connection_id, come[0].manageable) == (ConnectionId(watched.connection_id), True)
    assert (consumes[0].consumer_id, consumes[0].selector, consumes[0].priority) == (id, "a = 1", 3)
    assert consumes[1]["consumerCount"] == 1
    assert {each.object_id for each, _ in gone} == {id, ConnectionId(watched.connection_id)}


def test_producers_are_told_of_one_by_one(client, other, name):
    client.consumer(1, topic(f"ActiveMQ.Advisory.Producer.Queue.{name}"))
    for number in (1, 2):
        assert type(produce(other, number, queue(name))) is Response
    other.send(queue(name), "by the first")
    other.ask(RemoveInfo(object_id=ProducerId(other.connection_id, 1, 1)))
    other.ask(RemoveInfo(object_id=SessionId(other.connection_id, 1)))
    events = told(client, 4)
    assert [type(data).__name__ for data, _ in events] == ["ProducerInfo", "ProducerInfo", "RemoveInfo", "RemoveInfo"]
    assert [properties["producerCount"] for _, properties in events] == [1, 2, 1, 0]
    assert events[2][0].object_id == ProducerId(other.connection_id, 1, 1)


def test_a_listener_is_told_of_producers_that_are_open(client, other, name):
    produce(other, 1, queue(name))
    produce(other, 2, queue(name))
    other.send(queue(name), "x")
    client.consumer(1, topic(f"ActiveMQ.Advisory.Producer.Queue.{name}"))
    assert {data.producer_id.value for data, _ in told(client, 2)} == {1, 2}


def test_a_queue_exists_when_a_producer_is_opened_there(node, client, name):
    produce(client, 1, queue(f"{name}.a,{name}.b"))
    assert (node.bodies(f"{name}.a"), node.bodies(f"{name}.b")) == ([], [])


def test_a_producer_where_the_user_may_not_write_is_refused(client):
    refused = produce(client, 1, queue("SECRET.q"))
    assert refused.exception.class_name == "java.lang.SecurityException"
    assert type(produce(client, 1, queue("OPEN.q"))) is Response


def test_a_queue_is_deleted_with_its_messages_unless_it_has_consumers(client, other, name):
    client.send(queue(name), "a", "b")
    consumer = other.consumer(1, queue(name))
    other.dispatches(2)
    assert "has consumers" in change(client, queue(name), REMOVED).exception.message
    other.ask(RemoveInfo(object_id=consumer))
    assert type(change(client, queue(name), REMOVED)) is Response
    assert type(change(client, queue(name), REMOVED)) is Response, "what does not exist"
    client.send(queue(name), "new")
    client.consumer(1, queue(name))
    assert client.texts(1) == ["new"]


def test_destinations_are_created_and_told_of(client, other, name):
    other.consumer(1, topic("ActiveMQ.Advisory.Topic,ActiveMQ.Advisory.Queue"))
    for destination in queue(f"{name}.q"), topic(f"{name}.t"):
        assert type(change(client, destination, ADDED)) is Response
    assert type(change(client, topic(f"{name}.t"), REMOVED)) is Response
    events = [(data.destination, data.operation_type) for data, _ in told(other, 3)]
    assert [each for each in events if each[0].physical_name.startswith(name)] == [
        (queue(f"{name}.q"), ADDED), (topic(f"{name}.t"), ADDED), (topic(f"{name}.t"), REMOVED),
    ]  # fmt: skip


def test_who_may_not_create_a_queue_may_not_delete_it(client):
    assert change(client, queue("SECRET.q"), REMOVED).exception.class_name == "java.lang.SecurityException"


def test_statistics_are_typed_maps(client, name):
    client.send(queue(name), "a", "b")
    reply_to = temporary(client)
    client.consumer(1, reply_to)
    asked = queue(f"ActiveMQ.Statistics.Destination.{name}")
    client.ask(client.message(asked, "", reply_to=reply_to, correlation_id="7", data_type=t.MESSAGE, content=None))
    [answer] = client.dispatches(1)
    values = decode_map(answer.message.content)
    assert (answer.message.data_type, answer.message.correlation_id) == (t.MAP_MESSAGE, "7")
    assert values["destinationName"] == str(queue(name))
    types = {each: type(values[each]).__name__ for each in ("size", "memoryPercentUsage", "averageEnqueueTime")}
    assert types == {"size": "Long", "memoryPercentUsage": "int", "averageEnqueueTime": "float"}
    assert values["size"] == 2


@pytest.mark.parametrize("wanted", ["{},", "{},,{}.b"])
def test_a_list_of_destinations_may_have_elements_without_a_name_which_are_passed_over(client, name, wanted):
    several = queue(wanted.format(name, name))
    client.consumer(1, several)
    client.send(several, "a")
    assert client.texts(1 + wanted.count(".b")) == ["a"] * (1 + wanted.count(".b"))
