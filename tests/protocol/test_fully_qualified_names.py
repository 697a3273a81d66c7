"""Test fully qualified queue names, ADDRESS::QUEUE, and where they are allowed."""

import pytest

from brokerapp.config import default_config
from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, named

queue = Destination.queue


def refused(client):
    return client.error().headers["message"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.scenario("F02", "S16")
def test_consumers_of_one_subscription_queue_compete_and_each_queue_gets_its_copy(connect, name, version):
    one, two, other, producer = connect(version), connect(version), connect(version), connect()
    for client in (one, two):
        client.subscribe(f"/queue/{name}::{name}.q1", prefetch=1, ack="client-individual")
    other.subscribe(f"/queue/{name}::{name}.q2")
    for number in range(2):
        producer.send(f"/topic/{name}", str(number))
    assert sorted(one.bodies() + two.bodies()) == ["0", "1"]
    assert other.bodies(2) == ["0", "1"]


def test_a_copy_says_that_it_came_by_the_topic(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}::{name}.q")
    client.send(f"/topic/{name}", "m")
    [message] = client.take()
    assert message.headers["destination"] == f"/queue/{name}.q"
    assert message.headers["original-destination"] == f"/topic/{name}"


@pytest.mark.scenario("F15")
def test_it_collects_while_nobody_consumes_and_is_known_by_its_queue_alone(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}::{name}.q")
    client.unsubscribe()
    client.send(f"/topic/{name}", "kept", persistent="true")
    assert node.bodies(f"{name}.q") == ["kept"]
    client.subscribe(f"/queue/{name}.q", id="by its name", ack="client-individual")
    [message] = client.take()
    client.ack(message)
    client.subscribe(f"::{name}.q", id="without an address")
    client.unsubscribe("by its name")
    client.send(f"/topic/{name}", "again")
    assert client.bodies() == ["again"]


@pytest.mark.scenario("F11", "F20")
def test_what_is_sent_to_one_of_them_reaches_it_alone_and_names_it(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}::{name}.q1")
    client.subscribe(f"/queue/{name}::{name}.q2", id="2", ack="client")
    client.send(f"/queue/{name}::{name}.q1", "only")
    [message] = client.take()
    assert (message.headers["destination"], message.headers["subscription"]) == (f"/queue/{name}::{name}.q1", "s")
    client.send(f"/topic/{name}::{name}.new", "first", persistent="true")
    assert node.bodies(f"{name}.new") == ["first"]
    client.send(f"/topic/{name}", "all", persistent="true")
    assert node.bodies(f"{name}.new") == ["first", "all"]


@pytest.mark.scenario("F10")
def test_a_classic_consumer_queue_is_the_same_queue_and_gets_one_copy(connect, node, name):
    address, own = f"VirtualTopic.{name}", f"Consumer.A.VirtualTopic.{name}"
    client = connect()
    client.subscribe(f"/queue/{own}", prefetch=1, ack="client-individual")
    client.subscribe(f"/queue/{address}::{own}", id="full", prefetch=1, ack="client-individual")
    for body in "ab":
        client.send(f"/topic/{address}", body)
    assert sorted(named(client.take(2))) == ["a", "b"]
    assert node.depth(own) == 2
    client.send(f"/queue/{own}", "direct")  # a virtual topic's consumer queue is a queue like any other
    assert client.errors.empty()


def test_a_queue_that_collected_by_itself_goes_on_as_the_subscription_of_its_topic(connect, node, name):
    client = connect()
    client.send(f"/queue/Consumer.A.{name}", "old", persistent="true")
    client.subscribe(f"/queue/{name}::Consumer.A.{name}", ack="client")
    client.send(f"/topic/{name}", "new")
    assert client.bodies(2) == ["old", "new"]


@pytest.mark.parametrize("text", ["{0}::", "::", "{0}::{0}::{0}"])
@pytest.mark.scenario("F13")
def test_names_without_exactly_one_queue_are_refused(connect, name, text):
    client = connect()
    for command in ("SUBSCRIBE", "SEND"):
        client.frame(command, destination=text.format(name), id="x", wait=False)
        assert "is not a destination" in refused(client)


@pytest.mark.scenario("F13", "F18")
def test_a_queue_of_another_address_and_one_that_is_not_there_are_refused(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}.a::{name}.q")
    client.send(f"/queue/{name}.plain", "m")
    for text, rule in (
        (f"/queue/{name}.b::{name}.q", f"is on the address '{name}.a', not on '{name}.b'"),
        (f"/queue/{name}.a::{name}.plain", "there by itself"),
        (f"::{name}.nowhere", "not found"),
        (f"/queue/{name}.q::{name}.q", "is on the address"),
    ):
        client.frame("SUBSCRIBE", destination=text, id="x", wait=False)
        assert rule in refused(client)
        client.send(text, "", wait=False)
        assert rule in refused(client)
    assert not node.look(lambda: queue(f"{name}.nowhere") in node.node.broker.queues)


@pytest.mark.scenario("F19")
def test_a_subscription_queue_gets_nothing_that_is_sent_to_it_as_a_queue(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}::{name}.q")
    client.send(f"/queue/{name}.q", "lost?", wait=False)
    assert f"subscription of the topic {name}: send to the topic, or to {name}::{name}.q" in refused(client)


@pytest.mark.scenario("F16")
def test_called_a_topic_it_keeps_the_selector_it_was_made_with(connect, node, name):
    client, other = connect(), connect()
    text = f"/topic/{name}::{name}.q"
    client.subscribe(text, selector="x = 1")
    for x in "12":
        client.send(f"/topic/{name}", x, x=x, persistent="true")
    assert client.bodies() == ["1"]
    assert client.has_no_more()
    assert node.depth(f"{name}.q") == 0
    other.frame("SUBSCRIBE", destination=text, id="x", selector="x = 2", wait=False)
    assert "takes only 'x = 1'" in refused(other)
    client.unsubscribe()
    other.subscribe(text)
    client.send(f"/topic/{name}", "2", x="2")
    client.send(f"/topic/{name}", "1", x="1")
    assert other.bodies() == ["1"]


def test_it_works_in_transactions_and_lists(connect, node, name):
    client = connect()
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}::{name}.q,/queue/{name}.plain", "m", transaction="t", persistent="true")
    assert node.depth(f"{name}.q") == 0
    client.frame("COMMIT", transaction="t")
    client.subscribe(f"/queue/{name}::{name}.q,/queue/{name}.plain")
    assert sorted(each.headers["destination"] for each in client.take(2)) == [
        f"/queue/{name}.plain",
        f"/queue/{name}::{name}.q",
    ]


def test_operators_name_queues_so_too(connect, node, name):
    full, wrong = queue(f"{name}::{name}.q"), queue(f"other::{name}.q")
    node.ask(lambda admin: admin.create(full))
    client = connect()
    client.send(f"/topic/{name}", "m", persistent="true")
    assert [each.body for each in node.ask(lambda admin: admin.browse(full)).messages] == [b"m"]
    for ask in (lambda admin: admin.browse(wrong), lambda admin: admin.purge(wrong), lambda admin: admin.delete(wrong)):
        with pytest.raises(DestinationNotFound, match=r"queue://other::.* not found"):
            node.ask(ask)
    assert node.ask(lambda admin: admin.purge(full)) == 1
    node.ask(lambda admin: admin.delete(full))
    client.send(f"/topic/{name}", "m", persistent="true")
    assert not node.look(lambda: queue(f"{name}.q") in node.node.broker.queues)


def test_bindings_survive_a_restart(store):
    config = default_config("bindings-restart", 0)
    first = RunningNode(config, store.url)
    client = StompClient(first.port)
    client.subscribe("/topic/orders::billing", selector="x = 1")
    client.subscribe("/queue/orders.>::archive", id="2")
    client.leave()
    first.stop()
    again = RunningNode(config, store.url)
    try:
        client = StompClient(again.port)
        for x in "12":
            client.send("/topic/orders", x, x=x, persistent="true")
        assert again.bodies("billing") == ["1"]
        assert again.bodies("archive") == ["1", "2"]
    finally:
        again.stop()
