"""Two brokers and a bridge: what is consumed at one is sent to the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from brokerapp.config import NetworkConnector, default_config
from brokerapp.definitions import Composite, Definitions, Leg, VirtualTopic
from brokerapp.destination import Destination
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, until

_numbers = itertools.count(1)
QUICK = "?initialReconnectDelay=100&useExponentialBackOff=false"


def start(store, *connectors: NetworkConnector, **config: object) -> RunningNode:
    by_default = default_config(f"net-{next(_numbers)}", 0)
    return RunningNode(replace(by_default, network_connectors=connectors, **config), store.url)


def to(port: int, **options: str) -> NetworkConnector:
    options = {"decreaseNetworkConsumerPriority": "false", **options}
    return NetworkConnector("bridge", f"static:(tcp://127.0.0.1:{port}){QUICK}", options=tuple(options.items()))


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    b = start(store)
    a = start(store, to(b.port, duplex="true"))
    until(lambda: bridged(a), "the bridge")
    yield a, b
    a.stop()
    b.stop()


def bridged(node: RunningNode) -> bool:
    return bool(node.look(lambda: node.node.network.all[0].bridges))


@pytest.fixture
def at(pair, connect) -> Callable[..., StompClient]:
    """Makes clients of A (0) or B (1)."""
    return lambda which: connect(port=pair[which].port)


def wait_for_demand(node: RunningNode, *destinations: str) -> None:
    """Until the bridge from this node to the other, or back, consumes these."""

    def wanted() -> bool:
        known = [str(each) for one in node.node.network.all for bridge in one.bridges for each in bridge.destinations]
        return all(each in known for each in destinations)

    until(lambda: node.look(wanted), f"demand for {destinations}")


def test_a_queue_is_shared_evenly_between_a_consumer_here_and_those_there(pair, at, name):
    queue, here, there, other = f"/queue/{name}", at(0), at(1), at(1)
    for client in (here, there, other):
        client.subscribe(queue)
    wait_for_demand(pair[0], f"queue://{name}")
    sender = at(0)
    for number in range(30):
        sender.send(queue, str(number), persistent="true")
    clients = here, there, other
    until(lambda: sum(each.messages.qsize() for each in clients) == 30, "30 messages")
    assert here.messages.qsize() == 15
    assert abs(there.messages.qsize() - other.messages.qsize()) == 1


@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_a_message_keeps_its_id_headers_and_body_on_its_way(pair, at, name, way):
    queue, sender, consumer = f"/queue/{name}", at(way[0]), at(way[1])
    consumer.subscribe(queue)
    wait_for_demand(pair[0], f"queue://{name}")
    sender.send(queue, "héllo", persistent="true", priority="7", colour="a:b")
    [message] = consumer.take()
    assert message.body == "héllo"
    assert (message.headers["priority"], message.headers["colour"]) == ("7", "a:b")
    assert pair[way[0]].name in message.headers["message-id"]
    assert not [each for each in message.headers if each.startswith("sluice")]


def test_subscribers_of_a_topic_get_a_message_once_each_at_both_ends(pair, at, name):
    topic, clients = f"/topic/{name}", [at(0), at(1), at(1)]
    for client in clients:
        client.subscribe(topic)
    wait_for_demand(pair[0], f"topic://{name}")
    at(0).send(topic, "news")
    for client in clients:
        assert [each.body for each in client.take(1)] == ["news"]
        assert client.messages.empty()


def test_what_waits_when_nobody_consumes_there_stays(pair, at, name):
    queue = f"/queue/{name}"
    at(0).send(queue, "waits", persistent="true")
    consumer = at(1)
    consumer.subscribe(queue)
    assert consumer.bodies() == ["waits"]
    consumer.unsubscribe()
    until(lambda: f"queue://{name}" not in map(str, destinations_of(pair[0])), "the end of the demand")
    at(0).send(queue, "stays", persistent="true")
    until(lambda: pair[0].bodies(name) == ["stays"], "the ack of the one, and the other")


def destinations_of(node: RunningNode) -> list:
    return node.look(lambda: [each for bridge in node.node.network.all[0].bridges for each in bridge.destinations])


def test_a_bridge_is_built_anew_when_the_other_broker_comes_back(store, connect, name):
    b = start(store)
    a = start(store, to(b.port))
    try:
        until(lambda: bridged(a), "the bridge")
        a.look(lambda: a.node.network.all[0].bridges[0]._target.close())
        until(lambda: not bridged(a), "the end of the bridge")
        until(lambda: bridged(a), "a new bridge")
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}")
        connect(port=a.port).send(f"/queue/{name}", "after", persistent="true")
        assert consumer.bodies() == ["after"]
    finally:
        a.stop()
        b.stop()


def test_with_a_ttl_of_one_a_message_crosses_one_bridge_only(store, connect, name):
    c = start(store)
    b = start(store, to(c.port))
    a = start(store, to(b.port))
    try:
        until(lambda: bridged(a) and bridged(b), "the bridges")
        middle, end = connect(port=b.port), connect(port=c.port)
        for client in (middle, end):
            client.subscribe(f"/topic/{name}")
        wait_for_demand(a, f"topic://{name}")
        wait_for_demand(b, f"topic://{name}")
        connect(port=a.port).send(f"/topic/{name}", "from a")
        assert middle.bodies() == ["from a"]
        connect(port=b.port).send(f"/topic/{name}", "from b")
        assert end.bodies() == ["from b"]
    finally:
        for node in (a, b, c):
            node.stop()


@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_who_gets_a_request_of_another_broker_answers_it(pair, at, name, way):
    asking, answering = at(way[0]), at(way[1])
    answering.subscribe(f"/queue/{name}")
    wait_for_demand(pair[0], f"queue://{name}")
    before = len(destinations_of(pair[0]))
    asking.subscribe("/temp-queue/answers")
    until(lambda: len(destinations_of(pair[0])) > before, "demand for the answers")
    asking.send(f"/queue/{name}", "?", **{"reply-to": "/temp-queue/answers"})
    [request] = answering.take()
    assert request.headers["reply-to"].startswith("/remote-temp-queue/")
    answering.send(request.headers["reply-to"], "!")
    assert asking.bodies() == ["!"]
    asking.unsubscribe()
    until(lambda: len(destinations_of(pair[0])) == before, "the end of that demand")
    answering.send(request.headers["reply-to"], "too late", wait=False)
    assert "does not exist" in answering.error().headers["message"]


@pytest.fixture(scope="module")
def to_virtual(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A, and B with virtual destinations, of whose consumers the bridge from A hears."""
    queue, topic = Destination.queue, Destination.topic
    composite = Composite(topic("news"), (Leg(queue("desk")), Leg(topic("wire"))))
    definitions = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>"), composite))
    flags = {"use_virtual_dest_subs": True, "use_virtual_dest_subs_on_creation": True}
    b = start(store, definitions=definitions, **flags)
    included = (topic("news"), topic("VirtualTopic.>"))
    a = start(store, replace(to(b.port, useVirtualDestSubs="true"), dynamically_included=included))
    until(lambda: bridged(a), "the bridge")
    yield a, b
    a.stop()
    b.stop()


def test_who_consumes_a_queue_of_a_virtual_topic_wants_the_topic_of_the_other_broker(to_virtual, connect, name):
    a, b = to_virtual
    clients = [connect(port=b.port) for _ in range(2)]
    for client, system in zip(clients, "XY", strict=True):
        client.subscribe(f"/queue/Consumer.{system}.VirtualTopic.{name}")
    wait_for_demand(a, f"topic://VirtualTopic.{name}")
    connect(port=a.port).send(f"/topic/VirtualTopic.{name}", "once")
    for client in clients:
        assert client.bodies() == ["once"]
        assert client.messages.empty()


def test_a_queue_or_topic_to_which_a_composite_forwards_wants_what_is_sent_to_the_composite(to_virtual, connect):
    a, b = to_virtual
    assert "topic://news" not in map(str, destinations_of(a))
    connect(port=b.port).send("/queue/desk", "so that there is one", persistent="true")
    wait_for_demand(a, "topic://news")
    b.ask(lambda admin: admin.delete(Destination.queue("desk")))
    until(lambda: "topic://news" not in map(str, destinations_of(a)), "the end of the queue's demand")
    consumer = connect(port=b.port)
    consumer.subscribe("/topic/wire")
    wait_for_demand(a, "topic://news")
    b.define()
    until(lambda: "topic://news" not in map(str, destinations_of(a)), "the end of the composite's demand")


def test_what_a_bridge_hands_over_twice_is_kept_once_unless_it_went_back_and_forth(pair, at, connect, name):
    queue, path = f"/queue/{name}", {"sluice-path": "far"}
    bridge = connect(port=pair[1].port, **{"sluice-broker": "far"})
    for headers in (path, path, {"sluice-path": "far,there,far"}, {**path, "message-id": "2"}):
        bridge.send(queue, "m", persistent="true", **{"message-id": "1", **headers})
    assert len(pair[1].bodies(name)) == 3
    durable = connect(port=pair[1].port, **{"client-id": name})
    durable.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": name})
    for each in ("1", "1", "2"):
        bridge.send(f"/topic/{name}", each, persistent="true", **{"message-id": each, **path})
    assert durable.bodies(2) == ["1", "2"]
