"""Test how pages show which nodes have applied a version of the routing."""

import pytest
from django.urls import reverse

from brokerapp.model.stats_records import NodeStatus
from console.broker.gateway import gateway
from console.routing.definitions.rollout import Rollout
from tests.console.conftest import point_at
from tests.nodes.conftest import several_nodes


def status(name, version):
    return NodeStatus(name, "b", 0, 0, name=name, definitions=version)


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([status("a", 5), status("b", 5)], "Version 5 is active on all nodes."),
        ([status("a", 5), status("b", 4)], "Version 5 is active on 1 of 2 nodes. Not yet: b (version 4)."),
        ([status("old", None)], "Version 5 is active on 0 of 1 nodes. Not yet: old (version not reported)."),
        ([], "Version 5 is saved. No node is running; nodes apply it when they start."),
    ],
)
def test_a_version_is_said_to_be_active_only_on_nodes_that_report_it(nodes, sentence):
    reach = Rollout.of(5, nodes)
    assert (reach.sentence, reach.is_complete) == (sentence, sentence.endswith("all nodes."))


def test_the_map_names_a_node_that_has_not_applied_the_change(running_broker, settings, tmp_path, admin, monkeypatch):
    monkeypatch.setattr("brokerapp.admin.routing.REFRESH_SECONDS", 0.7)
    with several_nodes(running_broker.redis_url, "a", "b") as broker:
        point_at(settings, broker.redis_url, broker.name, tmp_path)
        version = gateway().definitions().version
        assert f"Version {version} is active on all nodes." in admin.get(reverse("routing")).content.decode()
        resume = broker["b"].stall()
        try:
            gateway().define(gateway().definitions(), "test", "")
            page = admin.get(reverse("routing")).content.decode()
        finally:
            resume()
        assert f"Version {version + 1} is active on 1 of 2 nodes. Not yet: b (version {version})." in page
        told = admin.get("/api/v1/routing").json()["nodes"]
        assert told.keys() == {"a", "b"}
