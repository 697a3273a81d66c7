"""Open the socket of a link, and find out by the first bytes what is spoken there."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from brokerapp.connections.protocol_detection import is_openwire
from brokerapp.errors import ConfigurationRefused, RequestRefused
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.network.links.websocket import WebSocketClientTransport
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.outbound_rules import OutboundRule

#: Seconds that a broker may take to accept a connection, and then to answer the login, unless its address says.
CONNECT_SECONDS = 10.0
#: Bytes waiting for the socket at which the bridge passes on nothing more for now.
WRITE_HIGH_WATER = 1024 * 1024

#: What makes that by which other brokers are believed, where they speak TLS.
TlsContextFactory = Callable[[], ssl.SSLContext]


async def connect_socket(
    protocol: asyncio.Protocol,
    address: BrokerAddress,
    trust: TlsContextFactory,
    outbound: OutboundRule | None,
    patience: float,
) -> None:
    """Connect to where a broker listens. `trust` says whose certificates are believed.

    With a rule the name of the host is resolved once, each of its addresses is checked, and the connection is made to
    one of these: the name may stand for another machine than when the connector was saved. Raises BridgeConnectionLost.
    """
    try:
        async with asyncio.timeout(patience):
            hosts = [address.host] if outbound is None else await _allowed_addresses(address, outbound)
            await _connect_to_any(protocol, address, hosts, await asyncio.to_thread(trust) if address.tls else None)
    except TimeoutError as error:
        raise BridgeConnectionLost(f"no connection within {patience:g} s") from error
    except socket.gaierror as error:
        raise BridgeConnectionLost(_resolution_error(address.host, error)) from error
    except OSError as error:
        raise BridgeConnectionLost(error.strerror or str(error)) from error
    except (ConfigurationRefused, RequestRefused) as error:
        raise BridgeConnectionLost(str(error)) from error


def _resolution_error(host: str, error: socket.gaierror) -> str:
    """Return that a name is not known, or else why it could not be looked up."""
    if error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
        return f"{host}: name not known"
    return f"{host}: the name could not be resolved ({error.strerror})"


async def _allowed_addresses(address: BrokerAddress, outbound: OutboundRule) -> list[str]:
    """Return the numeric addresses of a host. Raises RequestRefused when one of them is not allowed."""
    found = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    hosts = list(dict.fromkeys(str(info[4][0]) for info in found))
    for host in hosts:
        outbound.check(host)
    return hosts


async def _connect_to_any(
    protocol: asyncio.Protocol, address: BrokerAddress, hosts: Sequence[str], tls: ssl.SSLContext | None
) -> None:
    """Connect to the first of these hosts that accepts. Raises OSError."""
    *others, last = hosts
    for host in others:
        with contextlib.suppress(OSError):
            await _connect(protocol, address, host, tls)
            return
    await _connect(protocol, address, last, tls)


async def _connect(protocol: asyncio.Protocol, address: BrokerAddress, host: str, tls: ssl.SSLContext | None) -> None:
    connecting = partial(
        asyncio.get_running_loop().create_connection,
        host=host, port=address.port, ssl=tls, server_hostname=address.host if tls is not None else None,
    )  # fmt: skip
    if not address.websocket:
        await connecting(lambda: protocol)
        return
    tunnel = WebSocketClientTransport(protocol, address)
    transport, _ = await connecting(lambda: tunnel)
    try:
        await tunnel.opened
    except BaseException:
        transport.abort()
        raise


class FirstBytes(asyncio.Protocol):
    """A socket on which nothing was said yet: who speaks OpenWire there says so first, who speaks STOMP waits."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_ended = False

    async def is_openwire(self, seconds: float) -> bool:
        """Return whether OpenWire is spoken there, as far as that is known after a while."""
        try:
            await asyncio.wait({self._known}, timeout=seconds)
        except BaseException:  # nobody else has the socket yet
            self.abort()
            raise
        return is_openwire(self._received)

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let this protocol have the socket, with what was received. Raises BridgeConnectionLost if it is closed."""
        if self._has_ended:
            raise BridgeConnectionLost("the connection was closed before the login")
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._received:
            protocol.data_received(bytes(self._received))

    def abort(self) -> None:
        """Close the socket."""
        self._transport.abort()

    # -- asyncio's side

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._set_known()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        self._set_known()

    def _set_known(self) -> None:
        if not self._known.done():
            self._known.set_result(None)
