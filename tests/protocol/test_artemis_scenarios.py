"""Test Artemis' STOMP behavior that no other module covers: windows, ids, missing and temporary destinations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

NONE_OF_CLIENTS = tuple(
    PolicyEntry(pattern(">"), auto_create=False) for pattern in (Destination.queue, Destination.topic)
)


@pytest.mark.scenario("S12")
@pytest.mark.parametrize("settle", ["ack", "nack"])
def test_a_window_of_no_bytes_gives_one_message_at_a_time(connect, name, settle):
    client = connect()
    for body in "abc":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client-individual", **{"consumer-window-size": "0"})
    for body in "abc":
        [message] = client.take()
        assert message.body == body
        assert client.has_no_more()
        getattr(client, settle)(message)
    client.subscribe(f"/queue/{name}", id="odd", wait=False, **{"consumer-window-size": "wide"})
    assert "consumer-window-size:wide is not a whole number" in client.error().headers["message"]


@pytest.mark.scenario("S10")
def test_who_subscribes_again_under_an_id_leaves_what_it_subscribed_to_first(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}.first", id="s")
    client.subscribe(f"/topic/{name}.second", id="s")
    for each in ("first", "second"):
        client.send(f"/topic/{name}.{each}", each)
    assert client.bodies() == ["second"]
    assert client.has_no_more()


@pytest.mark.scenario("S11")
def test_a_selector_that_is_none_is_refused_and_an_empty_one_is_as_if_there_were_none(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}", selector="a b c", wait=False)
    assert "selector" in client.error().headers["message"]
    client.subscribe(f"/queue/{name}", selector="")
    client.send(f"/queue/{name}", "all")
    assert client.bodies() == ["all"]


@pytest.fixture(scope="module")
def strict(store) -> Iterator[RunningNode]:
    """A node whose clients bring nothing into being by naming it."""
    config = replace(default_config("artemis-strict", 0), definitions=Definitions(policies=NONE_OF_CLIENTS))
    node = RunningNode(config, store.url)
    yield node
    node.stop()


@pytest.mark.scenario("S02", "T03", "T11", "T13")
def test_where_clients_create_nothing_only_what_is_there_and_temporary_ones_are_to_be_had(strict, connect, name):
    strict.ask(lambda admin: admin.create(Destination.queue(name)))
    owner, client = connect(port=strict.port), connect(port=strict.port)
    client.send(name, "of the other kind", wait=False, **{"destination-type": "MULTICAST"})
    assert name in client.error().headers["message"]
    owner.subscribe("/temp-queue/mine")
    owner.send(f"/queue/{name}", "", reply_to="/temp-queue/mine")
    client.subscribe(f"/queue/{name}")
    reply_to = client.take()[0].headers["reply-to"]
    client.send(reply_to, "arrives")
    assert owner.bodies() == ["arrives"]
    owner.leave()
    client.send(reply_to, "too late", wait=False)
    assert "does not exist" in client.error().headers["message"]
    assert strict.look(lambda: Destination.parse(reply_to) not in strict.node.broker.temporaries)


@pytest.mark.scenario("S20")
def test_a_durable_subscription_comes_into_being_where_clients_create_no_queues(strict, connect, name):
    topic = f"/topic/{name}"
    strict.ask(lambda admin: admin.create(Destination.topic(name)))
    subscriber = connect(port=strict.port, **{"client-id": name})
    subscriber.subscribe(topic, **{"activemq.subscriptionName": "s"})
    subscriber.leave()
    connect(port=strict.port).send(topic, "kept", persistent="true")
    again = connect(port=strict.port, **{"client-id": name})
    again.subscribe(topic, **{"activemq.subscriptionName": "s"})
    assert again.bodies() == ["kept"]


@pytest.mark.scenario("T12")
@pytest.mark.parametrize("options", [{}, {"activemq.shared": "true"}], ids=["durable", "shared"])
def test_a_temporary_topic_has_no_lasting_subscriptions(connect, name, options):
    client = connect(**{"client-id": f"{name}{len(options)}"})
    client.subscribe("/temp-topic/t", wait=False, **{"activemq.subscriptionName": "s"}, **options)
    assert "is one of topics, not of temp-topic" in client.error().headers["message"]


@pytest.mark.scenario("T16")
def test_requests_go_to_who_selects_them_and_those_nobody_selects_stay(connect, node, name):
    consumers = {}
    for kind in "AB":
        consumers[kind] = connect()
        consumers[kind].subscribe(f"/queue/{name}", selector=f"kind = '{kind}'")
    sender = connect()
    for kind in "ABC":
        sender.send(f"/queue/{name}", kind, persistent="true", kind=kind)
    assert [consumers[kind].bodies() for kind in "AB"] == [["A"], ["B"]]
    wait_until(lambda: node.bodies(name) == ["C"], "what nobody selects")


@pytest.mark.scenario("S19")
def test_an_untyped_send_to_an_address_reaches_its_anycast_queues_and_a_typed_one_its_subscriptions(connect, name):
    client = connect()
    for queue, kind in (("a1", "ANYCAST"), ("a2", "ANYCAST"), ("m1", "MULTICAST"), ("m2", "MULTICAST")):
        client.subscribe(f"{name}::{name}.{queue}", id=queue, **{"subscription-type": kind})
    client.send(name, "untyped")
    client.send(name, "typed", **{"destination-type": "MULTICAST"})
    got = sorted((message.body, message.headers["subscription"][0]) for message in client.take(3))
    assert got == [("typed", "m"), ("typed", "m"), ("untyped", "a")]
    assert client.has_no_more()
