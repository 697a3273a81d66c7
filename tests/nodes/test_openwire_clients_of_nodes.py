"""OpenWire clients are told of the nodes that serve their broker, as these come and go."""

from __future__ import annotations

from brokerapp.config import TransportConnector
from brokerapp.openwire.commands import ConnectionControl
from tests.nodes.conftest import several_nodes
from tests.protocol.openwire_client import OpenWireClient

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
