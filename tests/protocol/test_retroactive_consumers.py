"""Test that retroactive consumers get retained messages."""

from dataclasses import replace

import pytest

from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    ForwardTarget,
    PolicyEntry,
    RecoveryPolicy,
)
from brokerapp.model.destination import Destination
from tests.protocol.clients import PATIENCE

queue, topic = Destination.queue, Destination.topic
RETROACTIVE = {"activemq.retroactive": "true"}


@pytest.fixture
def policies(node):
    """Puts policies in force."""

    def put(*policies, virtual_destinations=(DEFAULT_VIRTUAL_TOPIC,)):
        async def change(admin):
            wanted = replace(
                await admin.definitions(), policies=policies, virtual_destinations=tuple(virtual_destinations)
            )
            return await admin.define(wanted, "test")

        node.wait_for_definitions(node.ask(change).version)

    yield put
    put()


@pytest.fixture
def producer(connect):
    return connect()


def last(destination, kind="fixedCount", maximum=3, always=False):
    return PolicyEntry(topic(destination), recovery=RecoveryPolicy(kind, maximum), always_retroactive=always)


def test_who_asks_gets_what_the_topic_remembers_then_what_comes_and_others_only_that(policies, connect, producer, name):
    policies(last(f"{name}.>"))
    for number in range(5):
        producer.send(f"/topic/{name}.a", str(number))
    producer.send(f"/topic/{name}.b", "b")
    asking, other, pattern = connect(), connect(), connect()
    asking.subscribe(f"/topic/{name}.a", **RETROACTIVE)
    pattern.subscribe(f"/topic/{name}.*", **RETROACTIVE)
    other.subscribe(f"/topic/{name}.a")
    producer.send(f"/topic/{name}.a", "new")
    messages = asking.take(4)
    assert [each.body for each in messages] == ["2", "3", "4", "new"]
    assert {each.headers["destination"] for each in messages} == {f"/topic/{name}.a"}
    assert sorted(pattern.bodies(5)) == ["2", "3", "4", "b", "new"]
    assert other.bodies() == ["new"]
    assert other.has_no_more()


def test_always_retroactive_needs_no_asking_and_a_selector_holds(policies, connect, producer, name):
    policies(last(name, "lastImage", None, always=True))
    producer.send(f"/topic/{name}", "red", colour="red")
    producer.send(f"/topic/{name}", "blue", colour="blue")
    client, choosy = connect(), connect()
    client.subscribe(f"/topic/{name}")
    assert client.bodies() == ["blue"]
    choosy.subscribe(f"/topic/{name}", selector="colour = 'red'")
    assert choosy.has_no_more()


def test_without_a_policy_only_what_is_to_be_retained_is_remembered(connect, producer, name):
    listener, client = connect(), connect()
    listener.subscribe(f"/topic/{name}")
    producer.send(f"/topic/{name}", "kept", **{"ActiveMQ.Retain": "true"})
    producer.send(f"/topic/{name}", "not kept")
    assert not any("ActiveMQ.Retain" in each.headers for each in listener.take(2))
    client.subscribe(f"/topic/{name}", **RETROACTIVE)
    [message] = client.take()
    assert (message.body, message.headers["ActiveMQ.Retained"]) == ("kept", "true")
    assert client.has_no_more()
    producer.send(f"/topic/{name}", "", **{"ActiveMQ.Retain": "true"})
    late = connect()
    late.subscribe(f"/topic/{name}", **RETROACTIVE)
    assert late.has_no_more()


def test_prefetch_and_acks_hold_for_the_past_too(policies, connect, producer, name):
    policies(last(name))
    for body in "abc":
        producer.send(f"/topic/{name}", body)
    client = connect()
    client.subscribe(f"/topic/{name}", ack="client-individual", prefetch=1, **RETROACTIVE)
    for expected in "abc":
        [message] = client.take()
        assert message.body == expected
        assert client.has_no_more()
        client.ack(message)


@pytest.mark.scenario("X20")
def test_a_new_durable_subscription_that_asks_begins_with_the_past_and_has_it_once(policies, connect, producer, name):
    policies(last(name))
    for number in range(4):
        producer.send(f"/topic/{name}", str(number), n=str(number))
    options = {"activemq.subscriptionName": "sub", "selector": "n > 1", **RETROACTIVE}
    client = connect(**{"client-id": name})
    client.subscribe(f"/topic/{name}", ack="client", **options)
    messages = client.take(2)
    assert [each.body for each in messages] == ["2", "3"]
    client.ack(messages[1])
    client.unsubscribe()
    client.subscribe(f"/topic/{name}", **options)
    assert client.has_no_more()


def test_the_first_consumer_of_a_consumer_queue_gets_the_past_of_its_virtual_topic(policies, connect, producer, name):
    policies(last(f"VirtualTopic.{name}", always=True))
    for body in "abcd":
        producer.send(f"/topic/VirtualTopic.{name}", body)
    consumer_queue = f"/queue/Consumer.A.VirtualTopic.{name}"
    first, second = connect(), connect()
    first.subscribe(consumer_queue, ack="client")
    messages = first.take(3)
    assert [each.body for each in messages] == ["b", "c", "d"]
    assert messages[0].headers["destination"] == consumer_queue
    assert messages[0].headers["original-destination"] == f"/topic/VirtualTopic.{name}"
    first.ack(messages[2])
    assert first.errors.empty()
    second.subscribe(consumer_queue)
    assert second.has_no_more()
    first.unsubscribe()
    second.unsubscribe()
    second.subscribe(consumer_queue)
    assert second.bodies(3) == ["b", "c", "d"]


def test_the_first_consumer_of_an_open_composites_queue_may_ask_for_its_past(policies, connect, producer, name):
    composite = CompositeDestination(topic(f"{name}.in"), (ForwardTarget(queue(f"{name}.out")),), forward_only=False)
    policies(last(f"{name}.in"), virtual_destinations=(composite,))
    producer.send(f"/topic/{name}.in", "m")
    client = connect()
    client.subscribe(f"/queue/{name}.out", **RETROACTIVE)
    assert sorted(client.bodies(2)) == ["m", "m"]  # what its topic remembers, and what the queue holds


def test_a_deleted_topic_remembers_nothing(policies, connect, producer, node, name):
    policies(last(name))
    producer.send(f"/topic/{name}", "m")
    producer.connection.disconnect()
    assert producer.disconnected.wait(PATIENCE)
    node.ask(lambda admin: admin.delete(topic(name)))
    client = connect()
    client.subscribe(f"/topic/{name}", **RETROACTIVE)
    assert client.has_no_more()
