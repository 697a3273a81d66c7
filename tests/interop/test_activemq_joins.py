"""Test ActiveMQs that join a Sluice by their own network connector, over OpenWire."""

from __future__ import annotations

import itertools
import queue as queue_module
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import decode_map, encode_map
from brokerapp.store.server.embedded import EmbeddedStore
from tests.interop.activemq_server import needs_activemq
from tests.interop.joined import JoinedActiveMQ, joined, wait_for_demand
from tests.protocol.clients import StompClient
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, needs_activemq]
_numbers = itertools.count(1)
XML = '<broker brokerName="{name}" schedulerSupport="true"><transportConnectors><transportConnector name="all" uri="tcp://127.0.0.1:0"/>'
XML += "</transportConnectors></broker>"
LISTS = """
  <excludedDestinations><queue physicalName="excluded.&gt;"/></excludedDestinations>
  <staticallyIncludedDestinations><queue physicalName="always"/></staticallyIncludedDestinations>"""


@dataclass
class Pair:
    """A Sluice and the ActiveMQ that joined it."""

    ours: RunningNode
    theirs: JoinedActiveMQ

    def port(self, which: int) -> int:
        """Return where STOMP is spoken: at ours (0) or theirs (1)."""
        return (self.ours.port, self.theirs.port)[which]

    def openwire_port(self, which: int) -> int:
        """Return where OpenWire is spoken."""
        return (self.ours.port, self.theirs.openwire_port)[which]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def one_way(store, tmp_path_factory) -> Iterator[Pair]:
    with (
        node_of(XML.format(name="one-way"), store) as ours,
        joined(tmp_path_factory.mktemp("activemq"), ours, listed=LISTS, syncDurableSubs="true") as theirs,
    ):
        yield Pair(ours, theirs)


@pytest.fixture(scope="module")
def duplex(store, tmp_path_factory) -> Iterator[Pair]:
    options = {"duplex": "true", "syncDurableSubs": "true"}
    with (
        node_of(XML.format(name="duplex"), store) as ours,
        joined(tmp_path_factory.mktemp("activemq"), ours, listed=LISTS, **options) as theirs,
    ):
        yield Pair(ours, theirs)


#: Fixture, where messages are sent, where they are consumed.
ONE_WAY = pytest.param("one_way", 1, 0, id="one way")
BOTH_WAYS = [pytest.param("duplex", 1, 0, id="duplex, to here"), pytest.param("duplex", 0, 1, id="duplex, to there")]
ALL = [ONE_WAY, *BOTH_WAYS]


@pytest.fixture
def pair(request, kind) -> Pair:
    return request.getfixturevalue(kind)


@pytest.fixture
def name(request) -> str:
    return f"{request.node.originalname}.{next(_numbers)}".removeprefix("test_")


@pytest.fixture
def client_at(pair) -> Iterator[Callable[..., StompClient]]:
    """Makes clients of ours (0) or theirs (1)."""
    clients = []

    def connect(which: int, **headers: str) -> StompClient:
        clients.append(StompClient(pair.port(which), **headers))
        return clients[-1]

    yield connect
    for client in clients:
        if client.connection.is_connected():
            client.connection.disconnect()


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_a_message_crosses_with_what_its_sender_said_and_its_id(client_at, name, source, target):
    sender, consumer = client_at(source), client_at(target)
    consumer.subscribe(f"/queue/{name}")
    said = {
        "persistent": "true", "priority": "7", "correlation-id": "c:1", "type": "order", "reply-to": "/queue/answers",
        "expires": "99999999999999", "colour": "a:b", "timestamp": "12345",
    }  # fmt: skip
    sender.send(f"/queue/{name}", "héllo", **said)
    [message] = consumer.take()
    assert message.body == "héllo"
    assert {each: message.headers.get(each) for each in said} == said
    assert message.headers["destination"] == f"/queue/{name}"


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_a_map_with_typed_properties_crosses_as_it_is(pair, name, source, target):
    with OpenWireClient(pair.openwire_port(source)) as sender, OpenWireClient(pair.openwire_port(target)) as consumer:
        consumer.consumer(1, queue(name))
        sender.producer()
        body, properties = encode_map({"a": [1, "two"], "b": True}), encode_map({"n": 5, "f": 1.5, "s": "x"})
        sent = sender.message(
            queue(name), "", content=body, marshalled_properties=properties, data_type=t.MAP_MESSAGE,
            correlation_id="c", group_id="g", group_sequence=3,
        )  # fmt: skip
        sender.ask(sent)
        [got] = consumer.dispatches(1)
        assert (got.message.data_type, decode_map(got.message.content)) == (t.MAP_MESSAGE, decode_map(body))
        assert decode_map(got.message.marshalled_properties) == decode_map(properties)
        assert str(got.message.message_id) == str(sent.message_id)
        assert (got.message.group_id, got.message.group_sequence) == ("g", 3)


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_a_delayed_message_crosses_when_it_is_due_and_is_not_delayed_again(client_at, name, source, target):
    sender, consumer = client_at(source), client_at(target)
    consumer.subscribe(f"/queue/{name}")
    sent = time.monotonic()
    sender.send(f"/queue/{name}", "later", persistent="true", AMQ_SCHEDULED_DELAY="1500")
    [message] = consumer.take()
    assert 1.4 < time.monotonic() - sent < 2.9
    assert "AMQ_SCHEDULED_DELAY" not in message.headers


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_what_waits_crosses_when_somebody_consumes_there_and_what_nobody_wants_stays(
    pair, client_at, name, source, target
):
    queue, sender, consumer, local = f"/queue/{name}", client_at(source), client_at(target), client_at(source)
    sender.send(queue, "waits", persistent="true")
    consumer.subscribe(queue)
    assert consumer.bodies() == ["waits"]
    consumer.unsubscribe()
    wait_for_demand(pair.port(source), queue, 0)
    sender.send(queue, "stays", persistent="true")
    local.subscribe(queue)
    assert local.bodies() == ["stays"]


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_subscribers_of_a_topic_at_both_ends_get_a_message_once(pair, client_at, name, source, target):
    topic, clients = f"/topic/{name}", [client_at(source), client_at(target), client_at(target)]
    for client in clients:
        client.subscribe(topic)
    sender = client_at(source)
    wait_for_demand(pair.port(source), topic, 2)
    sender.send(topic, "news")
    sender.send(topic, "more", persistent="true")
    for client in clients:
        assert client.bodies(2) == ["news", "more"]
        assert client.messages.empty()


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_a_durable_subscriber_gets_what_was_sent_there_while_it_was_away_until_it_unsubscribes(
    pair, client_at, name, source, target
):
    topic, durable = f"/topic/{name}", {"activemq.subscriptionName": name}
    subscriber, sender = client_at(target, **{"client-id": name}), client_at(source)
    subscriber.subscribe(topic, **durable)
    wait_for_demand(pair.port(source), topic)
    subscriber.leave()
    sender.send(topic, "while away", persistent="true")
    again = client_at(target, **{"client-id": name})
    again.subscribe(topic, **durable)
    assert again.bodies() == ["while away"]
    again.unsubscribe()
    again.frame("UNSUBSCRIBE", id="-", **durable)
    wait_for_demand(pair.port(source), topic, 0)


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_the_consumer_queue_of_a_virtual_topic_gets_what_is_sent_at_the_other_broker(
    pair, client_at, name, source, target
):
    consumed, sender, consumer = f"/queue/Consumer.A.VirtualTopic.{name}", client_at(source), client_at(target)
    consumer.subscribe(consumed)
    wait_for_demand(pair.port(source), consumed)
    sender.send(f"/topic/VirtualTopic.{name}", "m", persistent="true")
    assert consumer.bodies() == ["m"]
    assert consumer.has_no_more()


def answered(answering: StompClient, to: str, asking: StompClient) -> bool:
    """Return whether an answer arrives: the broker may not know yet where it goes."""
    answering.connection.send(to, "!")
    try:
        return asking.messages.get(timeout=0.5).body == "!"
    except queue_module.Empty:
        return False


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_an_answer_reaches_the_temporary_queue_of_a_client_there(client_at, name, source, target):
    asking, beside, answering = client_at(target), client_at(target), client_at(source)
    asking.subscribe("/temp-queue/answers", id="answers")
    beside.subscribe(f"/queue/{name}")
    asking.send(f"/queue/{name}", "?", reply_to="/temp-queue/answers")
    answers = beside.take()[0].headers["reply-to"]

    wait_until(lambda: answered(answering, answers, asking), "the answer")


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_what_is_excluded_stays_and_what_is_included_statically_crosses_without_a_consumer(
    pair, client_at, source, target
):
    sender, consumer = client_at(source), client_at(target)
    consumer.subscribe("/queue/excluded.q", id="1")
    sender.send("/queue/excluded.q", "stays", persistent="true")
    if pair is not None and source:  # what is included statically goes back and forth over a duplex one
        sender.send("/queue/always", "crosses", persistent="true")
        wait_until(lambda: pair.ours.bodies("always") == ["crosses"], "what is included statically")
    local = client_at(source)
    local.subscribe("/queue/excluded.q")
    assert local.bodies() == ["stays"]
    assert consumer.has_no_more()


@pytest.mark.parametrize(("kind", "source", "target"), BOTH_WAYS)
def test_who_gets_a_request_of_the_other_broker_answers_it(client_at, name, source, target):
    asking, answering = client_at(source), client_at(target)
    answering.subscribe(f"/queue/{name}")
    asking.subscribe("/temp-queue/answers", id="answers")
    for number in range(3):
        asking.send(f"/queue/{name}", str(number), reply_to="/temp-queue/answers")
        [request] = answering.take()
        wait_until(lambda to=request.headers["reply-to"]: answered(answering, to, asking), "the answer")


@pytest.mark.parametrize(("kind", "source", "target"), BOTH_WAYS)
def test_a_temporary_queue_outlives_its_consumer_here_and_there(client_at, name, source, target):
    asking, answering = client_at(source), client_at(target)
    answering.subscribe(f"/queue/{name}")
    asking.subscribe("/temp-queue/answers", id="1")
    asking.send(f"/queue/{name}", "?", reply_to="/temp-queue/answers")
    to = answering.take()[0].headers["reply-to"]
    wait_until(lambda: answered(answering, to, asking), "the answer")
    asking.unsubscribe("1")
    asking.subscribe("/temp-queue/answers", id="2")
    wait_until(lambda: answered(answering, to, asking), "the answer to its next consumer")


@pytest.mark.parametrize("kind", ["duplex"])
def test_a_message_that_came_over_a_duplex_bridge_does_not_go_back(pair, client_at, name):
    queue, clients = f"/queue/{name}", [client_at(0), client_at(1)]
    for client in clients:
        client.subscribe(queue, ack="client-individual", prefetch=1)
    for which in (0, 1):
        wait_for_demand(pair.port(which), queue, 2)
    sender, got = client_at(0), []
    for number in range(20):
        sender.send(queue, str(number), persistent="true")

    def take_in_turn() -> int:
        for client in clients:
            while not client.messages.empty():
                [message] = client.take()
                got.append(message.body)
                client.ack(message)
        return len(got)

    wait_until(lambda: take_in_turn() == 20, "20 messages")
    assert sorted(got, key=int) == [str(number) for number in range(20)]
    assert all(client.has_no_more() for client in clients)


def test_without_conduit_subscriptions_each_consumer_here_is_one_there(store, tmp_path):
    with (
        node_of(XML.format(name="no-conduit"), store) as ours,
        joined(tmp_path, ours, conduitSubscriptions="false") as theirs,
    ):
        consumers = [StompClient(ours.port) for _ in range(3)]
        sender = StompClient(theirs.port)
        for each, colour in zip(consumers, ("red", "red", "blue"), strict=True):
            each.subscribe("/queue/q", selector=f"colour = '{colour}'")
        wait_for_demand(theirs.port, "/queue/q", 3)
        for number in range(4):
            sender.send("/queue/q", str(number), persistent="true", colour="red")
        assert sorted(consumers[0].bodies(2) + consumers[1].bodies(2)) == ["0", "1", "2", "3"]
        assert all(each.has_no_more() for each in consumers)


@pytest.mark.parametrize(("kind", "source", "target"), ALL)
def test_a_message_with_long_and_many_properties_crosses(pair, name, source, target):
    properties = {"long": "x" * 20_000, **{f"p{number}": number for number in range(2_000)}}
    with OpenWireClient(pair.openwire_port(source)) as sender, OpenWireClient(pair.openwire_port(target)) as consumer:
        consumer.consumer(1, queue(name))
        sender.producer()
        sender.ask(sender.message(queue(name), "m", marshalled_properties=encode_map(properties)))
        [dispatch] = consumer.dispatches(1)
        assert decode_map(dispatch.message.marshalled_properties) == properties
