"""Test that one node of a broker runs its network connectors, and another one after it."""

import pytest

from brokerapp.model.network_stats import BridgeConnectionState
from brokerapp.nodes.links.members import NETWORK, NodeMember, NodeMembers
from brokerapp.nodes.membership.request_owner import other_node_for
from tests.nodes.conftest import OneNode, several_nodes
from tests.protocol.networking import to
from tests.waiting import wait_until

MEMBERS = [NodeMember(name, f"session-{name}") for name in "abc"]


def test_all_members_agree_who_has_the_network_connectors_and_hand_requests_there():
    views = {each.name: NodeMembers(1, MEMBERS, each.session) for each in MEMBERS}
    [keeper] = {each.leader_of(NETWORK) for each in views.values()}
    for name, view in views.items():
        other = other_node_for(view, "network_put", {"definition": {}})
        assert other == (None if view.session == keeper else keeper.removeprefix("session-")), name


@pytest.fixture
def broker(redis_url):
    """A broker of two nodes, which may be crashed."""
    with several_nodes(redis_url, "a", "b") as several:
        yield several


@pytest.fixture
def other(redis_url):
    """Another broker."""
    with several_nodes(redis_url, "only") as several:
        yield several["only"]


def connectors_at(node: OneNode) -> dict[str, bool]:
    """Which it has, and whether they are to have bridges."""
    return node.look(lambda: {each.definition.name: each.is_running for each in node.node.network})


def is_connected(node: OneNode, name: str) -> bool:
    return node.look(lambda: [each.state for each in node.node.network.find(name).connections]) == [
        BridgeConnectionState.CONNECTED
    ]


def test_one_node_has_the_connectors_whichever_was_asked_and_another_when_it_dies(broker, other):
    for name in ("bridge", "rests"):
        definition = to(other.port, name=name).to_json(secrets=True)
        broker.admin(lambda admin, definition=definition: admin.networks.put_connector(definition))
    broker.admin(lambda admin: admin.networks.stop("rests"))
    [here] = [node for node in "ab" if connectors_at(broker[node])]
    there = {"a": "b", "b": "a"}[here]
    assert connectors_at(broker[here]) == {"bridge": True, "rests": False}
    wait_until(lambda: is_connected(broker[here], "bridge"), "the bridge")

    broker.crash(here)
    wait_until(lambda: connectors_at(broker[there]) == {"bridge": True, "rests": False}, "the other has them")
    wait_until(lambda: is_connected(broker[there], "bridge"), "the bridge of the other")
    broker.admin(lambda admin: admin.networks.remove_connector("rests"))
    broker.admin(lambda admin: admin.networks.start("bridge"))
    assert connectors_at(broker[there]) == {"bridge": True}

    broker.start(here)
    wait_until(lambda: connectors_at(broker[here]) == {"bridge": True}, "they are where they were")
    wait_until(lambda: not connectors_at(broker[there]), "and only there")
    wait_until(lambda: is_connected(broker[here], "bridge"), "the bridge again")
