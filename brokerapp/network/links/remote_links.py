"""Connect a bridge to another broker, by the protocol that this speaks at its address."""

from __future__ import annotations

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.network.links.activemq_probe import read_broker_name
from brokerapp.network.links.bridge_link import BridgeLink, OpenWireSpoken
from brokerapp.network.links.broker_link import BridgeLogin, BrokerLink
from brokerapp.network.links.openwire_connection import OpenWireConnection
from brokerapp.network.links.openwire_link import OpenWireBrokerLink
from brokerapp.network.links.sockets import CONNECT_SECONDS, FirstBytes, TlsContextFactory, connect_socket
from brokerapp.network.links.stomp_link import StompBrokerLink, login_headers
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.outbound_rules import OutboundRule

#: Seconds in which an ActiveMQ says that it speaks OpenWire, mostly. Where nothing is said STOMP is tried, and OpenWire
#: again when the answer to that is OpenWire's. A Sluice waits for longer before it says anything.
GREETING_SECONDS = 0.1


class RemoteLinks:
    """Makes the links of one bridge connection.

    `trust` says whose certificates are believed, `outbound` which addresses are allowed, `ids` is told of brokers.
    """

    def __init__(self, name: str, trust: TlsContextFactory, outbound: OutboundRule | None, ids: BrokerIds) -> None:
        self._name, self._trust, self._outbound, self._ids = name, trust, outbound, ids
        self._broker_names: dict[BrokerAddress, str] = {}  # that brokers had which do not tell them by themselves

    async def connect(self, address: BrokerAddress, login: BridgeLogin) -> BrokerLink:
        """Return a link to the broker there, which knows it as a bridge. Raises BridgeConnectionLost."""
        if address.may_speak_openwire:
            return await self._connect_to_either(address, login)
        stomp = self._stomp_connection(address)
        await self._open_socket(stomp, address)
        return await self._log_in(stomp, address, login)

    async def _connect_to_either(self, address: BrokerAddress, login: BridgeLogin) -> BrokerLink:
        """Return a link over what is spoken there."""
        first = await self._first_bytes(address)
        if await first.is_openwire(GREETING_SECONDS):
            return await self._open_openwire(first, address, login)
        stomp = self._stomp_connection(address)
        first.hand_over(stomp)
        try:
            return await self._log_in(stomp, address, login)
        except OpenWireSpoken:
            return await self._open_openwire(await self._first_bytes(address), address, login)

    def _stomp_connection(self, address: BrokerAddress) -> BridgeLink:
        return BridgeLink(self._name, address.connect_timeout)

    async def _first_bytes(self, address: BrokerAddress) -> FirstBytes:
        first = FirstBytes()
        await self._open_socket(first, address)
        return first

    async def _open_socket(self, protocol: FirstBytes | BridgeLink, address: BrokerAddress) -> None:
        patience = address.connect_timeout or CONNECT_SECONDS
        await connect_socket(protocol, address, self._trust, self._outbound, patience)

    async def _open_openwire(self, first: FirstBytes, address: BrokerAddress, login: BridgeLogin) -> BrokerLink:
        connection = OpenWireConnection(self._name, address.openwire, address.connect_timeout)
        first.hand_over(connection)
        await connection.open(login)
        return OpenWireBrokerLink(connection, self._ids)

    async def _log_in(self, connection: BridgeLink, address: BrokerAddress, login: BridgeLogin) -> BrokerLink:
        """Return a link over STOMP."""
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
