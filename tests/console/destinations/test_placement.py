"""Test how pages show on which node destinations and connections are."""

import pytest

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import NodeStatus
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from console.destinations.placement import MOVING, NodeStatusView, node_of_connection, node_status_view, owner_node
from console.topology.diagram import build_diagram

SETTLED = {"epoch": 4, "logs": 1200, "served": 0, "unreached": [], "settled": True}


def node(name, **homes):
    return NodeStatus(2 * name, "x", 0, 0, name=name, homes={} if name == "main" else {**SETTLED, **homes})


NODES = [node("a"), node("b")]


def test_a_queue_is_at_home_where_the_nodes_themselves_have_it_and_of_one_node_nothing_is_said():
    members = NodeMembers(1, [NodeMember("a", "aa"), NodeMember("b", "bb")], "aa")
    for number in range(20):
        queue = Destination.queue(f"q{number}")
        assert owner_node(NODES, queue) == members.owner_of(str(queue))[0]
    assert owner_node(NODES[:1], queue) == owner_node([], queue) == owner_node(NODES, Destination.topic("t")) == ""


def test_a_connection_is_at_the_node_that_its_id_names():
    assert [node_of_connection(NODES, each) for each in ("aa-1", "bb-12", "gone-1")] == ["a", "b", ""]


@pytest.mark.parametrize(
    ("homes", "sees_all", "standing"),
    [
        ({}, True, NodeStatusView("good", "owns 1,200 queues")),
        ({"logs": 1, "served": 2}, True, NodeStatusView("good", "owns 1 queue, serves 2 consumers of other nodes")),
        ({}, False, NodeStatusView("good", "")),
        ({"settled": False}, True, NodeStatusView("look", MOVING)),
        ({"unreached": ["b", "c"], "settled": False}, False, NodeStatusView("act", "cannot reach b, c")),
    ],
)  # fmt: skip
def test_how_a_node_stands_is_said_in_one_sentence(homes, sees_all, standing):
    assert node_status_view(node("a", **homes), sees_all) == standing
    assert node_status_view(node("main")) == NodeStatusView("good", "")


def test_the_picture_says_it_live_for_each_node_and_is_drawn_anew_when_one_joins():
    before, after = (
        build_diagram("x", NODES[:1], None),
        build_diagram("x", [NODES[0], node("b", unreached=["a"])], None),
    )
    assert after.cells["nbb#level"] == "act"
    assert after.cells["nbb#homes"] == "cannot reach a"
    assert before.shape != after.shape
