"""Test a topic and a queue bound to it, both bridged: consumers of the queue get each message once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from brokerapp.model.destination import Destination
from tests.protocol.clients import StompClient
from tests.protocol.networking import bridged, duplex_pair, running, to, wait_for_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

COUNT = 20
NUMBERS = [str(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    with duplex_pair(store) as both:
        yield both


@pytest.fixture
def client_at(pair, connect) -> Callable[[int], StompClient]:
    """Makes clients of A (0) or B (1)."""
    return lambda which: connect(port=pair[which].port)


def wait_for_consumers(node: RunningNode, queue: str, count: int) -> None:
    wait_until(lambda: node.numbers(Destination.queue(queue)).ConsumerCount == count, f"{count} consumers of {queue}")


def got_by(consumers: list[StompClient], count: int) -> list[str]:
    """The bodies of so many messages, whoever got them; and nobody gets more."""
    wait_until(lambda: sum(each.messages.qsize() for each in consumers) >= count, f"{count} messages")
    bodies = [body for each in consumers for body in each.bodies(each.messages.qsize())]
    assert all(each.has_no_more() for each in consumers)
    return sorted(bodies, key=int)


@pytest.mark.scenario("F26")
@pytest.mark.parametrize("where", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("publisher", [0, 1])
def test_consumers_of_the_queue_and_of_the_topic_get_each_message_once(pair, client_at, name, where, publisher):
    listeners = [client_at(0), client_at(1)]
    for each in listeners:
        each.subscribe(f"/topic/{name}")
    consumers = [client_at(each) for each in where]
    for each in consumers:
        each.subscribe(f"/queue/{name}::{name}.q")
    for which, node in enumerate(pair):
        wait_for_consumers(node, f"{name}.q", len(where) if which in where else 1)
    wait_for_demand(pair[0], f"topic://{name}", f"topic://{name}")
    sender = client_at(publisher)
    for each in NUMBERS:
        sender.send(f"/topic/{name}", each, persistent="true")
    assert got_by(consumers, COUNT) == NUMBERS
    for each in listeners:
        assert sorted(each.bodies(COUNT), key=int) == NUMBERS
    wait_until(lambda: [node.depth(f"{name}.q") for node in pair] == [0, 0], "nothing left")


@pytest.mark.scenario("F26")
def test_what_an_operator_moves_to_the_topic_comes_to_each_of_them_once_too(pair, client_at, name):
    listener, consumer = client_at(1), client_at(1)
    listener.subscribe(f"/topic/{name}")
    consumer.subscribe(f"/queue/{name}::{name}.q")
    wait_for_consumers(pair[0], f"{name}.q", 1)
    wait_for_demand(pair[0], f"topic://{name}")
    client_at(0).send(f"/queue/{name}.failed", "1", persistent="true")
    pair[0].ask(lambda admin: admin.move(Destination.queue(f"{name}.failed"), Destination.topic(name)))
    assert listener.bodies() == ["1"]
    assert got_by([consumer], 1) == ["1"]
    wait_until(lambda: [node.depth(f"{name}.q") for node in pair] == [0, 0], "nothing left")
    assert consumer.has_no_more()


def test_what_a_durable_subscription_kept_while_the_link_was_down_is_not_copied_again(store, connect, name):
    with running(store) as b, running(store, to(b.port)) as a:
        subscriber = connect(port=b.port, **{"client-id": name})
        subscriber.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "s"})
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}::{name}.q")
        wait_for_consumers(a, f"{name}.q", 1)
        wait_for_demand(a, f"topic://{name}")
        a.ask(lambda admin: admin.networks.stop("bridge"))
        sender = connect(port=a.port)
        for each in NUMBERS:
            sender.send(f"/topic/{name}", each, persistent="true")
        wait_until(lambda: a.depth(f"{name}.q") == COUNT, "the queue's copies")
        a.restart()
        a.ask(lambda admin: admin.networks.start("bridge"))
        assert got_by([consumer], COUNT) == NUMBERS
        assert got_by([subscriber], COUNT) == NUMBERS


def test_where_the_queue_does_not_cross_each_broker_has_its_own_copies(store, connect, name):
    excluding = replace(to(0), excluded=(Destination.queue(">"),))
    with running(store) as b, running(store, replace(excluding, uri=to(b.port).uri)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumers = [connect(port=each.port) for each in (a, b)]
        for each in consumers:
            each.subscribe(f"/queue/{name}::{name}.q")
        listener = connect(port=b.port)
        listener.subscribe(f"/topic/{name}")
        wait_for_demand(a, f"topic://{name}")
        sender = connect(port=a.port)
        for each in NUMBERS:
            sender.send(f"/topic/{name}", each, persistent="true")
        for each in (*consumers, listener):
            assert got_by([each], COUNT) == NUMBERS


def test_three_brokers_in_a_circle_bring_its_consumer_one_copy(store, connect, name):
    far = {"networkTTL": "3"}
    with (
        running(store) as c,
        running(store, to(c.port, **far)) as b,
        running(store, to(b.port, **far), to(c.port, name="shorter", **far)) as a,
    ):
        consumer, listener = connect(port=c.port), connect(port=c.port)
        consumer.subscribe(f"/queue/{name}::{name}.q")
        listener.subscribe(f"/topic/{name}")
        wait_for_demand(
            a, *[f"{kind}://{each}" for kind, each in (("topic", name), ("queue", f"{name}::{name}.q"))] * 2
        )
        wait_for_demand(b, f"topic://{name}", f"queue://{name}::{name}.q")
        sender = connect(port=a.port)
        for each in NUMBERS:
            sender.send(f"/topic/{name}", each, persistent="true")
        assert got_by([consumer], COUNT) == NUMBERS
        assert got_by([listener], COUNT) == NUMBERS
