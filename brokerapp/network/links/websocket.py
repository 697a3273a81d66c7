"""Carry the STOMP bytes of a link in WebSocket messages, for networks that pass HTTP only.

    asyncio's transport <--> Tunnel <--> Link

To the socket it is the protocol, to the link it is the transport.
"""

from __future__ import annotations

import asyncio
import logging

from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from brokerapp.model.transport_connector import MAX_BODY_BYTES
from brokerapp.network.options.address import BrokerAddress
from brokerapp.stomp.frames import BROKER_LIMITS
from brokerapp.stomp.transport.websocket_base import DATA, WebSocketTransportBase

#: A broker sends one frame a message, and no larger one is read.
MAX_MESSAGE_BYTES = BROKER_LIMITS.head + MAX_BODY_BYTES
_STOMP = Subprotocol("v12.stomp")
#: The package tells of every connection; here the connectors do.
_logger = logging.getLogger("websockets.client")
_logger.setLevel(logging.WARNING)


class WebSocketClientTransport(WebSocketTransportBase[ClientProtocol]):
    """One connection. `opened` is done when the other end has agreed, or fails with OSError."""

    def __init__(self, link: asyncio.Protocol, address: BrokerAddress) -> None:
        spoken = ClientProtocol(
            parse_uri(str(address)), subprotocols=[_STOMP], max_size=MAX_MESSAGE_BYTES, logger=_logger
        )  # fmt: skip
        super().__init__(spoken)
        self._link = link
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._protocol.send_request(self._protocol.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        said: list[bytes] = []
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                self._on_handshake_done()
            elif isinstance(event, Frame) and event.opcode in DATA:
                said.append(bytes(event.data))
        if said:
            self._link.data_received(b"".join(said))
        self._flush()

    def _on_handshake_done(self) -> None:
        if self._protocol.state is State.OPEN:
            self._link.connection_made(self)  # type: ignore[arg-type]
            self.opened.set_result(None)
        elif not self.opened.done():
            self.opened.set_exception(OSError(f"WebSocket handshake failed: {self._protocol.handshake_exc}"))

    def pause_writing(self) -> None:
        self._link.pause_writing()

    def resume_writing(self) -> None:
        self._link.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionResetError("the connection was closed by the other broker"))
        elif not self.opened.cancelled() and self.opened.exception() is None:
            self._link.connection_lost(exc)

    # -- the link's side: a transport

    def write(self, data: bytes) -> None:
        """Whole frames, as one message: brokers read them as a stream."""
        if not self.is_closing():
            self._protocol.send_binary(data)
            self._flush()

    def close(self) -> None:
        """Say good-bye, and wait for no answer."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close()
            self._flush()
        self._transport.close()
