"""Test when a node is ready, and that its page gives the reason when it is not."""

import json
from dataclasses import replace

import pytest

from brokerapp.monitoring.health_pages import STARTING, NodeHealth, NodeState, page_of

READY = NodeState(listens=True, store_answers=True, is_settled=True)


def readyz(state):
    """The status of the answer, and the checks that did not pass."""
    page = page_of("GET", "/readyz", NodeHealth(state))
    found = json.loads(page.body)
    assert found.pop("ready") is (page.status == 200)
    return page.status, {name: said for name, said in found.items() if said != "ok"}


def test_a_node_that_listens_writes_and_delivers_is_ready():
    assert readyz(READY) == (200, {})


@pytest.mark.parametrize(
    ("changed", "check", "reason"),
    [
        ({"failure": "stopped: node a is a member no more"}, "node", "stopped: node a is a member no more"),
        ({"is_draining": True}, "node", "draining"),
        ({"listens": False}, "listeners", "the node does not listen for clients"),
        ({"store_answers": False}, "store", "the store takes no writes of this node"),
        ({"disk_shortage": "the disk is full: 1 MiB free"}, "store", "the disk is full: 1 MiB free"),
        ({"is_settled": False}, "queues", "the node does not deliver from all queues that it owns yet"),
    ],
)
def test_a_node_is_not_ready_for_one_reason_which_its_page_gives(changed, check, reason):
    assert readyz(replace(READY, **changed)) == (503, {check: reason})


def test_a_node_that_starts_is_alive_not_ready_and_has_no_figures_yet():
    assert page_of("GET", "/healthz", STARTING).status == 200
    assert readyz(STARTING.state)[0] == 503
    assert page_of("GET", "/metrics", STARTING).status == 503
