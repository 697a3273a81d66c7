"""Connect a bridge to its own broker."""

from __future__ import annotations

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.routing.bridge_eligibility import BridgeFilterCounts
from brokerapp.network.links import loopback
from brokerapp.network.links.bridge_link import BridgeLink
from brokerapp.network.links.broker_link import BridgeLogin
from brokerapp.network.links.stomp_link import StompBrokerLink, login_headers
from brokerapp.stomp.transport.connection import StompConnection


async def connect_local(
    endpoint: ConnectorState, name: str, login: BridgeLogin, remote: str, counts: BridgeFilterCounts
) -> tuple[StompBrokerLink, StompConnection]:
    """Return a link to the broker of this endpoint for the bridge to `remote`, and the broker's end of it.

    The broker counts in `counts` what it does not give to the bridge. Raises BridgeConnectionLost.
    """
    link = BridgeLink(name)
    connection = loopback.connect(link, endpoint)
    connection.client.bridge, connection.client.bridge_counts = remote, counts
    await link.open(login_headers(login))
    return StompBrokerLink(link), connection
