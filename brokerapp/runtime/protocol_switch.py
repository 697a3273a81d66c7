"""ProtocolSwitch: hands a connection over to the protocol that its client's first bytes are of.

An OpenWire client begins with the length of a command, whose first byte is zero, as the command is short. A STOMP
client begins with the name of a command. On the connectors that are OpenWire's in ActiveMQ the broker speaks first
there; here it does when the client has said nothing for a moment, as a STOMP client must not be told anything.
"""

from __future__ import annotations

import asyncio

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.openwire.transport.connection import OpenWireConnection
from brokerapp.openwire.transport.duplex import DuplexBridges
from brokerapp.stomp.transport.connection import StompConnection

#: Seconds after which a client that says nothing is taken for one of OpenWire.
GREETING_DELAY_SECONDS = 1.0
#: First byte of OpenWire: the highest of the length of its first command.
_OPENWIRE_START = 0


class ProtocolSwitch(asyncio.Protocol):
    """The socket of a client that has said nothing yet. It counts among the connections of its connector."""

    def __init__(self, connector: ConnectorState, duplex_bridges: DuplexBridges) -> None:
        self._connector, self._duplex_bridges = connector, duplex_bridges
        self._is_counted = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        loop, patience = asyncio.get_running_loop(), self._connector.limits.connect_ms
        if self._connector.is_stopping:
            transport.close()
            return
        self._connector.open_connections.add(self)
        if not self._connector.is_full:  # else it is refused in its protocol, once that is known
            self._is_counted = True
            self._connector.connection_count += 1
        if self._connector.transport.greets:
            self._timer = loop.call_later(GREETING_DELAY_SECONDS, self._greet)
        elif patience:
            self._timer = loop.call_later(patience / 1000, self.close)

    def data_received(self, data: bytes) -> None:
        if data[0] == _OPENWIRE_START:
            self._greet().data_received(data)
            return
        stomp = StompConnection(self._connector)
        self._become(stomp)
        stomp.data_received(data)

    def _greet(self) -> OpenWireConnection:
        """Begin to speak OpenWire."""
        connection = OpenWireConnection(self._connector, self._duplex_bridges)
        self._become(connection)
        return connection

    def _become(self, connection: OpenWireConnection | StompConnection) -> None:
        """Hand the socket over."""
        self._end()
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def close(self) -> None:
        """Close the connection."""
        self._end()
        self._transport.close()

    def stop(self) -> None:
        """Take no more commands: there are none."""
        self.close()

    def tell_cluster_brokers(self) -> None:
        """Tell the client nothing: it is not connected."""

    def _end(self) -> None:
        self._connector.open_connections.discard(self)
        self._connector.connection_count -= self._is_counted
        self._is_counted = False
        if self._timer is not None:
            self._timer.cancel()
