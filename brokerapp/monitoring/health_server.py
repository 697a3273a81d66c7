"""Serve the health and the figures of a node over HTTP, for probes and Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11

from brokerapp.errors import ConfigurationRefused
from brokerapp.monitoring.health_pages import METHODS, TEXT_TYPE, NodeHealth, Page, page_of

logger = logging.getLogger(__name__)

#: Bytes of a request line with its headers: probes and scrapers send less than 1 KiB.
REQUEST_BYTES = 8 * 1024
#: Seconds for a whole request and its answer, of one who sends slowly, too. Kubernetes waits 1 s unless told otherwise.
REQUEST_SECONDS = 5.0
#: Connections at a time; more are closed at once. A few probes and scrapers each use one for some milliseconds.
CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class HealthAddress:
    """Where to serve."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> HealthAddress:
        """Return the address in `HOST:PORT`, `[IPV6]:PORT` or `:PORT` (all interfaces). Raises ConfigurationRefused."""
        host, found, port = text.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        is_bracketed = host != bare
        if not found or not port.isascii() or not port.isdecimal() or int(port) > 65535 or set(bare) & set("/[] "):
            raise ConfigurationRefused(f"--health {text}: expected HOST:PORT, such as 127.0.0.1:8162")
        if ":" in bare and not (is_bracketed and _is_ipv6(bare)):
            raise ConfigurationRefused(f"--health {text}: write an IPv6 address in brackets, such as [::1]:8162")
        return HealthAddress(bare, int(port))


def _is_ipv6(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(text).version == 6
    return False


class HealthServer:
    """Answers GET and HEAD, one request a connection. `read` returns the present health of the node."""

    def __init__(self, read: Callable[[], NodeHealth]) -> None:
        self._read = read
        self._server: asyncio.Server | None = None
        self._open_count = 0
        self.port = 0  #: that it listens on

    async def start(self, address: HealthAddress) -> None:
        """Listen on an address, a free port for 0. Raises ConfigurationRefused when it cannot be had."""
        try:
            self._server = await asyncio.start_server(
                self._serve, address.host or None, address.port, limit=REQUEST_BYTES
            )
        except OSError as error:
            raise ConfigurationRefused(
                f"--health {address.host}:{address.port}: cannot listen there: {error.strerror or error}; "
                "stop the program that uses the port, or choose another"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        logger.info("health and metrics are served on port %d", self.port)

    def stop(self) -> None:
        """Serve no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open_count >= CONNECTIONS:
            writer.close()
            return
        self._open_count += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._answer(reader, writer)
        except (OSError, TimeoutError):
            pass  # it went away, or is too slow
        finally:
            self._open_count -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
        method = ""
        try:
            while (event := connection.next_event()) is h11.NEED_DATA:
                connection.receive_data(await reader.read(REQUEST_BYTES))
        except h11.RemoteProtocolError as error:
            page = Page(HTTPStatus(error.error_status_hint), TEXT_TYPE, f"{error}\n")
        else:
            if not isinstance(event, h11.Request):  # it closed without one
                return
            method = event.method.decode()
            page = page_of(method, event.target.decode("ascii", "replace"), self._read())
        writer.write(_encode(connection, page, has_body=method != "HEAD"))
        await writer.drain()
        writer.write_eof()
        await reader.read(REQUEST_BYTES)  # else what it sent besides would reset the connection before it has read


def _encode(connection: h11.Connection, page: Page, *, has_body: bool) -> bytes:
    body = page.body.encode()
    headers = [
        ("Content-Type", page.type),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    ]
    if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("Allow", ", ".join(METHODS)))
    response = h11.Response(status_code=page.status, reason=page.status.phrase, headers=headers)
    return (connection.send(response) or b"") + (body if has_body else b"")
