"""WebSocket: STOMP's bytes in WebSocket messages.

    asyncio's transport <--> WebSocketConnection <--> StompConnection

To the socket it is the protocol, to the STOMP connection it is the transport; what STOMP means is none of its business.
What comes is a stream, however it is cut into messages and fragments, as text or binary. What goes is one frame a
message, as ActiveMQ has it: text, or binary where the body is no text.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.exceptions import NegotiationError
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from brokerapp.connections.client_socket import LINGER_SECONDS, WRITE_LIMIT
from brokerapp.errors import ProtocolError
from brokerapp.model.transport_connector import is_loopback
from brokerapp.stomp.server_frames import error_frame
from brokerapp.stomp.transport.connection import StompConnection
from brokerapp.stomp.transport.websocket_base import DATA, WebSocketTransportBase

#: Best first. Which version is spoken is what CONNECT says, as with any other connection.
SUBPROTOCOLS = ("v12.stomp", "v11.stomp", "v10.stomp")
logger = logging.getLogger(__name__)
#: The package tells of every connection; here the broker does.
_logger = logging.getLogger("websockets.server")
_logger.setLevel(logging.WARNING)
#: Characters of a reason that the log gets: it may quote what the client sent.
MAX_REASON = 200
_CONTENT_LENGTH = re.compile(rb"\ncontent-length:(\d+)\n")


class WebSocketConnection(WebSocketTransportBase[ServerProtocol]):
    """One client's WebSocket. `admits` says of the Origin of a handshake whether that page may connect."""

    def __init__(self, stomp: StompConnection, admits: Callable[[str | None, str], bool], connect_ms: int) -> None:
        super().__init__(_Protocol(select_subprotocol=_select, max_size=stomp.frame_limit, logger=_logger))
        self._stomp, self._is_origin_allowed, self._connect_ms = stomp, admits, connect_ms
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False  # the handshake is done, the STOMP connection is told
        self._closing = False  # STOMP is told nothing more

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._loop = asyncio.get_running_loop()
        if self._connect_ms:
            self._timer = self._loop.call_later(self._connect_ms / 1000, transport.abort)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._protocol.max_message_size = self._stomp.frame_limit
        self._protocol.receive_data(data)
        held: list[bytes] = []
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._shake_hands(event)
            elif isinstance(event, Frame) and event.opcode in DATA:
                held.append(bytes(event.data))
        if held and not self._closing:
            self._stomp.data_received(b"".join(held))  # at once: frames that come together are handled together
        self._flush()
        if self._transport.get_write_buffer_size() > 2 * WRITE_LIMIT:  # it asks, with pings, and reads no answers
            self._transport.abort()

    def _shake_hands(self, request: Request) -> None:
        protocol = self._protocol
        if not protocol.eof_sent:  # else what followed the request in the same read was no frame: all is over
            protocol.send_response(self._answer(request))
        self._flush()
        if self._timer is not None:
            self._timer.cancel()
        if protocol.state is State.OPEN:
            self._is_open = True
            self._stomp.connection_made(self)  # type: ignore[arg-type]

    def _answer(self, request: Request) -> Response:
        """Return the response to a handshake."""
        origins, name = request.headers.get_all("Origin"), self._transport.get_extra_info("sockname")
        if len(origins) > 1:
            return self._protocol.reject(HTTPStatus.BAD_REQUEST, "more than one Origin header\n")
        origin = origins[0] if origins else None
        if self._is_origin_allowed(origin, name[0] if name else ""):
            return self._protocol.accept(request)
        return self._protocol.reject(HTTPStatus.FORBIDDEN, f"pages of {origin} may not connect to this broker\n")

    def pause_writing(self) -> None:
        if self._is_open:
            self._stomp.pause_writing()

    def resume_writing(self) -> None:
        if self._is_open:
            self._stomp.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._is_open:
            self._stomp.connection_lost(exc)

    def _end(self) -> None:
        """Close the socket: after both sides' good-byes at once, else when the client had time to read why."""
        self._closing = self._ended = True
        if not self._is_open:
            self._log_refusal()
        if self._protocol.close_rcvd is not None or not self._is_open:
            self._transport.close()
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._close_later()

    def _log_refusal(self) -> None:
        """Log in one line why there is no WebSocket."""
        reason = self._protocol.handshake_exc or self._protocol.parser_exc or "refused"
        peer = self._transport.get_extra_info("peername")
        logger.info("handshake of a WebSocket from %s failed: %s", peer and peer[0], ascii(str(reason))[:MAX_REASON])

    def _close_later(self) -> None:
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.close)

    # -- the STOMP connection's side: a transport

    def write(self, data: bytes) -> None:
        """Send whole STOMP frames, each as a WebSocket message."""
        for message in split_frames(data):
            send = self._protocol.send_text if _is_text(message) else self._protocol.send_binary
            send(message)
        self._flush()

    def writelines(self, pieces: Sequence[bytes]) -> None:
        """Send whole STOMP frames that come in pieces."""
        self.write(b"".join(pieces))

    def close(self) -> None:
        """Say good-bye, and give the client some time for its own."""
        if self._closing:
            return
        self._closing = True
        if self._protocol.state is State.OPEN:  # else the client said it first
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        self._flush()
        self._close_later()

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._closing or super().is_closing()


class _Protocol(ServerProtocol):
    """WebSocket protocol of the websockets package, which sends STOMP's ERROR for messages that are too long, too."""

    def fail(self, code: CloseCode | int, reason: str = "") -> None:
        if code == CloseCode.MESSAGE_TOO_BIG and self.state is State.OPEN:
            error = ProtocolError(f"the frame exceeds {self.max_message_size} bytes")
            self.send_text(error_frame(error, None, "1.2"))
        super().fail(code, reason)


def _select(_protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Return the best subprotocol offered; none without an offer. Raises NegotiationError when none is supported."""
    best = next((each for each in SUBPROTOCOLS if each in offered), None)
    if best is None and offered:
        raise NegotiationError(f"none of {', '.join(offered)[:80]} is spoken, but {', '.join(SUBPROTOCOLS)}")
    return None if best is None else Subprotocol(best)


def split_frames(data: bytes) -> Iterator[bytes]:
    """Yield the frames and heart-beats in written bytes, one by one."""
    start = 0
    while start < len(data):
        end = start + 1
        if data[start] != 0x0A:
            body = data.index(b"\n\n", start) + 2
            counted = _CONTENT_LENGTH.search(data, start, body - 1)
            nul = body + int(counted[1]) if counted else data.index(b"\0", body)
            end = nul + 2  # a newline follows each frame
        yield data[start:end]
        start = end


def _is_text(message: bytes) -> bool:
    if message.isascii():
        return True
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_origin_allowed(origin: str | None, here: str, allowed: frozenset[str] | None, open_to_all: bool) -> bool:
    """Whether a web page of this origin may connect to the address `here`; programs that are no browsers have none.

    Every page a user looks at can make connections from the user's machine. Where a login is needed that is harmless;
    a broker that is open because only its own machine reaches it must keep out pages from elsewhere.
    """
    if origin is None:
        return True
    if allowed is not None:
        return "*" in allowed or origin in allowed
    return not open_to_all or not is_loopback(here) or is_loopback(_host(origin))


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""
