"""Test draining and rebalancing nodes on the topology page and over the REST API, with two nodes."""

import pytest
from django.urls import reverse

from brokerapp.model.destination import Destination
from console.audit.models import AuditEntry
from console.broker.mirror import mirror
from console.destinations.placement import owner_node
from tests.console.conftest import close_console, point_at
from tests.nodes.conftest import several_nodes
from tests.waiting import wait_until


@pytest.fixture
def two_nodes(store_url, settings, tmp_path):
    """A broker of two nodes, to which the console belongs."""
    with several_nodes(store_url, "a", "b") as several:
        point_at(settings, store_url, several.name, tmp_path)
        wait_until(lambda: len(mirror().current().nodes) == 2, "the console sees both nodes")
        yield several
        close_console()


def page_after(client, name, *arguments):
    """The page that a change leads to."""
    return client.post(reverse(name, args=arguments), follow=True).content.decode()


def test_a_node_is_drained_serves_again_and_queues_are_rebalanced_with_audit_entries(two_nodes, admin):
    page = admin.get(reverse("topology")).content.decode()
    assert page.count("Drain node…") == 2
    assert "Rebalance queues" in page

    page = page_after(admin, "drain-node", "a", "drain")
    assert "Node a drained: " in page
    assert "Drained</span>" in page
    assert "End drain" in page
    refused = page_after(admin, "drain-node", "b", "drain")
    assert "Node b cannot be drained: it is the only node that serves clients; start another one first." in refused
    assert "Node a serves clients again." in page_after(admin, "drain-node", "a", "end-drain")
    assert "Queues rebalanced. Queues of each node: a " in page_after(admin, "rebalance-nodes")
    found = AuditEntry.objects.order_by("pk").values_list("action", "object", "outcome")
    assert [each for each in found if "node" in each[0]] == [
        ("drain node", "a", "done"),
        ("drain node", "b", "refused"),
        ("end drain of node", "a", "done"),
        ("rebalance nodes", "", "done"),
    ]


def test_pages_name_the_owner_of_a_queue_after_a_rebalance_and_while_a_node_is_drained(two_nodes, admin):
    queues = [two_nodes.queue_at("a", f"owned.{number}") for number in range(4)]

    def owners():
        nodes = mirror().current().nodes
        return sorted(owner_node(nodes, Destination.queue(each)) for each in queues)

    for each in queues:
        two_nodes.admin(lambda admin, each=each: admin.create(Destination.queue(each)))
    assert owners() == ["a", "a", "a", "a"]
    admin.post(reverse("rebalance-nodes"))
    wait_until(lambda: owners() == ["a", "a", "b", "b"], "the console sees who owns queues")
    admin.post(reverse("drain-node", args=["b", "drain"]))
    wait_until(lambda: owners() == ["a", "a", "a", "a"], "the console sees who owns queues")


def test_the_api_drains_a_node_and_rebalances(two_nodes, admin):
    def call(method, path, sent=None):
        answer = getattr(admin, method)(f"/api/v1/nodes{path}", sent, content_type="application/json")
        return answer.status_code, answer.json()

    status, done = call("put", "/a/draining", {"draining": True})
    assert (status, done["node"], done["draining"]) == (200, "a", True)
    nodes = {each["name"]: each["homes"] for each in admin.get("/api/v1/nodes").json()}
    assert (nodes["a"]["draining"], nodes["a"]["logs"]) == ("drained", 0)
    status, problem = call("put", "/b/draining", {"draining": True})
    assert (status, "only node" in problem["detail"]) == (409, True)
    status, problem = call("put", "/c/draining", {"draining": True})
    assert "node c is not running; running nodes: a, b" in problem["detail"]
    assert call("put", "/a/draining", {"draining": False})[0] == 200
    status, owned = call("post", "/rebalance")
    assert (status, set(owned)) == (200, {"a", "b"})


def test_a_broker_of_one_node_offers_no_drain(console, admin):
    page = admin.get(reverse("topology")).content.decode()
    assert "Drain node" not in page
    assert "Rebalance" not in page
