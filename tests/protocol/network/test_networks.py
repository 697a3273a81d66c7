"""Test two brokers and a bridge: messages are forwarded to the broker with the consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from brokerapp.model.broker_path import format_path
from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.settings import TimestampSettings
from brokerapp.network.options.definition import NetworkConnector
from tests.protocol.clients import StompClient
from tests.protocol.networking import (
    QUICK,
    bridged,
    bridges_of,
    destinations_of,
    duplex_pair,
    running,
    start,
    to,
    wait_for_demand,
    wait_for_no_demand,
)
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    with duplex_pair(store) as both:
        yield both


@pytest.fixture
def client_at(pair, connect) -> Callable[..., StompClient]:
    """Makes clients of A (0) or B (1)."""
    return lambda which: connect(port=pair[which].port)


@pytest.mark.scenario("NB-33")
def test_a_queue_is_shared_evenly_between_a_consumer_here_and_those_there(pair, client_at, name):
    queue, here, there, other = f"/queue/{name}", client_at(0), client_at(1), client_at(1)
    for client in (here, there, other):
        client.subscribe(queue)
    wait_for_demand(pair[0], f"queue://{name}")
    sender = client_at(0)
    for number in range(30):
        sender.send(queue, str(number), persistent="true")
    clients = here, there, other
    wait_until(lambda: sum(each.messages.qsize() for each in clients) == 30, "30 messages")
    assert here.messages.qsize() == 15
    assert abs(there.messages.qsize() - other.messages.qsize()) == 1


@pytest.mark.scenario("NB-02")
@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_a_message_keeps_its_id_headers_and_body_on_its_way(pair, client_at, name, way):
    queue, sender, consumer = f"/queue/{name}", client_at(way[0]), client_at(way[1])
    consumer.subscribe(queue)
    wait_for_demand(pair[0], f"queue://{name}")
    sender.send(queue, "héllo", persistent="true", priority="7", colour="a:b")
    [message] = consumer.take()
    assert message.body == "héllo"
    assert (message.headers["priority"], message.headers["colour"]) == ("7", "a:b")
    assert pair[way[0]].name in message.headers["message-id"]
    assert not [each for each in message.headers if each.startswith("sluice")]


@pytest.mark.scenario("NB-13")
def test_subscribers_of_a_topic_get_a_message_once_each_at_both_ends(pair, client_at, name):
    topic, clients = f"/topic/{name}", [client_at(0), client_at(1), client_at(1)]
    for client in clients:
        client.subscribe(topic)
    wait_for_demand(pair[0], f"topic://{name}")
    client_at(0).send(topic, "news")
    for client in clients:
        assert [each.body for each in client.take(1)] == ["news"]
        assert client.messages.empty()


@pytest.mark.scenario("NB-01", "NB-34")
def test_what_waits_when_nobody_consumes_there_stays(pair, client_at, name):
    queue = f"/queue/{name}"
    client_at(0).send(queue, "waits", persistent="true")
    consumer = client_at(1)
    consumer.subscribe(queue)
    assert consumer.bodies() == ["waits"]
    consumer.unsubscribe()
    wait_for_no_demand(pair[0], f"queue://{name}")
    client_at(0).send(queue, "stays", persistent="true")
    wait_until(lambda: pair[0].bodies(name) == ["stays"], "the ack of the one, and the other")


@pytest.mark.scenario("NB-64")
def test_a_bridge_is_built_anew_when_the_other_broker_comes_back(store, connect, name):
    b = start(store)
    a = start(store, to(b.port))
    try:
        wait_until(lambda: bridged(a), "the bridge")
        a.look(lambda: a.node.network.connections[0].bridges[0]._target.close())
        wait_until(lambda: not bridged(a), "the end of the bridge")
        wait_until(lambda: bridged(a), "a new bridge")
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
        wait_until(lambda: bridged(a) and bridged(b), "the bridges")
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


@pytest.mark.scenario("NB-16")
def test_compressed_on_its_way_a_body_arrives_as_it_was(store, connect, name):
    with running(store) as b, running(store, to(b.port, useCompression="true")) as a:
        consumer, sender = connect(port=b.port), connect(port=a.port)
        consumer.subscribe(f"/queue/{name}")
        wait_for_demand(a, f"queue://{name}")
        sent = []

        def overhear() -> None:
            outbox = a.node.network.connections[0].bridges[0]._outbox
            send, outbox.send = outbox.send, lambda message: (sent.append(message), send(message))

        a.look(overhear)
        sender.send(f"/queue/{name}", "héllo " * 1000, persistent="true")
        [message] = consumer.take()
        assert message.body == "héllo " * 1000
        assert "sluice-encoding" not in message.headers
        assert len(sent[0].outgoing.body) < 1000


@pytest.mark.scenario("T10", "NB-11")
@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_who_gets_a_request_of_another_broker_answers_it(pair, client_at, name, way):
    asking, answering = client_at(way[0]), client_at(way[1])
    answering.subscribe(f"/queue/{name}")
    wait_for_demand(pair[0], f"queue://{name}")
    before = len(destinations_of(pair[0]))
    asking.subscribe("/temp-queue/answers")
    wait_until(lambda: len(destinations_of(pair[0])) > before, "demand for the answers")
    asking.send(f"/queue/{name}", "?", **{"reply-to": "/temp-queue/answers"})
    [request] = answering.take()
    assert request.headers["reply-to"].startswith("/remote-temp-queue/")
    answering.send(request.headers["reply-to"], "!")
    assert asking.bodies() == ["!"]
    asking.unsubscribe()
    wait_until(lambda: len(destinations_of(pair[0])) == before, "the end of that demand")
    answering.send(request.headers["reply-to"], "too late", wait=False)
    assert "does not exist" in answering.error().headers["message"]


@pytest.fixture(scope="module")
def to_virtual(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A, and B with virtual destinations, of whose consumers the bridge from A hears."""
    queue, topic = Destination.queue, Destination.topic
    composite = CompositeDestination(topic("news"), (ForwardTarget(queue("desk")), ForwardTarget(topic("wire"))))
    definitions = Definitions(virtual_destinations=(VirtualTopic("VirtualTopic.>"), composite))
    flags = {"use_virtual_dest_subs": True, "use_virtual_dest_subs_on_creation": True}
    b = start(store, definitions=definitions, **flags)
    included = (topic("news"), topic("VirtualTopic.>"))
    a = start(store, replace(to(b.port, useVirtualDestSubs="true"), dynamically_included=included))
    wait_until(lambda: bridged(a), "the bridge")
    yield a, b
    a.stop()
    b.stop()


@pytest.mark.scenario("VD-02")
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


@pytest.mark.scenario("VD-03", "VD-13", "VD-14")
def test_a_queue_or_topic_to_which_a_composite_forwards_wants_what_is_sent_to_the_composite(to_virtual, connect):
    a, b = to_virtual
    assert "topic://news" not in destinations_of(a)
    connect(port=b.port).send("/queue/desk", "so that there is one", persistent="true")
    wait_for_demand(a, "topic://news")
    b.ask(lambda admin: admin.delete(Destination.queue("desk")))
    wait_for_no_demand(a, "topic://news")
    consumer = connect(port=b.port)
    consumer.subscribe("/topic/wire")
    wait_for_demand(a, "topic://news")
    b.define()
    wait_for_no_demand(a, "topic://news")


@pytest.mark.scenario("NB-38")
def test_what_a_bridge_hands_over_twice_is_kept_once_unless_it_went_back_and_forth(pair, client_at, connect, name):
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


@pytest.mark.scenario("NB-63")
def test_two_connectors_share_the_work_and_a_slave_is_found_without_its_master(store, connect, name):
    queue, topic = Destination.queue(f"{name}.q"), Destination.topic(f"{name}.t")
    b = start(store)
    pair_of = f"masterslave:(tcp://127.0.0.1:1,tcp://127.0.0.1:{b.port}){QUICK}"
    queues = NetworkConnector("queues", pair_of, dynamically_included=(queue,))
    topics = replace(to(b.port), name="topics", dynamically_included=(topic,))
    a = start(store, queues, topics)
    try:
        consumer = connect(port=b.port)
        consumer.subscribe(queue.stomp, id="q")
        consumer.subscribe(topic.stomp, id="t")
        wait_for_demand(a, str(queue), str(topic))
        known = a.look(lambda: [list(map(str, one.bridges[0].destinations)) for one in a.node.network.connections])
        assert known == [[str(queue)], [str(topic)]]
        sender = connect(port=a.port)
        sender.send(queue.stomp, "to the queue", persistent="true")
        sender.send(topic.stomp, "to the topic")
        assert sorted(consumer.bodies(2)) == ["to the queue", "to the topic"]
        assert consumer.has_no_more()
    finally:
        a.stop()
        b.stop()


def test_where_the_brokers_clock_counts_what_a_bridge_hands_over_keeps_its_times(store, connect, name):
    node = start(store, time_stamping=TimestampSettings(ttl_ceiling=1))
    try:
        bridge = connect(port=node.port, **{"sluice-broker": "far"})
        bridge.subscribe(f"/queue/{name}")
        times = {"timestamp": "1000", "expires": "99999999999999"}
        bridge.send(f"/queue/{name}", **{"message-id": "1", "sluice-path": "far", "persistent": "true", **times})
        [message] = bridge.take()
        assert {each: message.headers[each] for each in times} == times
    finally:
        node.stop()


def test_a_client_cannot_pose_as_a_bridge_that_serves_the_consumers_of_another(pair, client_at, name):
    queue, consumer, poser = f"/queue/{name}", client_at(1), client_at(0)
    consumer.subscribe(queue)
    wait_for_demand(pair[0], f"queue://{name}")
    [wanted] = [
        each
        for bridge in bridges_of(pair[0])
        for each in pair[0].look(lambda bridge=bridge: list(bridge.demand.subscriptions.values()))
        if each.destination == Destination.queue(name)
    ]
    said = {"sluice-to": "far", "sluice-consumers": format_path(wanted.origins), "sluice-suppress": "true"}
    claims = {"activemq." + header: value for header, value in said.items()} | said
    poser.subscribe(queue, id="q", selector="none = 1", **claims, **{"activemq.priority": "127"})
    with_claims = pair[0].look(
        lambda: [each.bridge_eligibility for client in pair[0].node.broker.clients.values() for each in
                 client.subscriptions.values() if each.id == "q"]
    )  # fmt: skip
    assert with_claims == [None]
    client_at(0).send(queue, "crosses", persistent="true")
    assert consumer.bodies() == ["crosses"]


def test_a_client_cannot_let_a_temporary_destination_exist_that_nobody_made(pair, client_at):
    client = client_at(0)
    made_up = {"activemq.sluice-to": "far", "sluice-to": "far"}
    client.subscribe("/remote-temp-queue/ID:far-1:1", id="t", wait=False, **made_up)
    assert "does not exist" in client.error().headers["message"]


def test_what_need_not_be_kept_and_a_bridge_wants_confirmed_is_given_once_though_it_comes_twice(
    pair, client_at, connect, name
):
    consumer, bridge = client_at(1), connect(port=pair[1].port, **{"sluice-broker": f"far-{name}"})
    consumer.subscribe(f"/queue/{name}")
    for _ in range(2):
        bridge.send(f"/queue/{name}", "m", **{"message-id": "1", "sluice-path": "far"})
    assert consumer.bodies() == ["m"]
    assert consumer.has_no_more()
