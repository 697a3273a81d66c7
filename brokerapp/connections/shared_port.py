"""Accept connections of clients that speak TLS, at a port that others may share, told apart by their first byte.

A handshake that fails is reported with the address of the client, which a server of asyncio does not say.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Sequence

from brokerapp.connections.log_throttle import LogThrottle

logger = logging.getLogger(__name__)

#: First byte of a TLS handshake. No method of HTTP begins with it.
TLS_HANDSHAKE = b"\x16"
#: Seconds until a client must have sent its first byte. Browsers open connections ahead of their use.
FIRST_BYTE_SECONDS = 30.0
#: Seconds that a handshake may take.
HANDSHAKE_SECONDS = 10.0
#: Seconds until connections are accepted again that could not be, as with too many open files.
RETRY_SECONDS = 0.1
#: Connections that the system may keep waiting to be accepted, as uvicorn has it; and that are accepted in one turn.
BACKLOG, AT_ONCE = 2048, 64

#: Why a handshake failed, by what OpenSSL calls it: the alert that the client sent, or what was wrong with its bytes.
REASONS = {
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the authority that signed the certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept the certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept the certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client says that the certificate has expired",
    "TLSV1_ALERT_ACCESS_DENIED": "the client does not accept the certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the client supports other versions of TLS only",
    "UNSUPPORTED_PROTOCOL": "the client supports other versions of TLS only",
    "VERSION_TOO_LOW": "the client supports older versions of TLS only",
    "NO_SHARED_CIPHER": "the client supports other ciphers only",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the client supports other ciphers or versions of TLS only",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, which is required here",
    "HTTPS_PROXY_REQUEST": "the client did not speak TLS",  # as OpenSSL takes the CONNECT of STOMP for
    "HTTP_REQUEST": "the client spoke HTTP without TLS",
    "WRONG_VERSION_NUMBER": "the client did not speak TLS",
    "UNEXPECTED_EOF_WHILE_READING": "the client closed the connection",
}

Protocols = Callable[[], asyncio.Protocol]


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return sockets bound to all addresses of a host, not listening yet. Raises OSError."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    with contextlib.ExitStack() as on_failure:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                bound = on_failure.enter_context(socket.socket(family, kind, protocol))
            except OSError as error:
                if error.errno == errno.EAFNOSUPPORT and len(found) > 1:  # such as IPv6 where it is switched off
                    continue
                raise
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
    looked at before there is a transport that would take it. A client that sends none is a probe, and not reported.
    `plain`: for clients that do not speak TLS; None: they are refused. `patience`: seconds until the first byte, and
    for the handshake; None: the usual ones.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        tls: ssl.SSLContext,
        encrypted: Protocols,
        plain: Protocols | None = None,
        *,
        name: str = "TLS",
        patience: float | None = None,
        backlog: int = BACKLOG,
    ) -> None:
        self.sockets = tuple(sockets)
        self._tls, self._encrypted, self._plain, self._name = tls, encrypted, plain, name
        self._first_byte_seconds = patience or FIRST_BYTE_SECONDS
        self._handshake_seconds = patience or HANDSHAKE_SECONDS
        self._failures = LogThrottle()
        self._starting: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        for each in sockets:
            each.listen(backlog)
            self._loop.add_reader(each, self._accept, each)

    def is_serving(self) -> bool:
        """Return whether connections are accepted."""
        return not self._is_closed

    def _accept(self, listening: socket.socket) -> None:
        """Accept the connections that wait."""
        for _ in range(AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if count := self._failures.count_to_report(("", str(error)), self._loop.time()):
                    times = f" ({count} times since this was logged last)" if count > 1 else ""
                    logger.warning("%s: cannot accept connections: %s%s", self._name, error, times)
                self._loop.remove_reader(listening)
                self._loop.call_later(RETRY_SECONDS, self._accept_again, listening)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._loop.create_task(self._start(accepted, address), name="first byte of a client")
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    def _accept_again(self, listening: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listening, self._accept, listening)

    async def _start(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        """Hand the connection over to the protocol that its client speaks."""
        try:
            async with asyncio.timeout(self._first_byte_seconds):
                first = await _first_byte(accepted)
        except OSError:  # it went away, or is too slow
            accepted.close()
            return
        except asyncio.CancelledError:
            accepted.close()
            raise
        try:
            if not first:
                accepted.close()
            elif first == TLS_HANDSHAKE or self._plain is None:
                await self._loop.connect_accepted_socket(
                    self._encrypted, accepted, ssl=self._tls, ssl_handshake_timeout=self._handshake_seconds
                )
            else:
                await self._loop.connect_accepted_socket(self._plain, accepted)
        except OSError as error:
            self._report(address, error)
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    def _report(self, address: tuple[str, int], error: OSError) -> None:
        """Report a failed handshake; LogThrottle keeps a port scan from filling the log."""
        reason = describe_failure(error)
        if count := self._failures.count_to_report((address[0], reason), self._loop.time()):
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            logger.warning(
                "%s: TLS handshake with %s:%d failed: %s%s", self._name, host, address[1], reason,
                f" ({count} times since this was logged last)" if count > 1 else "",
            )  # fmt: skip

    def close(self) -> None:
        """Accept no more connections; those that have begun stay."""
        if self._is_closed:
            return
        self._is_closed = True
        for each in self.sockets:
            self._loop.remove_reader(each)
            each.close()
        for task in self._starting:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until no handshake is under way."""
        if self._starting:
            await asyncio.wait(self._starting)


def describe_failure(error: OSError) -> str:
    """Return in plain words why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the client is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return REASONS.get(error.reason) or error.reason.lower().replace("_", " ")
    if isinstance(error, TimeoutError | ConnectionAbortedError):  # the second: of the event loops
        return "the client did not finish it in time"
    return "the client closed the connection"


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
