"""Base of both ends of a WebSocket that carries STOMP: a protocol to the socket, a transport to STOMP."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from websockets.client import ClientProtocol
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

#: Frames that bring bytes of STOMP, however these are cut into messages and fragments, as text or binary.
DATA = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})


SideT = TypeVar("SideT", bound=ClientProtocol | ServerProtocol)


class WebSocketTransportBase(asyncio.Protocol, Generic[SideT]):
    """Base of both ends of a WebSocket. `protocol` is its side without sockets, of the websockets package."""

    def __init__(self, protocol: SideT) -> None:
        self._protocol: SideT = protocol
        self._ended = False  # nothing can be written any more

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._flush()

    def _flush(self) -> None:
        """Write what the WebSocket has to say: bytes, and nothing when that was all for ever."""
        pieces = self._protocol.data_to_send()
        if self._ended or self._transport.is_closing():
            return
        if data := b"".join(pieces):
            self._transport.write(data)
        if b"" in pieces:
            self._end()

    def _end(self) -> None:
        """All is said: close the socket."""
        self._transport.close()

    # -- the side of who speaks STOMP: a transport

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._protocol.state is not State.OPEN or self._transport.is_closing()

    def can_write_eof(self) -> bool:
        """Return False: the closing handshake replaces half-closing."""
        return False

    def abort(self) -> None:
        """Abort the connection without a closing handshake."""
        self._transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the socket."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Pause reading from the socket."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading from the socket."""
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When to call pause_writing and resume_writing."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Bytes the socket has not taken yet."""
        return self._transport.get_write_buffer_size()
