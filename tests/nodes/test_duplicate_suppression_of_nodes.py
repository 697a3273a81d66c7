"""Test that of bridges to the same consumers from different nodes one serves."""

import pytest

from tests.nodes.conftest import several_nodes
from tests.waiting import wait_until


def bridge(client, node, to, destination, *path, name, **more):
    """The consumer of a bridge at a node, for a consumer behind these brokers."""
    made = client(node, **{"sluice-broker": to, "client-id": f"{to} {name}"})
    about = {"sluice-to": to, "sluice-consumers": "c", "sluice-suppress": "true", "sluice-path": ",".join(path)}
    made.subscribe(destination, **about, **more)
    return made


def resting(node):
    """How many consumers of bridges at a node stand aside."""
    broker = node.node.broker
    found = [each for client in broker.clients.values() for each in client.subscriptions.values()]
    return node.look(lambda: sum(map(broker.duplicates.is_suppressed, found)))


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_of_two_at_two_nodes_the_shorter_way_serves_until_it_ends(broker, client, name, kind):
    destination, sender = f"/{kind}/{name}", client("b")
    far = bridge(client, "a", "far", destination, "far", "home", name=name)
    sender.send(destination, "0")
    assert far.bodies() == ["0"]
    near = bridge(client, "b", "home", destination, "home", name=name)
    wait_until(lambda: resting(broker["a"]) == 1, "the longer way to rest")
    for number in range(1, 4):
        sender.send(destination, str(number))
    assert near.bodies(3) == ["1", "2", "3"]
    assert far.has_no_more()
    near.leave()
    wait_until(lambda: resting(broker["a"]) == 0, "the longer way to serve again")
    sender.send(destination, "4")
    assert far.bodies() == ["4"]


def test_one_that_dies_with_its_node_is_followed_by_who_rested(redis_url, name):
    with several_nodes(redis_url, "a", "b") as broker:
        clients = []

        def client(node, **options):
            clients.append(broker[node].client(**options))
            return clients[-1]

        near = bridge(client, "b", "home", f"/queue/{name}", "home", name=name)
        far = bridge(client, "a", "far", f"/queue/{name}", "far", "home", name=name)
        assert (resting(broker["a"]), resting(broker["b"])) == (1, 0)
        broker.crash("b")
        wait_until(lambda: resting(broker["a"]) == 0, "the other one to serve")
        client("a").send(f"/queue/{name}", "goes on")
        assert far.bodies() == ["goes on"]
        assert near.messages.empty()
