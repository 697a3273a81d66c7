"""Build what runs the network connectors of a node."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.core.broker import Broker
from brokerapp.network.connectors.accepted_bridges import AcceptedBridges
from brokerapp.network.connectors.admin_handler import NetworkRequests
from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.connectors.connectors import ConnectorManager
from brokerapp.network.connectors.diagnosis import BridgeDiagnosis
from brokerapp.network.connectors.leader import ConnectorLeader
from brokerapp.network.connectors.stats import NetworkStatus
from brokerapp.network.links.sockets import TlsContextFactory
from brokerapp.nodes.links.peers import Peers


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """The network connectors of a node, and what operators may ask of them."""

    connectors: ConnectorManager
    leader: ConnectorLeader
    status: NetworkStatus
    requests: NetworkRequests


def build_network(
    broker: Broker,
    peers: Peers,
    registry: NetworkConnectorStore,
    *,
    internal: ConnectorState,
    accepted: AcceptedBridges,
    trust: TlsContextFactory,
    at_once: bool,
) -> NodeNetwork:
    """Build what runs the connectors in the registry. `internal` is where bridges consume from their own broker.

    Unless they start `at_once` each connector waits for the first attempts of the one before it.
    """
    connectors = ConnectorManager(
        internal, (), trust, durables=broker.durables, advisories=broker.advisories, at_once=at_once
    )
    leader = ConnectorLeader(peers, connectors, registry)
    status = NetworkStatus(connections=connectors, bridges=broker.bridges, accepted=accepted, routing=broker.routing)
    diagnosis = BridgeDiagnosis(connectors, queues=broker.queues, commits=broker.commits)
    requests = NetworkRequests(leader=leader, registry=registry, status=status, diagnosis=diagnosis)
    return NodeNetwork(connectors, leader, status, requests)
