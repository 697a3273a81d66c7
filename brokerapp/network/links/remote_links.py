"""Connect a bridge to another broker, by the protocol that this speaks at its address."""

from __future__ import annotations

from brokerapp.network.links.activemq_probe import read_broker_name
from brokerapp.network.links.bridge_link import BridgeLink, TlsContextFactory, dial
from brokerapp.network.links.broker_link import BridgeLogin, BrokerLink
from brokerapp.network.links.stomp_link import StompBrokerLink, login_headers
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.outbound_rules import OutboundRule


class RemoteLinks:
    """Makes the links of one bridge connection.

    `trust` says whose certificates are believed, `outbound` which addresses are allowed.
    """

    def __init__(self, name: str, trust: TlsContextFactory, outbound: OutboundRule | None) -> None:
        self._name, self._trust, self._outbound = name, trust, outbound
        self._broker_names: dict[BrokerAddress, str] = {}  # that brokers had which do not tell them by themselves

    async def connect(self, address: BrokerAddress, login: BridgeLogin) -> BrokerLink:
        """Return a link to the broker there, which knows it as a bridge. Raises BridgeConnectionLost."""
        connection = await dial(self._name, address, self._trust, self._outbound)
        await connection.open(login_headers(login))
        try:
            if not connection.remote:
                connection.remote = await self._name_of_activemq(connection, address)
        except BaseException:
            connection.close()
            raise
        return StompBrokerLink(connection)

    async def _name_of_activemq(self, connection: BridgeLink, address: BrokerAddress) -> str:
        """Return the name of an ActiveMQ, remembered if it is not available; else its address."""
        name = await read_broker_name(connection) or self._broker_names.get(address)
        if name is None:
            return f"{address.host}:{address.port}"
        self._broker_names[address] = name
        return name
