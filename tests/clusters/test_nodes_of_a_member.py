"""Test that a broker of a cluster has one node: a second one is refused at its start."""

from dataclasses import replace

import pytest

from brokerapp.cluster.settings import ClusterMember, ClusterSettings
from brokerapp.config import default_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.network.options.address import BrokerAddress
from brokerapp.nodes.membership.compatibility import CLUSTERED, check_compatibility
from brokerapp.runtime.bootstrap import node_config
from brokerapp.runtime.node import Node
from brokerapp.store.server.embedded import EmbeddedStore
from tests.protocol.running_node import RunningNode

TERMS = ClusterSettings(
    (ClusterMember("W", BrokerAddress("127.0.0.1", 1)), ClusterMember("X", BrokerAddress("127.0.0.1", 2)))
)


@pytest.mark.parametrize(
    ("is_named", "clustered", "others"),
    [(False, True, {}), (True, False, {}), (True, False, {"b": {"link": "b:1"}, "c": {CLUSTERED: False}})],
)
def test_one_node_of_a_cluster_and_several_of_a_broker_that_is_in_none_may_be(is_named, clustered, others):
    check_compatibility("a", is_named, clustered, others)


@pytest.mark.parametrize(
    ("is_named", "clustered", "others", "why"),
    [
        (True, True, {}, "--node a: a broker of a cluster .* is one node"),
        (False, True, {"b": {}, "c": {}}, "other nodes of this one are running: b, c"),
        (True, False, {"n1": {CLUSTERED: True}}, "node a cannot join node n1"),
    ],
)
def test_several_of_a_broker_that_is_in_one_may_not_be(is_named, clustered, others, why):
    with pytest.raises(ConfigurationRefused, match=why):
        check_compatibility("a", is_named, clustered, others)


def test_a_node_that_is_told_of_no_cluster_does_not_join_one_whose_broker_is_in_one(tmp_path):
    with EmbeddedStore(tmp_path) as store:
        running = RunningNode(replace(default_config("X", 0), cluster=TERMS), store.url)
        try:

            async def join() -> None:
                wanted = node_config(default_config("X", 0), store.url)
                await Node(replace(wanted, node="second")).start()

            with pytest.raises(ConfigurationRefused, match="node second cannot join node"):
                running.do(join)
            assert running.look(lambda: running.node.broker.placement.peers.other_sessions) == []
        finally:
            running.stop()
