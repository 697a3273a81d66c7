"""ProtocolSwitch: hands a connection over to the protocol that its client's first bytes are of.

An OpenWire client begins with the length of a command, whose first byte is zero, as the command is short. A STOMP
client begins with the name of a command. Clients of both speak first. On the connectors that are OpenWire's in ActiveMQ
the broker greets at once there, which probes look for; here it does when a client has said nothing for long, since a
STOMP client may make nothing of the greeting. If it does it is served all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.openwire.transport.connection import OpenWireConnection, greeting
from brokerapp.openwire.transport.duplex import DuplexBridges
from brokerapp.stomp.transport.connection import StompConnection

#: Seconds after which a client that says nothing is greeted in OpenWire.
GREETING_DELAY_SECONDS = 4.0
#: First byte of OpenWire: the highest of the length of its first command.
_OPENWIRE_START = 0


class ProtocolSwitch(asyncio.Protocol):
    """The socket of a client that has said nothing yet. It counts among the connections of its connector."""

    def __init__(self, connector: ConnectorState, duplex_bridges: DuplexBridges) -> None:
        self._connector, self._duplex_bridges = connector, duplex_bridges
        self._is_counted = False
        self._is_greeted = False
        self._timers: list[asyncio.TimerHandle] = []

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
        if patience:
            self._timers.append(loop.call_later(patience / 1000, self.close))
        if self._connector.transport.greets:
            self._timers.append(loop.call_later(GREETING_DELAY_SECONDS, self._greet))

    def _greet(self) -> None:
        self._is_greeted = True
        self._transport.write(greeting(self._connector))

    def data_received(self, data: bytes) -> None:
        """Hand the socket over to the protocol that these bytes begin."""
        connection = (
            OpenWireConnection(self._connector, self._duplex_bridges, is_greeted=self._is_greeted)
            if data[0] == _OPENWIRE_START
            else StompConnection(self._connector)
        )
        self._end()
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)
        connection.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def close(self) -> None:
        """Close the connection."""
        self._end()
        self._transport.close()

    def stop(self) -> None:
        """Take no more commands: there are none."""
        self.close()

    def resume(self) -> None:
        """Take commands again: it is closed."""

    @property
    def is_settled(self) -> bool:
        """Return True: it asked for nothing."""
        return True

    @property
    def is_closing(self) -> bool:
        """Return whether it leaves."""
        return self._transport.is_closing()

    def send_away(self, addresses: Sequence[str]) -> None:
        """Close the connection: its protocol is not known."""
        self.close()

    def tell_cluster_brokers(self) -> None:
        """Tell the client nothing: it is not connected."""

    def _end(self) -> None:
        self._connector.open_connections.discard(self)
        self._connector.connection_count -= self._is_counted
        self._is_counted = False
        for timer in self._timers:
            timer.cancel()
