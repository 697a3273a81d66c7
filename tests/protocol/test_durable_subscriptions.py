"""Durable subscriptions of topics, as clients see them."""

import pytest

from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, CompositeDestination, ForwardTarget, MirroredQueue
from brokerapp.model.destination import Destination
from tests.protocol.clients import PATIENCE
from tests.waiting import wait_until

queue, topic = Destination.queue, Destination.topic


@pytest.fixture
def durable(connect):
    """Connects as a client-id and consumes its durable subscription; the client."""

    def subscribe(name, client_id=None, subscription="sub", version="1.2", ack="auto", wait=True, **headers):
        client = connect(version, **{"client-id": client_id or name})
        options = {"activemq.subscriptionName": subscription, **headers}
        client.subscribe(name if "/" in name else f"/topic/{name}", ack=ack, wait=wait, **options)
        return client

    return subscribe


def leave(client):
    client.connection.disconnect()
    assert client.disconnected.wait(PATIENCE)


@pytest.fixture
def producer(connect):
    return connect()


def error_of(client):
    return client.error().headers["message"]


@pytest.mark.scenario("DU-01", "S1-15", "S2-06", "S07")
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_durable_subscription_keeps_what_is_sent_while_it_is_offline(durable, producer, name, version):
    leave(durable(name, version=version))
    for body in "ab":
        producer.send(f"/topic/{name}", body, persistent="true")
    back = durable(name, version=version)
    producer.send(f"/topic/{name}", "c", persistent="true")
    messages = back.take(3)
    assert [each.body for each in messages] == ["a", "b", "c"]
    assert {each.headers["destination"] for each in messages} == {f"/topic/{name}"}
    assert not any("redelivered" in each.headers or "original-destination" in each.headers for each in messages)
    leave(back)
    assert durable(name, version=version).has_no_more()


@pytest.mark.scenario("S06")
def test_the_headers_of_artemis_name_a_durable_subscription_too(connect, producer, name):
    for header in ("durable-subscription-name", "durable-subscriber-name"):
        client = connect(**{"client-id": name})
        client.subscribe(f"/topic/{name}", **{header: "sub"})
        producer.send(f"/topic/{name}", header)
        assert client.bodies() == [header]
        leave(client)


@pytest.mark.scenario("S1-14", "ST-23", "S2-06", "DU-02", "S08")
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_unsubscribe_by_id_keeps_it_and_by_name_deletes_it_once_nobody_consumes_it(durable, producer, name, version):
    client = durable(name, version=version)
    client.unsubscribe(id="s", **{"activemq.subscriptionName": "sub"})
    assert "in use" in error_of(client)
    client.unsubscribe(id="s")
    producer.send(f"/topic/{name}", "kept")
    client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "sub"})
    assert client.bodies() == ["kept"]
    client.unsubscribe(id="s")
    producer.send(f"/topic/{name}", "gone")
    client.unsubscribe(id="s", **{"activemq.subscriptionName": "sub"})
    client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "sub"})
    assert client.has_no_more()
    client.unsubscribe(id="s")
    client.unsubscribe(id="s", **{"activemq.subscriptionName": "other"})
    assert "durable subscription 'other'" in error_of(client)


@pytest.mark.scenario("S1-15")
def test_several_of_one_client_resume_one_by_one(durable, producer, name):
    client = durable(name, subscription="one")
    client.subscribe(f"/topic/{name}", id="t", **{"activemq.subscriptionName": "two"})
    leave(client)
    producer.send(f"/topic/{name}", "m")
    client = durable(name, subscription="one")
    assert client.bodies() == ["m"]
    assert client.has_no_more()
    client.subscribe(f"/topic/{name}", id="t", **{"activemq.subscriptionName": "two"})
    assert client.bodies() == ["m"]


def test_it_has_one_consumer_at_a_time(durable, name):
    client = durable(name)
    client.subscribe(f"/topic/{name}", id="other", **{"activemq.subscriptionName": "sub"})
    assert "has a consumer already" in error_of(client)


@pytest.mark.parametrize(
    ("destination", "options", "client_id", "said"),
    [
        ("/topic/{}", {}, None, "needs a client-id"),
        ("/queue/{}", {}, "c", "is one of topics"),
        ("/queue/{},/topic/{}", {}, "c", "is one of topics"),
        ("/topic/{}", {"activemq.subscriptionName": " "}, "c", "name is not empty"),
        ("/topic/{}", {"activemq.subscriptionName": "x" * 1100}, "c", "at most 1024 characters"),
        ("/topic/{}", {"selector": "a >"}, "c", "selector"),
        ("/topic/{}", {"activemq.durable": "false"}, "c", "neither durable nor shared"),
        ("/topic/{}", {"activemq.shared": "true", "activemq.noLocal": "true"}, "c", "cannot leave out"),
    ],
)
@pytest.mark.scenario("ST-24", "S05")
def test_what_cannot_be_durable_is_refused_with_the_reason(connect, name, destination, options, client_id, said):
    client = connect(**({"client-id": name} if client_id else {}))
    client.subscribe(destination.replace("{}", name), **{"activemq.subscriptionName": "sub", **options})
    assert said in error_of(client)
    client.send(f"/topic/{name}", "the connection goes on")


@pytest.mark.scenario("SE-22", "DU-04", "DU-01")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"selector": "colour = 'red'"}, {"selector": "colour = 'blue'"}),
        ({}, {"selector": "colour = 'blue'"}),
        ({"selector": "colour = 'red'"}, {}),
        ({}, {"activemq.noLocal": "true"}),
    ],
)
def test_another_selector_or_no_local_under_the_same_name_starts_anew(durable, producer, node, name, before, after):
    leave(durable(name, **before))
    producer.send(f"/topic/{name}", "old", colour="red")
    client = durable(name, **after)
    producer.send(f"/topic/{name}", "new", colour="blue")
    assert client.bodies() == ["new"]
    assert client.has_no_more()
    wait_until(lambda: len(subscriptions(node, name)) == 1, "the old log is gone")


def test_another_topic_under_the_same_name_starts_anew(durable, producer, name):
    leave(durable(f"/topic/{name}.one", client_id=name))
    producer.send(f"/topic/{name}.one", "old")
    client = durable(f"/topic/{name}.two", client_id=name)
    producer.send(f"/topic/{name}.one", "not any more")
    producer.send(f"/topic/{name}.two", "new")
    assert client.bodies() == ["new"]
    assert client.has_no_more()


@pytest.mark.scenario("DU-01", "SE-22")
def test_only_what_its_selector_takes_is_kept(durable, producer, node, name):
    leave(durable(name, selector="n > 5"))
    for n in range(10):
        producer.send(f"/topic/{name}", str(n), n=str(n))
    wait_until(lambda: [each.numbers.QueueSize for each in subscriptions(node, name)] == [4], "four are kept")
    client = durable(name, selector="n > 5", ack="client-individual", **{"activemq.prefetchSize": "1"})
    for expected in "6789":
        [message] = client.take()
        assert message.body == expected
        client.ack(message)
    assert client.has_no_more()


@pytest.mark.scenario("DU-04")
def test_no_local_leaves_out_what_its_own_client_sends_also_while_it_is_offline(durable, connect, producer, name):
    client = durable(name, **{"activemq.noLocal": "true"})
    client.send(f"/topic/{name}", "mine")
    producer.send(f"/topic/{name}", "a")
    assert client.bodies() == ["a"]
    leave(client)
    again = connect(**{"client-id": name})
    again.send(f"/topic/{name}", "mine too")
    producer.send(f"/topic/{name}", "b")
    leave(again)
    client = durable(name, **{"activemq.noLocal": "true"})
    assert client.bodies() == ["b"]
    assert client.has_no_more()


def test_a_pattern_keeps_each_message_once_and_shows_its_topic(durable, producer, name):
    pattern = f"/topic/{name}.>,/topic/{name}.*.b"
    leave(durable(pattern, client_id=name))
    producer.send(f"/topic/{name}.a.b", "1")
    producer.send(f"/topic/{name}.new", "2")
    client = durable(pattern, client_id=name)
    messages = client.take(2)
    assert [each.headers["destination"] for each in messages] == [f"/topic/{name}.a.b", f"/topic/{name}.new"]
    assert client.has_no_more()


@pytest.mark.scenario("DU-01")
def test_what_was_not_acked_comes_back_in_order_flagged_as_redelivered(durable, producer, name):
    client = durable(name, ack="client-individual")
    for body in "abc":
        producer.send(f"/topic/{name}", body)
    messages = client.take(3)
    client.ack(messages[1])
    leave(client)
    client = durable(name, ack="client")
    messages = client.take(2)
    assert [(each.body, each.headers["redelivered"]) for each in messages] == [("a", "true"), ("c", "true")]
    client.ack(messages[1])
    leave(client)
    assert durable(name).has_no_more()


def test_prefetch_is_100_unless_told_otherwise(durable, producer, name):
    client = durable(name, ack="client-individual")
    for _ in range(150):
        producer.send(f"/topic/{name}", "m", wait=False)
    producer.round_trip()
    client.take(100)
    assert client.has_no_more()


@pytest.mark.scenario("VT-04")
def test_all_that_reaches_the_topic_reaches_it_and_each_consumer_queue_too(durable, connect, producer, node, name):
    try:
        node.define(
            DEFAULT_VIRTUAL_TOPIC,
            CompositeDestination(queue(f"{name}.in"), (ForwardTarget(topic(f"{name}.out"), "n > 5"),)),
            MirroredQueue(prefix="mirror."),
        )
        virtual = durable(f"VirtualTopic.{name}", client_id=f"{name}.v")
        consumer = connect()
        consumer.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}")
        producer.send(f"/topic/VirtualTopic.{name}", "both")
        assert virtual.bodies() == consumer.bodies() == ["both"]
        forwarded = durable(f"{name}.out", client_id=f"{name}.o")
        mirrored = durable(f"mirror.{name}.q", client_id=f"{name}.m")
        producer.send(f"/queue/{name}.in", "no", n="1")
        producer.send(f"/queue/{name}.in", "yes", n="7")
        producer.send(f"/queue/{name}.q", "seen")
        [message] = forwarded.take()
        assert (message.body, message.headers["original-destination"]) == ("yes", f"/queue/{name}.in")
        assert mirrored.bodies() == ["seen"]
        assert forwarded.has_no_more()
    finally:
        node.define(DEFAULT_VIRTUAL_TOPIC)


def test_copies_in_many_subscriptions_share_one_payload_that_goes_with_the_last(durable, producer, node, name):
    before = node.stored_payloads()
    clients = [durable(name, client_id=f"{name}{n}", ack="client-individual") for n in range(3)]
    producer.send(f"/topic/{name}", "shared", persistent="true")
    assert node.stored_payloads() == before + 1
    for client in clients:
        client.ack(client.take()[0])
    assert node.stored_payloads() == before


def test_a_transaction_reaches_it_as_a_whole_or_not_at_all(durable, producer, name):
    leave(durable(name))
    for transaction, end in (("a", "COMMIT"), ("b", "ABORT")):
        producer.frame("BEGIN", transaction=transaction)
        for body in "12":
            producer.send(f"/topic/{name}", transaction + body, transaction=transaction)
        producer.frame(end, transaction=transaction)
    client = durable(name)
    assert client.bodies(2) == ["a1", "a2"]
    assert client.has_no_more()


def test_a_transaction_sent_before_and_committed_after_it_was_deleted_harms_nobody(durable, producer, connect, name):
    leave(durable(name))
    producer.frame("BEGIN", transaction="t")
    producer.send(f"/topic/{name}", "late", transaction="t")
    producer.send(f"/queue/{name}", "kept", transaction="t")
    client = connect(**{"client-id": name})
    client.unsubscribe(id="s", **{"activemq.subscriptionName": "sub"})
    leave(client)
    producer.frame("COMMIT", transaction="t")
    producer.subscribe(f"/queue/{name}")
    assert producer.bodies() == ["kept"]
    assert durable(name).has_no_more()


def test_acks_in_a_transaction_that_outlives_the_subscription_harm_nobody(durable, producer, name):
    client = durable(name, ack="client-individual")
    producer.send(f"/topic/{name}", "m")
    [message] = client.take()
    client.frame("BEGIN", transaction="t")
    client.ack(message, transaction="t")
    client.unsubscribe(id="s")
    client.unsubscribe(id="s", **{"activemq.subscriptionName": "sub"})
    client.send(f"/queue/{name}", "in it", transaction="t")
    client.frame("COMMIT", transaction="t")
    client.subscribe(f"/queue/{name}")
    assert client.bodies() == ["in it"]


def subscriptions(node, name):
    """The named subscriptions of the topics of a test."""
    found = node.ask(lambda admin: admin.subscriptions())
    return [each for each in found if each.subscription.topics[0].name.startswith(name)]
