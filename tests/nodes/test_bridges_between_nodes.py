"""Test a bridge between brokers of two nodes each: demand at either node counts, also when one fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokerapp.model.network_stats import BridgeConnectionState
from tests.nodes.conftest import OneNode, SeveralNodes, several_nodes
from tests.protocol.clients import StompClient
from tests.protocol.networking import to
from tests.waiting import wait_until

COUNT = 10


@pytest.fixture
def near(redis_url) -> Iterator[SeveralNodes]:
    """The broker with the connector."""
    with several_nodes(redis_url, "a", "b") as several:
        yield several


@pytest.fixture
def far(redis_url) -> Iterator[SeveralNodes]:
    """The one that it leads to."""
    with several_nodes(redis_url, "a", "b") as several:
        yield several


def bridge(near: SeveralNodes, far: SeveralNodes, agent: str, **options: str) -> None:
    """Have a connector from the one to both nodes of the other."""
    connector = to(far["a"].port, far["b"].port, agent=agent, **options)
    near.admin(lambda admin: admin.networks.put_connector(connector.to_json(secrets=True)))
    wait_until(lambda: connected(keeper(near)) == 1, "the bridge")


def keeper(broker: SeveralNodes) -> OneNode | None:
    """The node that has the connector."""
    found = [node for node in broker.nodes.values() if node.look(lambda node=node: bool(list(node.node.network)))]
    return found[0] if len(found) == 1 else None


def name_of(broker: SeveralNodes, node: OneNode) -> str:
    return next(name for name, each in broker.nodes.items() if each is node)


def connected(node: OneNode | None) -> int:
    """How many of its ways are."""
    return (
        0
        if node is None
        else node.look(lambda: [w.state for w in node.node.network.connections].count(BridgeConnectionState.CONNECTED))
    )


def serving(near: SeveralNodes, far: SeveralNodes) -> str | None:
    """The node that the bridge leads to."""
    here = keeper(near)
    ports = here.look(lambda: [each.connected_to.port for each in here.node.network.connections if each.connected_to])
    return next((name for name, node in far.nodes.items() if [node.port] == ports), None)


def forwarded(node: OneNode) -> int:
    """How many messages its bridges passed on."""
    return node.look(
        lambda: sum(one.counters.forwarded for way in node.node.network.connections for one in way.bridges)
    )


def consumed(node: OneNode) -> list[str]:
    """What its bridges consume."""
    return node.look(
        lambda: [str(each) for way in node.node.network.connections for one in way.bridges for each in one.destinations]
    )


def wait_for_demand(broker: SeveralNodes, *destinations: str) -> None:
    wait_until(
        lambda: (here := keeper(broker)) is not None and set(destinations) <= set(consumed(here)), f"{destinations}"
    )


def send(broker: SeveralNodes, destination: str, bodies: list[str]) -> None:
    """At each node, until they are kept there."""
    for name, node in broker.nodes.items():
        client = node.client()
        for each in bodies:
            client.send(destination, f"{each} {name}", persistent="true")
        client.leave()


def durable(node: OneNode, topic: str) -> StompClient:
    client = node.client(**{"client-id": topic})
    client.subscribe(f"/topic/{topic}", **{"activemq.subscriptionName": topic})
    return client


def got(client: StompClient, count: int) -> list[str]:
    """So many bodies, and that nothing more comes."""
    bodies = sorted(client.bodies(count))
    assert client.has_no_more()
    return bodies


def numbered(count: int, *nodes: str) -> list[str]:
    return sorted(f"{number} {node}" for number in range(count) for node in nodes)


NUMBERS = [str(number) for number in range(COUNT)]


def test_demand_at_either_node_is_served_and_what_is_kept_outlives_the_nodes_at_both_ends(near, far, name):
    bridge(near, far, "masterslave")
    queues = {each: f"{name}.{each}" for each in "ab"}
    consumers = {each: far[each].client() for each in "ab"}
    for each, client in consumers.items():
        client.subscribe(f"/queue/{queues[each]}")
    subscriber = durable(far["b"], name)
    wait_for_demand(near, f"topic://{name}", *[f"queue://{each}" for each in queues.values()])
    for each in queues.values():
        send(near, f"/queue/{each}", NUMBERS)
    send(near, f"/topic/{name}", NUMBERS)
    for client in (*consumers.values(), subscriber):
        assert got(client, 2 * COUNT) == numbered(COUNT, "a", "b")

    # the node with the connector dies; what is published before the other one has it is kept
    first = name_of(near, keeper(near))
    [other] = {"a", "b"} - {first}
    near.crash(first)
    send(near, f"/topic/{name}", NUMBERS)
    send(near, f"/queue/{queues['b']}", NUMBERS)
    wait_until(lambda: connected(keeper(near)) == 1, "the bridge of the other node")
    for client in (subscriber, consumers["b"]):
        assert got(client, COUNT) == numbered(COUNT, other)

    # the node that it leads to dies; its durable subscriber comes back at the other one
    subscriber.leave()
    far.crash("a")
    send(near, f"/topic/{name}", NUMBERS)
    wait_until(
        lambda: connected(keeper(near)) == 1 and name in str(consumed(keeper(near))), "the bridge to the other node"
    )
    assert got(durable(far["b"], name), COUNT) == numbered(COUNT, other)


@pytest.mark.parametrize("publisher", ["near", "far"])
def test_of_two_ways_to_one_broker_one_serves_and_the_other_when_that_breaks(near, far, name, publisher):
    bridge(near, far, "static", duplex="true")
    source, target = (near, far) if publisher == "near" else (far, near)
    listeners = [each.client() for each in target.nodes.values()]
    for each in listeners:
        each.subscribe(f"/topic/{name}")
    subscriber = durable(target["b"], f"{name}.kept")
    consumer = target["b"].client()
    consumer.subscribe(f"/queue/{name}")
    wait_for_demand(near, f"topic://{name}", f"topic://{name}.kept", f"queue://{name}")
    for each in (f"/topic/{name}", f"/topic/{name}.kept", f"/queue/{name}"):
        send(source, each, NUMBERS)
    for client in (*listeners, subscriber, consumer):
        assert got(client, 2 * COUNT) == numbered(COUNT, "a", "b")
    assert connected(keeper(near)) == 1

    gone = serving(near, far)
    [left] = {"a", "b"} - {gone}
    far.crash(gone)
    wait_until(lambda: connected(keeper(near)) == 1 and serving(near, far) == left, "the bridge of the other way")
    consumer = target[left if target is far else "a"].client()
    consumer.subscribe(f"/queue/{name}.after")
    wait_for_demand(near, f"queue://{name}.after")
    send(source, f"/queue/{name}.after", NUMBERS)
    assert got(consumer, COUNT * len(source.nodes)) == numbered(COUNT, *source.nodes)


def test_what_comes_by_two_bridges_to_two_nodes_is_heard_once_at_each(redis_url, far, name):
    both = {"suppressDuplicateTopicSubscriptions": "false"}
    with several_nodes(redis_url, "only") as source:
        for each, node in far.nodes.items():
            connector = to(node.port, name=each, **both).to_json(secrets=True)
            source.admin(lambda admin, connector=connector: admin.networks.put_connector(connector))
        listeners = [far[each].client() for each in "ab"]
        for each in listeners:
            each.subscribe(f"/topic/{name}")
        wait_until(lambda: consumed(source["only"]).count(f"topic://{name}") == 2, "the demand at both bridges")
        send(source, f"/topic/{name}", NUMBERS)
        wait_until(lambda: forwarded(source["only"]) == 2 * COUNT, "the messages by both")
        for client in listeners:
            assert got(client, COUNT) == numbered(COUNT, "only")
