"""OpenWire clients are told of the nodes that serve their broker, as these come and go."""

from __future__ import annotations

from brokerapp.config import TransportConnector
from brokerapp.openwire.commands import ConnectionControl, ConsumerId, ConsumerInfo, Response
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.nodes.conftest import several_nodes
from tests.protocol.openwire_client import OpenWireClient, OpenWireSocket, topic

OPTIONS = tuple((name, "true") for name in ("updateClusterClients", "updateClusterClientsOnRemove"))
CONNECTOR = TransportConnector("openwire", "tcp", "127.0.0.1", 0, OPTIONS)


def told(client: OpenWireClient) -> set[str]:
    """The brokers that the client is told of next."""
    while not (listed := client.next(ConnectionControl).connected_brokers):
        pass
    return set(listed.split(","))


def test_a_client_hears_of_nodes_that_come_and_go_and_a_new_one_of_those_there_are(redis_url):
    with several_nodes(redis_url, "a", connectors=(CONNECTOR,)) as broker:
        here = f"tcp://127.0.0.1:{broker['a'].port}"
        with OpenWireClient(broker["a"].port) as client:
            assert told(client) == {here}
            broker.start("b")
            there = f"tcp://127.0.0.1:{broker['b'].port}"
            assert told(client) == {here, there}
            with OpenWireClient(broker["a"].port) as second:
                assert told(second) == {here, there}
            broker.stop("b")
            assert told(client) == {here}


def test_clients_that_are_to_spread_are_told_another_node_first_each(redis_url):
    options = tuple((name, "true") for name in ("updateClusterClients", "rebalanceClusterClients"))
    connector = TransportConnector("openwire", "tcp", "127.0.0.1", 0, options)
    with several_nodes(redis_url, "a", "b", connectors=(connector,)) as broker:
        first = []
        for _ in range(4):
            with OpenWireClient(broker["a"].port) as client:
                while not (control := client.next(ConnectionControl)).connected_brokers:
                    pass
            assert control.rebalance_connection
            first.append(control.connected_brokers.split(",")[0])
        assert first[:2] == first[2:]
        assert set(first) == {f"tcp://127.0.0.1:{broker[name].port}" for name in "ab"}


def test_a_client_id_is_taken_over_with_its_subscription_from_another_node(redis_url, name):
    connector = TransportConnector("openwire", "tcp", "127.0.0.1", 0, (("allowLinkStealing", "true"),))
    with several_nodes(redis_url, "a", "b", connectors=(connector,)) as broker:
        with OpenWireClient(broker["b"].port, client_id=name) as first, OpenWireSocket(broker["a"].port) as second:
            _subscribe(first, name)
            second.write(WireFormatOptions().to_info())
            assert type(second.connect(client_id=name)) is Response
            assert first.is_closed()
        with OpenWireClient(broker["a"].port, client_id=name) as third, OpenWireClient(broker["b"].port) as producer:
            _subscribe(third, name)
            producer.send(topic(name), "x")
            assert third.texts(1) == ["x"]


def _subscribe(client: OpenWireClient, name: str) -> None:
    id = ConsumerId(client.connection_id, 1, 1)
    subscription = ConsumerInfo(consumer_id=id, destination=topic(name), prefetch_size=100, subscription_name=name)
    assert type(client.ask(subscription)) is Response
