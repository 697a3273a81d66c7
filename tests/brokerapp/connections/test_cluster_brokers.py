"""Which nodes of a broker the clients of a connector are told of, and when."""

from brokerapp.connections.cluster_brokers import ClusterBrokers
from brokerapp.model.transport_connector import OpenWireSettings


def brokers(**settings) -> ClusterBrokers:
    return ClusterBrokers(OpenWireSettings(update_cluster_clients=True, **settings))


def test_clients_are_told_nothing_unless_the_connector_says_so():
    silent = ClusterBrokers(OpenWireSettings())
    silent.update("tcp://a:1", {"b": "tcp://b:1"})
    assert (silent.is_needed, silent.next_list()) == (False, "")


def test_clients_are_told_of_all_nodes_once_these_are_known():
    told = brokers()
    assert told.next_list() == ""
    assert told.update("tcp://a:1", {"b": "tcp://b:1"})
    assert told.next_list() == told.next_list() == "tcp://a:1,tcp://b:1"
    assert not told.update("tcp://a:1", {"b": "tcp://b:1"}), "nothing changed"


def test_a_node_that_goes_is_told_of_where_the_connector_says_so():
    quiet, told = brokers(), brokers(update_cluster_clients_on_remove=True)
    for each in (quiet, told):
        each.update("tcp://a:1", {"b": "tcp://b:1"})
    assert not quiet.update("tcp://a:1", {})
    assert told.update("tcp://a:1", {})
    assert quiet.next_list() == told.next_list() == "tcp://a:1"


def test_clients_that_are_to_spread_are_told_another_node_first_in_turn():
    told = brokers(rebalance_cluster_clients=True)
    told.update("tcp://a:1", {"b": "tcp://b:1"})
    assert [told.next_list() for _ in range(3)] == [
        "tcp://a:1,tcp://b:1", "tcp://b:1,tcp://a:1", "tcp://a:1,tcp://b:1",
    ]  # fmt: skip


def test_a_filter_admits_nodes_by_their_names():
    told = brokers(update_cluster_filter="b.*, c")
    told.update("tcp://a:1", {"b2": "tcp://b:1", "c": "tcp://c:1", "cd": "tcp://cd:1"})
    assert told.next_list() == "tcp://a:1,tcp://b:1,tcp://c:1"
