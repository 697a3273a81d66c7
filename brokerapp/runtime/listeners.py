"""Open the sockets of a node's connectors, on all transports."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace

from brokerapp.connections.connector_state import ClientServices, ConnectorState
from brokerapp.connections.login import Authenticate
from brokerapp.connections.shared_port import SharedPort, open_sockets
from brokerapp.connections.tls_renewal import ServerContext
from brokerapp.engine.routing.naming_conventions import PLAIN, NamingConventions
from brokerapp.errors import StartRefused
from brokerapp.model.stats_records import ListenerStats
from brokerapp.model.transport_connector import DEFAULT_LIMITS, PLAIN_STOMP, ConnectionLimits, Transport
from brokerapp.openwire.transport.duplex import DuplexBridges
from brokerapp.runtime.protocol_switch import ProtocolSwitch
from brokerapp.stomp.transport.connection import StompConnection
from brokerapp.stomp.transport.websocket import WebSocketConnection, is_origin_allowed


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen on, and what is served there. Port 0 takes a free one; with `tls` that is spoken."""

    host: str
    port: int
    name: str = "stomp"
    transport: Transport = PLAIN_STOMP
    tls: ServerContext | None = None
    limits: ConnectionLimits = DEFAULT_LIMITS
    conventions: NamingConventions = PLAIN
    discovery: str = ""  #: the group of brokers in which its address is announced, as a uri

    @property
    def certificate_until(self) -> int:
        """Return when the certificate that is shown ends, in seconds since the epoch; 0: there is none."""
        end = self.tls and self.tls.held.valid_until
        return int(end.timestamp()) if end else 0


async def check_free(wanted: Iterable[ListenAddress]) -> None:
    """Raise StartRefused where one of these addresses cannot be had now. Nobody is let in there meanwhile."""
    for each in wanted:
        try:
            server = await asyncio.get_running_loop().create_server(
                asyncio.Protocol, each.host or None, each.port, start_serving=False
            )
        except OSError as error:
            raise _refused(each, error) from error
        server.close()
        await server.wait_closed()


def _refused(listen: ListenAddress, error: OSError) -> StartRefused:
    # asyncio puts words of its own around those of the system
    reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else error.strerror or error
    return StartRefused(
        f"transportConnector {listen.name!r} cannot listen on {listen.host}:{listen.port}: "
        f"{reason}; stop the program that uses the port, or choose another port"
    )


_Server = asyncio.Server | SharedPort


@dataclass(slots=True)
class _Listener:
    listen: ListenAddress
    server: _Server
    endpoint: ConnectorState
    address: str
    discovery: str


class Listeners:
    """Opens and closes the listeners of a node."""

    def __init__(
        self, services: ClientServices, authenticate: Authenticate | None, internal_connector: ConnectorState,
        duplex_bridges: DuplexBridges,
    ) -> None:  # fmt: skip
        self._services, self._authenticate = services, authenticate
        self._internal_connector = internal_connector  # for parts of the broker itself
        self._duplex_bridges = duplex_bridges
        self._open: list[_Listener] = []

    async def open(self, listen: ListenAddress) -> None:
        """Listen on this address, too. Raises StartRefused when it cannot be had."""
        endpoint = ConnectorState(
            self._services, self._authenticate, listen.name, "", listen.limits, listen.conventions, listen.transport
        )
        server = await self._serve(endpoint, listen)
        for host, port, *_ in (each.getsockname() for each in server.sockets):
            shown = f"[{host}]" if ":" in host else host
            endpoint.address = f"{listen.transport.scheme}://{shown}:{port}"
            found = replace(listen, port=port)
            self._open.append(_Listener(found, server, endpoint, endpoint.address, listen.discovery))

    async def _serve(self, endpoint: ConnectorState, listen: ListenAddress) -> _Server:
        try:
            if listen.tls is not None:
                return SharedPort(
                    open_sockets(listen.host, listen.port), listen.tls, lambda: self._connection(endpoint, listen),
                    name=f"connector {listen.name}", patience=listen.limits.connect_ms / 1000 or None,
                    backlog=listen.limits.backlog,
                )  # fmt: skip
            return await asyncio.get_running_loop().create_server(
                lambda: self._connection(endpoint, listen), listen.host or None, listen.port,
                backlog=listen.limits.backlog,
            )  # fmt: skip
        except OSError as error:
            raise _refused(listen, error) from error

    def _connection(self, endpoint: ConnectorState, listen: ListenAddress) -> asyncio.Protocol:
        if listen.transport.openwire:
            return ProtocolSwitch(endpoint, self._duplex_bridges)
        stomp = StompConnection(endpoint)
        if not listen.transport.websocket:
            return stomp

        def admits(origin: str | None, here: str) -> bool:
            return is_origin_allowed(origin, here, listen.limits.origins, self._authenticate is None)

        return WebSocketConnection(stomp, admits, listen.limits.connect_ms)

    @property
    def is_open(self) -> bool:
        """Return whether it listens for clients."""
        return any(each.server.is_serving() for each in self._open)

    @property
    def addresses(self) -> list[str]:
        """Return the addresses it listens on as URIs, in the order of the configuration."""
        return [each.address for each in self._open]

    @property
    def announced_addresses(self) -> dict[str, list[str]]:
        """Return the addresses to announce, by discovery group."""
        found: dict[str, list[str]] = {}
        for each in self._open:
            if each.discovery:
                reachable = each.address.replace("//0.0.0.0:", f"//{socket.gethostname()}:")
                found.setdefault(each.discovery, []).append(reachable)
        return found

    def stats(self) -> list[ListenerStats]:
        """Return the statistics of each listener."""
        return [
            ListenerStats(
                each.endpoint.name,
                each.address,
                each.endpoint.connection_count,
                each.endpoint.refused_count,
                each.endpoint.accepted_count,
                certificate_until=each.listen.certificate_until,
            )
            for each in self._open
        ]

    @property
    def connectors(self) -> list[ConnectorState]:
        """Return the state of each listener's connector."""
        return [each.endpoint for each in self._open]

    def stop(self) -> None:
        """Accept no more connections, and take no more commands from open ones."""
        self.close()
        for each in self._open:
            each.endpoint.stop()

    def pause(self) -> None:
        """Accept no more connections until `resume`; open ones stay."""
        self.close()

    async def resume(self) -> None:
        """Listen again where it did before `pause`. Raises StartRefused when an address cannot be had."""
        servers: dict[_Server, _Server] = {}  # new ones by those that they replace
        for each in self._open:
            if each.server not in servers:
                servers[each.server] = await self._serve(each.endpoint, each.listen)
            each.server = servers[each.server]

    def close_all(self) -> None:
        """Take no more connections, and let go of those that are there, also of who has not logged in yet, and of the
        broker's own parts: nobody would be answered.
        """
        self.close()
        for each in (self._internal_connector, *[one.endpoint for one in self._open]):
            each.close_all()

    def close(self) -> None:
        """Accept no more connections; open ones stay."""
        for each in self._open:
            each.server.close()
