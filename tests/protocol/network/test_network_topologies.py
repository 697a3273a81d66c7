"""Test chains, meshes and rings of three and four brokers: reach of messages and demand, no duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from brokerapp.model.destination import Destination
from tests.protocol.clients import StompClient
from tests.protocol.networking import (
    bridged,
    bridges_of,
    destinations_of,
    running,
    to,
    wait_for_demand,
    wait_for_no_demand,
)
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


class BrokerNetwork:
    """Brokers by letter, joined as `links` say ("A B" is a connector from A to B); the last letters start first."""

    def __init__(self, stack: ExitStack, store, links: str, **options: str) -> None:
        wanted: dict[str, list[str]] = {}
        for link in links.split(", "):
            source, target = link.split()
            wanted.setdefault(source, []).append(target)
            wanted.setdefault(target, [])
        self.nodes: dict[str, RunningNode] = {}
        for letter in sorted(wanted, reverse=True):
            self.nodes[letter] = stack.enter_context(running(store))
        for source, targets in wanted.items():
            for target in targets:
                connector = to(self.nodes[target].port, name=f"{source}{target}", **options)
                self.nodes[source].ask(lambda admin, each=connector: admin.networks.put_connector(each.to_json()))
        for source, targets in wanted.items():
            count = len(targets)
            wait_until(lambda s=source, n=count: len(bridges_of(self.nodes[s])) == n, f"the bridges of {source}")

    def __getitem__(self, letter: str) -> RunningNode:
        return self.nodes[letter]

    def settled(self, destination: str, **demand: int) -> None:
        """Until the bridges of each broker consume the destination so many times."""
        for letter, count in demand.items():
            wait_until(
                lambda node=self.nodes[letter], n=count: destinations_of(node).count(destination) == n,
                f"{count} times {destination} wanted of {letter}, not {destinations_of(self.nodes[letter])}",
            )


@pytest.fixture
def net(store) -> Iterator:
    with ExitStack() as stack:
        yield lambda links, **options: BrokerNetwork(stack, store, links, **options)


def consumers(net: BrokerNetwork, connect, destination: str, letters: str) -> dict[str, StompClient]:
    found = {letter: connect(port=net[letter].port) for letter in letters}
    for client in found.values():
        client.subscribe(destination)
    return found


def send(net: BrokerNetwork, connect, destination: str, letter: str, count: int) -> None:
    sender = connect(port=net[letter].port)
    for number in range(count):
        sender.send(destination, f"{letter}{number}", persistent="true")


@pytest.mark.scenario("NB-17")
def test_demand_and_messages_go_as_many_bridges_as_their_ttl(net, connect, name):
    chain = net("A B, B C, C D", networkTTL="2")
    queue = f"/queue/{name}"
    clients = consumers(chain, connect, queue, "D")
    chain.settled(f"queue://{name}", C=1, B=1, A=0)
    send(chain, connect, queue, "B", 3)
    assert clients["D"].bodies(3) == ["B0", "B1", "B2"]
    send(chain, connect, queue, "A", 1)
    assert chain["A"].depth(name) == 1


@pytest.mark.parametrize(("ttls", "arrives"), [({"consumerTTL": "2"}, False), ({"messageTTL": "2"}, False)])
def test_two_hops_need_both_ttls(net, connect, name, ttls, arrives):
    chain = net("A B, B C", **ttls)
    clients = consumers(chain, connect, f"/queue/{name}", "C")
    chain.settled(f"queue://{name}", B=1, A=1 if "consumerTTL" in ttls else 0)
    send(chain, connect, f"/queue/{name}", "A", 2)
    send(chain, connect, f"/queue/{name}", "B", 1)
    assert clients["C"].bodies() == ["B0"]
    if "consumerTTL" in ttls:
        wait_until(lambda: chain["B"].depth(name) == 2, "what came from A, and stays at B")
    assert clients["C"].has_no_more()


@pytest.mark.scenario("NB-21")
def test_topics_in_a_chain_cross_one_bridge(net, connect, name):
    chain = net("A B, B C")
    clients = consumers(chain, connect, f"/topic/{name}", "ABC")
    chain.settled(f"topic://{name}", A=1, B=1)
    for letter in "ABC":
        send(chain, connect, f"/topic/{name}", letter, 3)
    for letter, count in (("A", 3), ("B", 6), ("C", 6)):
        clients[letter].take(count)
        assert clients[letter].has_no_more()


@pytest.mark.scenario("NB-17", "NB-21")
def test_in_a_full_mesh_each_message_of_a_queue_comes_once_and_each_of_a_topic_once_to_everybody(net, connect, name):
    mesh = net("A B, B A, A C, C A, B C, C B")
    at_queue = consumers(mesh, connect, f"/queue/{name}", "ABC")
    at_topic = consumers(mesh, connect, f"/topic/{name}", "ABC")
    mesh.settled(f"queue://{name}", A=2, B=2, C=2)
    mesh.settled(f"topic://{name}", A=2, B=2, C=2)
    for letter in "ABC":
        send(mesh, connect, f"/queue/{name}", letter, 9)
        send(mesh, connect, f"/topic/{name}", letter, 3)
    wait_until(lambda: sum(each.messages.qsize() for each in at_queue.values()) == 27, "27 messages")
    bodies = [frame.body for each in at_queue.values() for frame in each.take(each.messages.qsize())]
    assert len(set(bodies)) == 27
    for client in at_topic.values():
        assert len(set(client.bodies(9))) == 9
        assert client.has_no_more()


#: In which demand goes around a ring.
LATER_SECONDS = 0.3
RING = "A B, B A, B C, C B, C A, A C"


@pytest.mark.scenario("NB-46")
def test_in_a_circle_a_topic_comes_once_however_far_demand_goes(net, connect, name):
    ring = net(RING, networkTTL="5")
    clients = consumers(ring, connect, f"/topic/{name}", "ABC")
    for letter in "ABC":
        wait_for_demand(ring[letter], f"topic://{name}", f"topic://{name}")
    send(ring, connect, f"/topic/{name}", "A", 3)
    for letter in "ABC":
        assert sorted(clients[letter].bodies(3)) == ["A0", "A1", "A2"]
    for client in clients.values():
        assert client.has_no_more()


def served(node: RunningNode, name: str, kind: str) -> int:
    """Consumers of bridges that are given messages at a broker."""
    target = Destination.queue(name) if kind == "queue" else Destination.topic(name)

    def count() -> int:
        broker = node.node.broker
        if kind == "queue":
            found = broker.queues.get(str(target))
            return sum(each.bridge_eligibility is not None for each in found.consumers) if found is not None else 0
        return sum(each.bridge_eligibility is not None for each in broker.subscribers.of(target))

    return node.look(count)


def ways_that_serve(node: RunningNode, queue: str) -> list[str]:
    """The brokers to which bridges take messages of a queue, now."""

    def found() -> list[str]:
        known = node.node.broker.queues.get(str(Destination.queue(queue)))
        return (
            [each.bridge_eligibility.to for each in known.consumers if each.bridge_eligibility is not None]
            if known is not None
            else []
        )

    return node.look(found)


def heard_later(node: RunningNode, connector: str) -> None:
    """Let the bridge of a connector hear of consumers only when the other ones of a ring have."""
    [bridge] = [each for each in bridges_of(node) if each.terms.name == connector]

    def slow_down() -> None:
        told = bridge._target.connection.on_message_by_subscription
        for id, hear in told.items():
            told[id] = lambda frame, hear=hear: asyncio.get_running_loop().call_later(LATER_SECONDS, hear, frame)

    node.look(slow_down)


@pytest.mark.scenario("NB-20")
@pytest.mark.parametrize(("suppress", "serving"), [("true", 1), ("false", 2)])
def test_bridges_that_lead_to_one_consumer_by_two_ways_are_one_if_duplicates_are_suppressed(
    net, connect, name, suppress, serving
):
    ring = net(RING, networkTTL="3", suppressDuplicateQueueSubscriptions=suppress)
    [consumer] = consumers(ring, connect, f"/queue/{name}", "A").values()
    ring.settled(f"queue://{name}", B=2, C=2)
    for letter in "BC":
        wait_until(lambda node=ring[letter]: served(node, name, "queue") == serving, f"{serving} bridges of {letter}")
    send(ring, connect, f"/queue/{name}", "B", 5)
    assert sorted(consumer.bodies(5)) == [f"B{number}" for number in range(5)]


@pytest.mark.parametrize("late", ["BA", "CB"])
def test_who_serves_does_not_depend_on_who_hears_of_a_consumer_first(net, connect, name, late):
    ring = net(RING, networkTTL="3", suppressDuplicateQueueSubscriptions="true")
    heard_later(ring[late[0]], late)
    consumers(ring, connect, f"/queue/{name}", "A")
    ring.settled(f"queue://{name}", B=2, C=2)
    for letter in "BC":
        wait_until(
            lambda node=ring[letter]: ways_that_serve(node, name) == [ring["A"].name], f"{letter} to serve at once"
        )


def test_when_the_way_that_serves_breaks_the_other_takes_over(net, connect, name):
    ring = net(RING, networkTTL="3", suppressDuplicateQueueSubscriptions="true")
    [consumer] = consumers(ring, connect, f"/queue/{name}", "A").values()
    ring.settled(f"queue://{name}", B=2, C=2)
    wait_until(lambda: served(ring["B"], name, "queue") == 1, "one way to serve")
    ring["B"].ask(lambda admin: admin.networks.stop("BA"))
    wait_until(lambda: served(ring["B"], name, "queue") == 1, "the other way")
    send(ring, connect, f"/queue/{name}", "B", 3)
    assert sorted(consumer.bodies(3)) == ["B0", "B1", "B2"]


def test_a_bridge_that_comes_later_is_told_of_no_way_that_rests(store, net, connect, name):
    ring = net(RING, networkTTL="3", suppressDuplicateQueueSubscriptions="true")
    [consumer] = consumers(ring, connect, f"/queue/{name}", "A").values()
    ring.settled(f"queue://{name}", B=2, C=2)
    wait_until(lambda: served(ring["B"], name, "queue") == 1, "one way to serve")
    with running(store, to(ring["B"].port, networkTTL="5")) as late:
        wait_for_demand(late, f"queue://{name}")
        assert destinations_of(late) == [f"queue://{name}"]
        consumer.leave()
        wait_for_no_demand(late, f"queue://{name}")


def test_a_way_that_rests_is_taken_again_when_one_more_consumer_is_behind_it(net, connect, name):
    web = net("A B, A D, B C, C D, C E", networkTTL="4")
    near, far = connect(port=web["D"].port), connect(port=web["E"].port)
    topic = f"/topic/{name}"
    near.subscribe(topic)
    web.settled(f"topic://{name}", A=2, B=1, C=1)
    far.subscribe(topic)
    web.settled(f"topic://{name}", C=2)
    wait_until(lambda: served(web["A"], name, "topic") == 2, "both ways to serve")
    send(web, connect, topic, "A", 2)
    for client in (near, far):
        assert client.bodies(2) == ["A0", "A1"]
        assert client.has_no_more()


def test_the_farther_a_consumer_the_later_it_is_served(net, connect, name):
    chain = net("A B, B C", networkTTL="2", decreaseNetworkConsumerPriority="true")
    queue = f"/queue/{name}"
    here, near, far = (connect(port=chain[letter].port) for letter in "ABC")
    far.subscribe(queue)
    chain.settled(f"queue://{name}", A=1, B=1)
    near.subscribe(queue)
    chain.settled(f"queue://{name}", A=2)
    here.subscribe(queue, ack="client-individual", prefetch=2)
    send(chain, connect, queue, "A", 5)
    assert sorted(here.bodies(2)) == ["A0", "A1"]
    assert sorted(near.bodies(3)) == ["A2", "A3", "A4"]
    assert far.has_no_more()


@pytest.mark.scenario("NB-56")
def test_every_broker_on_the_way_keeps_a_topic_for_a_durable_subscriber_until_that_is_deleted(net, connect, name):
    """A chain, of which the middle is also the hub of two more."""
    five = net("A B, B A, B C, C B, B D, D B, C E, E C", networkTTL="4")
    subscriber = connect(port=five["E"].port, **{"client-id": name})
    subscriber.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": name})

    def kept() -> dict[str, int]:
        """For bridges, by broker."""
        return {
            letter: node.look(lambda node=node: sum(bool(each.identity.leads_to) for each in node.node.broker.durables))
            for letter, node in five.nodes.items()
        }

    wait_until(lambda: kept() == {"A": 1, "B": 1, "C": 1, "D": 1, "E": 0}, "one at each of the others")
    subscriber.leave()
    for letter in "ABCDE":
        send(five, connect, f"/topic/{name}", letter, 1)
    back = connect(port=five["E"].port, **{"client-id": name})
    back.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": name})
    assert sorted(back.bodies(5)) == ["A0", "B0", "C0", "D0", "E0"]
    assert back.has_no_more()
    back.unsubscribe()
    back.unsubscribe(id="-", **{"activemq.subscriptionName": name})
    wait_until(lambda: not any(kept().values()), "none")


@pytest.mark.scenario("NB-51")
def test_of_many_brokers_each_that_comes_or_goes_is_counted(store, connect, name):
    with running(store) as hub, ExitStack() as stack:
        others = [stack.enter_context(running(store, to(hub.port, duplex="true"))) for _ in range(7)]

        def seen() -> list[str]:
            return sorted(each.broker for each in hub.ask(lambda admin: admin.networks.stats()).incoming)

        wait_until(lambda: seen() == sorted(each.name for each in others), "all of them")
        subscribers = [connect(port=each.port) for each in (others[0], others[-1])]
        for each in subscribers:
            each.subscribe(f"/topic/{name}")
        for each in others[:3]:
            each.ask(lambda admin: admin.networks.stop("bridge"))
        wait_until(lambda: seen() == sorted(each.name for each in others[3:]), "those that stay")
        connect(port=hub.port).send(f"/topic/{name}", "to who is there")
        assert subscribers[1].bodies() == ["to who is there"]
        for each in others[:3]:
            each.ask(lambda admin: admin.networks.start("bridge"))
        wait_until(lambda: seen() == sorted(each.name for each in others), "all of them again")
        assert subscribers[0].has_no_more()


@pytest.mark.scenario("NB-10")
def test_a_broker_that_leads_to_itself_makes_no_bridge(store):
    with running(store) as node:
        connector = to(node.port).to_json()
        node.ask(lambda admin: admin.networks.put_connector(connector))

        def is_refused() -> bool:
            error = node.ask(lambda admin: admin.networks.stats()).connectors[0].ways[0].last_error
            return error.startswith(f"the broker there has the same name as this one, {node.name!r}: each broker")

        wait_until(is_refused, "the refusal")
        assert not bridged(node)
