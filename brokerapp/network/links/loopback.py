"""Connect a bridge to its own broker in memory, with the behavior of a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.stomp.transport.connection import StompConnection

#: Bytes in the pipe at which its writer is asked to pause.
HIGH_WATER = 1024 * 1024


class LoopbackTransport(asyncio.Transport):
    """One end of a pair; what is written here is received by the other end's protocol in the next tick."""

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self._protocol: Any = protocol
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[bytes] = deque()  # for this end's protocol
        self._size = 0  # bytes of it
        self._paused = self._closing = self._scheduled = False
        self._over = False  # the other end is closed: when what it wrote is received this one is, too
        self._high = HIGH_WATER
        self.peer: LoopbackTransport | None = None

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if self._closing or self._over or self.peer is None:
            return
        self.peer._receive(bytes(data))

    def _receive(self, data: bytes) -> None:
        self._chunks.append(data)
        before, self._size = self._size, self._size + len(data)
        if before <= self._high < self._size and self.peer is not None:
            self.peer._protocol.pause_writing()
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and not self._paused:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._chunks and not self._paused:
            data = self._chunks.popleft()
            before, self._size = self._size, self._size - len(data)
            self._protocol.data_received(data)
            if self._size <= self._high // 2 < before and self.peer is not None:
                self.peer._protocol.resume_writing()
        if not self._chunks and self._over:
            self._end()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        if self._chunks or self._over:
            self._schedule()

    def close(self) -> None:
        """Close the connection; the other end still receives what was written."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._end)

    def abort(self) -> None:
        self._chunks.clear()
        self.close()

    def _end(self) -> None:
        if self.peer is None:
            return
        other, self.peer = self.peer, None
        self._closing = True
        self._protocol.connection_lost(None)
        other._over = True
        other._schedule() if other._chunks else self._loop.call_soon(other._end)

    def is_closing(self) -> bool:
        return self._closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high

    def get_write_buffer_size(self) -> int:
        return self.peer._size if self.peer is not None else 0

    def can_write_eof(self) -> bool:
        return False


def connect(protocol: asyncio.BaseProtocol, endpoint: ConnectorState) -> StompConnection:
    """Connect this client to the endpoint's broker as a part of the broker, which may do everything."""
    server = StompConnection(endpoint)
    near, far = LoopbackTransport(protocol), LoopbackTransport(server)
    near.peer, far.peer = far, near
    server.connection_made(far)
    server.client.is_internal = True
    protocol.connection_made(near)
    return server
