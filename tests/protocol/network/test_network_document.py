"""Test statements of the documentation of networks of brokers that its examples do not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.network.options.definition import NetworkConnector
from tests.protocol.networking import (
    QUICK,
    bridged,
    bridges_of,
    destinations_of,
    running,
    start,
    to,
    wait_for_demand,
)
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

QUEUE, TOPIC = Destination.queue, Destination.topic


@pytest.fixture(scope="module")
def b(store) -> Iterator[RunningNode]:
    """The remote broker of all, with virtual topics and a composite."""
    composite = CompositeDestination(TOPIC("composite"), (ForwardTarget(QUEUE("composite.forward")),))
    definitions = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>"), composite))
    node = start(store, definitions=definitions, use_virtual_dest_subs=True)
    yield node
    node.stop()


def test_messages_go_one_way_only_unless_a_connector_is_duplex(store, b, connect, name):
    with running(store, to(b.port)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        connect(port=a.port).subscribe(f"/queue/{name}.back")
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}")
        connect(port=b.port).send(f"/queue/{name}.back", "stays", persistent="true")
        connect(port=a.port).send(f"/queue/{name}", "crosses", persistent="true")
        assert consumer.bodies() == ["crosses"]
        assert b.bodies(f"{name}.back") == ["stays"]


def test_of_a_list_of_uris_each_has_a_bridge(store, b, connect, name):
    with running(store) as c, running(store, to(b.port, c.port)) as a:
        clients = [connect(port=each.port) for each in (b, c)]
        for client in clients:
            client.subscribe(f"/topic/{name}")
        wait_for_demand(a, f"topic://{name}", f"topic://{name}")
        connect(port=a.port).send(f"/topic/{name}", "news")
        assert [client.bodies() for client in clients] == [["news"], ["news"]]


@pytest.mark.scenario("NB-08")
def test_a_destination_filter_says_which_advisories_are_heard(store, b, connect, name):
    wanted = f"Queue.{name}.q,ActiveMQ.Advisory.Consumer.Topic.{name}.t"
    with running(store, to(b.port, destinationFilter=wanted)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port)
        heard, unheard = (f"/queue/{name}.q", f"/topic/{name}.t"), (f"/queue/{name}.t", f"/topic/{name}.q")
        for each in (*unheard, *heard):
            consumer.subscribe(each, id=each)
        wait_for_demand(a, f"queue://{name}.q", f"topic://{name}.t")
        assert sorted(destinations_of(a)) == [f"queue://{name}.q", f"topic://{name}.t"]


def test_two_connectors_may_have_the_queues_and_the_topics_of_one_broker(store, b, connect, name):
    queues = replace(to(b.port, name="queues_only", conduitSubscriptions="false"), excluded=(TOPIC(">"),))
    topics = replace(to(b.port, name="topics_only"), excluded=(QUEUE(">"),))
    with running(store, queues, topics) as a:
        wait_until(lambda: len(bridges_of(a)) == 2, "the bridges")
        clients = [connect(port=b.port) for _ in range(2)]
        for client in clients:
            for each in (f"/queue/{name}", f"/topic/{name}"):
                client.subscribe(each, id=each)
        wait_for_demand(a, f"queue://{name}", f"queue://{name}", f"topic://{name}")
        sender = connect(port=a.port)
        sender.send(f"/topic/{name}", "news")
        for _ in range(4):
            sender.send(f"/queue/{name}", "work", persistent="true")
        for client in clients:
            assert sorted(client.bodies(3)) == ["news", "work", "work"]
            assert client.has_no_more()


@pytest.mark.parametrize("headers", [{}, {"persistent": "true"}])
@pytest.mark.parametrize(("conduit", "copies"), [("true", 1), ("false", 2)])
def test_without_conduit_each_of_two_subscribers_of_a_topic_there_gets_a_message_twice(
    store, b, connect, name, conduit, copies, headers
):
    with running(store, to(b.port, conduitSubscriptions=conduit)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        clients = [connect(port=b.port) for _ in range(2)]
        for client in clients:
            client.subscribe(f"/topic/{name}")
        wait_for_demand(a, *[f"topic://{name}"] * copies)
        connect(port=a.port).send(f"/topic/{name}", "news", **headers)
        for client in clients:
            assert client.bodies(copies) == ["news"] * copies
            assert client.has_no_more()


@pytest.mark.scenario("VD-10")
@pytest.mark.parametrize("listens", [False, True])
def test_a_consumer_behind_a_composite_is_demand_for_it_only_where_the_connector_asks(store, b, connect, listens):
    connector = replace(to(b.port, useVirtualDestSubs=str(listens).lower()), dynamically_included=(TOPIC("composite"),))
    with running(store, connector) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer, sender = connect(port=b.port), connect(port=a.port)
        consumer.subscribe("/queue/composite.forward")
        if listens:
            wait_for_demand(a, "topic://composite")
        sender.send("/topic/composite", "from a")
        connect(port=b.port).send("/topic/composite", "from b")
        assert sorted(consumer.bodies(2 if listens else 1)) == (["from a", "from b"] if listens else ["from b"])
        assert consumer.has_no_more()
        assert bool(destinations_of(a)) is listens


@pytest.mark.parametrize(
    ("excluded", "copies", "warned"),
    [((), 2, True), ((TOPIC("VirtualTopic.>"),), 1, False), ((QUEUE("Consumer.*.VirtualTopic.>"),), 1, False)],
)
@pytest.mark.scenario("NB-25")
def test_a_virtual_topic_and_its_queues_are_not_both_to_be_bridged(store, b, connect, name, excluded, copies, warned):
    connector = replace(to(b.port, useVirtualDestSubs="true"), excluded=excluded)
    with running(store, connector) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port)
        queue, topic = f"Consumer.X.VirtualTopic.{name}", f"VirtualTopic.{name}"
        consumer.subscribe(f"/queue/{queue}")
        crossing = [each for each in (QUEUE(queue), TOPIC(topic)) if each.kind not in {one.kind for one in excluded}]
        wait_for_demand(a, *map(str, crossing))
        connect(port=a.port).send(f"/topic/{topic}", "news", persistent="true")
        assert consumer.bodies(copies) == ["news"] * copies
        assert consumer.has_no_more()
        [told] = a.ask(lambda admin: admin.networks.stats()).connectors
        assert bool(told.warnings) is warned


def test_where_temporary_destinations_are_not_bridged_nobody_answers_from_elsewhere(store, b, connect, name):
    with running(store, to(b.port, duplex="true", bridgeTempDestinations="false")) as a:
        asking, answering = connect(port=a.port), connect(port=b.port)
        answering.subscribe(f"/queue/{name}")
        wait_for_demand(a, f"queue://{name}")
        asking.subscribe("/temp-queue/answers")
        asking.send(f"/queue/{name}", "?", **{"reply-to": "/temp-queue/answers"})
        [request] = answering.take()
        answering.send(request.headers["reply-to"], "!", wait=False)
        assert "does not exist" in answering.error().headers["message"]


def test_what_needs_no_demand_is_passed_on_before_anybody_consumes_there(store, b, connect, name):
    connector = NetworkConnector(
        "static", f"static:(tcp://127.0.0.1:{b.port}){QUICK}", statically_included=(QUEUE(f"{name}.>"),)
    )
    with running(store, connector) as a:
        wait_until(lambda: bridged(a), "the bridge")
        connect(port=a.port).send(f"/queue/{name}.x", "m", persistent="true")
        wait_until(lambda: b.bodies(f"{name}.x") == ["m"], "what a wildcard includes statically")
