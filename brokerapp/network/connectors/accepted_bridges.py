"""Run the bridges back to the brokers whose duplex bridges come to this node."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.routing.bridge_eligibility import BridgeFilterCounts
from brokerapp.errors import ConfigurationRefused, InvalidDestination, ProtocolError
from brokerapp.network.bridge.accepted_bridge import AcceptedBridge
from brokerapp.network.bridge.connection import BridgeAdvisories
from brokerapp.network.links.accepted_connection import AcceptedConnection
from brokerapp.network.options.client_ids import outbound_client_id
from brokerapp.network.options.duplex_options import duplex_options
from brokerapp.openwire.session.bridges import ConnectingBridge
from brokerapp.openwire.transport.duplex import BridgeBack, DuplexConnection


class AcceptedBridges:
    """Makes the bridges back. `endpoint` is where they consume from their own broker."""

    def __init__(self, endpoint: ConnectorState, advisories: BridgeAdvisories) -> None:
        self._endpoint, self._advisories = endpoint, advisories
        self._running: dict[str, AcceptedBridge] = {}  # by the id of the client that made the connection

    def start(self, bridge: ConnectingBridge, connection: DuplexConnection) -> BridgeBack:
        """Start the bridge back to a broker whose bridge was let in. Raises ProtocolError where it cannot be."""
        try:
            options = duplex_options(bridge.connector, bridge.attributes)
        except (ConfigurationRefused, InvalidDestination) as error:
            raise ProtocolError(f"a duplex bridge with attributes that cannot be read: {error}") from None
        here, client = self._endpoint.services.name, connection.client
        accepted = AcceptedConnection(
            connection, name=bridge.connector, id=f"ID:{here}->{bridge.broker}-{client.id}:1",
            client_id=outbound_client_id(bridge.connector, here), remote=bridge.broker, remote_id=bridge.broker_id,
        )  # fmt: skip
        made = AcceptedBridge(
            self._endpoint, options, accepted, filtered=client.bridge_counts or BridgeFilterCounts(),
            advisories=self._advisories, on_end=lambda: self._on_end(client.id, made),
        )  # fmt: skip
        self._running[client.id] = made
        made.start(bridge.durable_subscriptions)
        return made

    def _on_end(self, client: str, bridge: AcceptedBridge) -> None:
        if self._running.get(client) is bridge:
            del self._running[client]

    @property
    def forwarded(self) -> Mapping[str, int]:
        """Return how many messages each bridge back took, by the id of the client that made its connection."""
        return {client: each.counters.forwarded for client, each in self._running.items()}
