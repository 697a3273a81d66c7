"""Serve clients with and without TLS at one port, told apart by their first byte."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

#: First byte of a TLS handshake. No method of HTTP begins with it.
TLS_HANDSHAKE = b"\x16"
#: Seconds until a client must have sent its first byte. Browsers open connections ahead of their use.
FIRST_BYTE_SECONDS = 30.0
#: Seconds that a handshake may take.
HANDSHAKE_SECONDS = 10.0
#: Seconds until connections are accepted again that could not be, as with too many open files.
RETRY_SECONDS = 0.1
BACKLOG = 2048  #: as uvicorn has it

Protocols = Callable[[], asyncio.Protocol]


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return sockets bound to all addresses of a host, not listening yet. Raises OSError."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    with contextlib.ExitStack() as on_failure:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            bound = on_failure.enter_context(socket.socket(family, kind, protocol))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(address)
            bound.setblocking(False)
            opened.append(bound)
        on_failure.pop_all()
    return opened


class SharedPort:
    """Accepts connections at these sockets until it is closed, as `asyncio.Server` does.

    TLS must be spoken from the connection's first byte on (see brokerapp.nodes.links.peer_links), so the first byte is
    looked at before there is a transport that would take it.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], tls: ssl.SSLContext, encrypted: Protocols, plain: Protocols
    ) -> None:
        self._tls, self._encrypted, self._plain = tls, encrypted, plain
        self._starting: set[asyncio.Task[None]] = set()
        for each in sockets:
            each.listen(BACKLOG)
        self._accepting = [asyncio.create_task(self._accept(each), name="connections") for each in sockets]

    async def _accept(self, listening: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(listening)
                except OSError as error:
                    logger.warning("cannot accept connections: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                task = asyncio.create_task(self._start(accepted), name="first byte of a client")
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)

    async def _start(self, accepted: socket.socket) -> None:
        """Hand the connection over to the protocol that its client speaks."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(FIRST_BYTE_SECONDS):
                first = await _first_byte(accepted)
            if first == TLS_HANDSHAKE:
                await loop.connect_accepted_socket(
                    self._encrypted, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
                )
            elif first:
                await loop.connect_accepted_socket(self._plain, accepted)
            else:
                accepted.close()
        except OSError as error:  # it went away, is too slow, or does not accept the certificate
            logger.debug("a client did not connect: %s", error)
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    def close(self) -> None:
        """Accept no more connections; those that have begun stay."""
        for task in (*self._accepting, *self._starting):
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the sockets are closed."""
        await asyncio.wait([*self._accepting, *self._starting])


async def _first_byte(accepted: socket.socket) -> bytes:
    """Return the first byte that a client sends, and leave it to be read; empty: it sends none."""
    loop = asyncio.get_running_loop()
    is_readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(accepted, lambda: is_readable.done() or is_readable.set_result(None))
    try:
        await is_readable
    finally:
        loop.remove_reader(accepted)
    return accepted.recv(1, socket.MSG_PEEK)
