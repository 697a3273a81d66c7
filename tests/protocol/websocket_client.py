"""A WebSocket that speaks exactly what it is told, in the caller's own thread."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Iterator, Sequence

from websockets.client import ClientProtocol
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from brokerapp.stomp.frames import Frame, FrameParser, encode
from tests.protocol.clients import PATIENCE


class WebSocketClient:
    """Connected to STOMP when made, unless told not to."""

    def __init__(
        self,
        port: int,
        tls: ssl.SSLContext | None = None,
        connect: bool = True,
        subprotocols: Sequence[str] | None = ("v12.stomp",),
        origin: str | None = None,
    ) -> None:
        uri = parse_uri(f"{'wss' if tls else 'ws'}://localhost:{port}/stomp")
        self._protocol = ClientProtocol(uri, subprotocols=subprotocols, origin=origin, max_size=None)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.status = 0  #: of the answer to the handshake
        self.pongs = 0
        self._messages: deque[str | bytes] = deque()
        self._pieces: list[bytes] = []
        self._kind = Opcode.TEXT
        self._parser = FrameParser()
        self._frames: Iterator[Frame] = iter(())
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        while not self.status:
            self._read()
        if connect:
            self.tell("CONNECT", {"accept-version": "1.2", "host": "here"})
            assert self.hear().command == "CONNECTED"
            self._parser.version = "1.2"

    @property
    def subprotocol(self) -> str | None:
        """What was agreed on."""
        return self._protocol.subprotocol

    @property
    def close_code(self) -> int | None:
        """With which the broker said good-bye."""
        return self._protocol.close_rcvd and self._protocol.close_rcvd.code

    # -- the socket

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self.socket.sendall(data)

    def _read(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data or self.close_code is not None:
            raise ConnectionError("the broker closed the connection")
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                self.status = event.status_code
            elif isinstance(event, WebSocketFrame):
                self._take(event)
        self._flush()

    def _take(self, frame: WebSocketFrame) -> None:
        if frame.opcode is Opcode.PONG:
            self.pongs += 1
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._kind = frame.opcode
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            self._pieces.append(bytes(frame.data))
            if frame.fin:
                whole = b"".join(self._pieces)
                self._pieces.clear()
                self._messages.append(whole.decode() if self._kind is Opcode.TEXT else whole)

    # -- messages

    def send(self, *fragments: bytes, text: bool = True) -> None:
        """One message, in these fragments."""
        first = self._protocol.send_text if text else self._protocol.send_binary
        for number, fragment in enumerate(fragments):
            (self._protocol.send_continuation if number else first)(fragment, number == len(fragments) - 1)
        self._flush()

    def ping(self) -> None:
        """A ping, which is answered by a pong."""
        self._protocol.send_ping(b"you there?")
        self._flush()

    def message(self) -> str | bytes:
        """The next message; ConnectionError when the broker closed the connection instead."""
        while not self._messages:
            self._read()
        return self._messages.popleft()

    # -- frames

    def tell(self, command: str, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        """A frame in a message of text."""
        self.send(encode(command, headers or {}, body))

    def tell_at_once(self, *frames: bytes) -> None:
        """Messages of one frame each, in one write."""
        for each in frames:
            self._protocol.send_text(each)
        self.socket.sendall(b"".join(self._protocol.data_to_send()))

    def hear(self) -> Frame:
        """The next frame; ConnectionError when the broker closed the connection instead."""
        while True:
            for frame in self._frames:
                return frame
            message = self.message()
            self._frames = self._parser.feed(message.encode() if isinstance(message, str) else message)

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection; frames before that are skipped."""
        try:
            while True:
                self.message()
        except ConnectionError:
            return True

    def close(self) -> None:
        """Gone without a word."""
        self.socket.close()
