"""Test features of the broker as a whole with four nodes: policies, counters, client ids."""

import json
from dataclasses import replace

import pytest
import stomp

from brokerapp.config import Plugin
from brokerapp.model.definitions import PolicyEntry, RecoveryPolicy, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.store.stats_snapshots import StatisticsStore
from tests.nodes.conftest import SeveralNodes
from tests.waiting import wait_until

FOUR = "abcd"


@pytest.fixture(scope="module")
def broker(redis_url):
    """A broker of four nodes."""
    several = SeveralNodes(redis_url, plugins=(Plugin("statisticsBrokerPlugin"),))
    try:
        several.start(*FOUR)
        yield several
    finally:
        several.end()


@pytest.fixture
def define(broker):
    """Puts definitions in force on all nodes."""

    def put(**changes):
        async def change(admin):
            return await admin.define(replace(await admin.definitions(), **changes), "test")

        version = broker.admin(change).version
        for each in broker.nodes.values():
            each.wait_for_definitions(version)

    return put


def test_consumers_on_four_nodes_share_a_queue_whoever_sends(broker, client, name):
    takers = [client(node) for node in FOUR]
    for taker in takers:
        taker.subscribe(f"/queue/{name}", ack="client-individual")
    for number in range(20):
        takers[number % 4].send(f"/queue/{name}", str(number), persistent="true")
    bodies = [body for taker in takers for body in taker.bodies(5)]
    assert sorted(map(int, bodies)) == list(range(20))


def told(broker, prefix, *fields):
    """What operators are told of the destinations whose names begin so, in the order of these."""
    _, stats, _ = broker.admin(lambda admin: admin.stats())
    found = sorted(
        (each for each in stats if each.destination.name.startswith(prefix)), key=lambda each: each.destination.name
    )
    return [
        tuple(getattr(each, field) for field in fields) if fields[1:] else getattr(each, fields[0]) for each in found
    ]


def test_operators_are_told_of_a_topic_what_happened_at_all_nodes(broker, client, name):
    clients = [client(node) for node in FOUR]
    for each in clients:
        each.subscribe(f"/topic/{name}")
    for each in clients:
        each.send(f"/topic/{name}", "news")
    fields = "EnqueueCount", "DispatchCount", "DequeueCount", "ConsumerCount", "ProducerCount"
    wait_until(lambda: told(broker, name, *fields) == [(4, 16, 16, 4, 4)], "the numbers of all")
    clients[0].leave()
    wait_until(lambda: told(broker, name, *fields) == [(4, 16, 16, 3, 3)], "one is gone")


def test_operators_are_told_of_the_producers_of_a_queue_wherever_they_are(broker, client, name):
    queue = broker.queue_at("a", name)
    for node in FOUR:
        client(node).send(f"/queue/{queue}", "x", persistent="true")
    wait_until(
        lambda: told(broker, queue, "ProducerCount", "EnqueueCount", "QueueSize") == [(4, 4, 4)], "all producers"
    )


def numbers_in(answer):
    """The map in an answer of the statistics plugin."""
    values = (list(each.values()) for each in json.loads(answer.body)["map"]["entry"])
    return dict(each[0] if isinstance(each[0], list) else each[:2] for each in values)


@pytest.mark.parametrize("home", "ab")
def test_priorities_hold_wherever_the_queue_is_at_home(broker, define, client, name, home):
    queue = broker.queue_at(home, name)
    define(policies=(PolicyEntry(Destination.queue(f"{name}.>"), prioritized_messages=True),))
    sender, taker = client("c"), client("b")
    for number in range(10):
        sender.send(f"/queue/{queue}", str(number), persistent="true", priority=str(number))
    taker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    got = []
    for _ in range(10):
        [message] = taker.take()
        got.append(message.body)
        taker.ack(message)
    assert got == list("9876543210")


def test_a_statistics_request_is_answered_once_with_the_numbers_of_all_nodes(broker, client, name, monkeypatch):
    asking, read, stats_of = client("a"), set(), StatisticsStore.read
    monkeypatch.setattr(StatisticsStore, "read", lambda store, names: read.update(names) or stats_of(store, names))
    queues = {node: broker.queue_at(node, f"{name}.{node}") for node in FOUR}
    for queue in queues.values():
        asking.send(f"/queue/{queue}", "x", persistent="true")
    wait_until(lambda: told(broker, f"{name}.", "QueueSize") == [1] * 4, "the nodes have told of them")
    asking.subscribe("/temp-queue/answers")
    asking.send(f"/queue/ActiveMQ.Statistics.Destination.{name}.>", reply_to="/temp-queue/answers")
    found = [numbers_in(message) for message in asking.take(len(queues))]
    assert {each["destinationName"]: each["size"] for each in found} == {
        f"queue://{each}": 1 for each in queues.values()
    }
    assert asking.has_no_more()
    assert read < {f"queue://{each}" for each in queues.values()}  # but for that of the node that answers
    assert len(read) == len(FOUR) - 1


@pytest.mark.parametrize("asks", [True, False])
def test_a_retroactive_consumer_gets_the_past_whichever_node_it_was_sent_at(broker, define, client, name, asks):
    recovery = RecoveryPolicy("fixedCount", 100)
    define(policies=(PolicyEntry(Destination.topic(f"{name}.>"), recovery=recovery, always_retroactive=not asks),))
    for number, node in enumerate(FOUR):
        client(node).send(f"/topic/{name}.x", str(number))
    late = client("d")
    late.subscribe(f"/topic/{name}.x", **({"activemq.retroactive": "true"} if asks else {}))
    assert sorted(late.bodies(4)) == list("0123")
    assert late.has_no_more()


def test_a_node_that_joins_late_knows_the_past_of_topics(broker, define, client, name):
    recovery = RecoveryPolicy("fixedCount", 2)
    define(policies=(PolicyEntry(Destination.topic(f"{name}.>"), recovery=recovery),))
    sender = client("c")
    for number in range(4):
        sender.send(f"/topic/{name}.x", str(number))
    sender.send(f"/topic/{name}-state", "retained", **{"ActiveMQ.Retain": "true"})
    wait_until(lambda: _remembers(broker["d"], f"topic://{name}-state"), "all nodes know of it")
    broker.start("e")
    try:
        late = client("e")
        for topic in (f"{name}.x", f"{name}-state"):
            late.subscribe(f"/topic/{topic}", id=topic, **{"activemq.retroactive": "true"})
        client("b").send(f"/topic/{name}.x", "new")
        assert late.bodies(4) == ["2", "3", "retained", "new"]
    finally:
        broker.stop("e")


def _remembers(node, topic):
    memories = node.node.broker.retained._memories
    return node.look(lambda: Destination.parse(topic) in memories)


@pytest.mark.parametrize("home", "ab")
def test_a_selector_aware_virtual_topic_keeps_what_a_consumer_on_any_node_wants(broker, define, client, name, home):
    define(virtual_destinations=(VirtualTopic(name=f"{name}.>", prefix="Consumer.*.", selector_aware=True),))
    queue = broker.queue_at(home, f"Consumer.c{{}}.{name}.x")
    taker, sender = client("b"), client("c")
    taker.subscribe(f"/queue/{queue}", selector="colour = 'red'", ack="client-individual")
    for colour in ("red", "blue"):
        sender.send(f"/topic/{name}.x", colour, persistent="true", colour=colour)
    assert taker.bodies() == ["red"]
    assert broker.depth(queue) == 1
    taker.unsubscribe()
    sender.send(f"/topic/{name}.x", "red", persistent="true", colour="red")
    assert broker.depth(queue) == 1


def test_a_client_id_is_taken_on_one_node_at_a_time(client, name):
    first = client("a", **{"client-id": name})
    with pytest.raises(stomp.exception.ConnectFailedException):
        client("b", **{"client-id": name})
    first.leave()
    client("b", **{"client-id": name})


def test_who_only_says_that_it_reconnects_does_not_take_the_id_of_somebody_at_another_node(client, name):
    first = client("a", **{"client-id": name})
    with pytest.raises(stomp.exception.ConnectFailedException):
        client("b", **{"client-id": name, "reconnect": "60000"})
    first.send(f"/queue/{name}", "goes on")
