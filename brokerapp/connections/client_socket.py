"""ClientSocket: writes to the socket of one client, reads from it while it may, and ends it."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.connections.heart_beats import HeartBeats
from brokerapp.engine.clients.client import Client

logger = logging.getLogger(__name__)

#: Bytes waiting for a client's socket at which it gets no more messages for now.
WRITE_HIGH_WATER = 1024 * 1024
#: Bytes waiting for a client's socket (receipts, as it gets no messages any more) at which it is not read from either.
WRITE_LIMIT = 4 * WRITE_HIGH_WATER
#: Average bytes of the pieces of what is written from which not to join them pays. A message has some five.
LONG_PIECE_BYTES = 4 * 1024
#: Seconds a client that was refused has to read why. A socket that is closed while something unread is in it is reset,
#: and the reset overtakes what was said last.
LINGER_SECONDS = 1.0


class ClientSocket(asyncio.Protocol, ABC):
    """Socket of one client, with back-pressure in both directions; part of the sink through which the broker sends."""

    def __init__(self, connector: ConnectorState) -> None:
        self._connector, self._services = connector, connector.services
        self._out: list[bytes] = []
        self._out_size = 0  # bytes of bodies in it
        self._timers: list[asyncio.TimerHandle] = []
        self._beats = HeartBeats()
        self._closing = False
        self._write_ended = False  # nothing can be written any more
        self._reading = True
        self._paused_by_broker = False  # the broker has enough of it for now
        self._over_write_limit = False  # it does not take what it is told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._loop = asyncio.get_running_loop()
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)  # type: ignore[attr-defined]
        peer = transport.get_extra_info("peername")
        self.client = Client(
            id=self._services.next_client_id(),
            sink=self,  # type: ignore[arg-type]  # the protocol's class has the rest of it
            remote_address=f"{peer[0]}:{peer[1]}" if peer else "",
            connected_ms=time.time_ns() // 1_000_000,
        )

    # -- writing

    def flush(self) -> None:
        if self._out and not self._write_ended and not self._transport.is_closing():
            self._beats.written_at = self._loop.time()
            if self._out_size < LONG_PIECE_BYTES * len(self._out):
                self._transport.write(b"".join(self._out))
            else:
                self._transport.writelines(self._out)
                self._out = []
            if self.client.is_socket_full and self._transport.get_write_buffer_size() > WRITE_LIMIT:
                self._over_write_limit = True
                self._update_reading()
        self._out.clear()
        self._out_size = 0

    def pause_writing(self) -> None:
        self.client.is_socket_full = True

    def resume_writing(self) -> None:
        self.client.is_socket_full = self._over_write_limit = False
        self._update_reading()
        for subscription in self.client.subscriptions.values():
            self._services.dispatcher.resume(subscription)
        self._services.request_dispatch()

    # -- reading

    @property
    @abstractmethod
    def _has_enough_reads(self) -> bool:
        """Whether what was read has to be handled before more is read."""

    def pause_reading(self, held: bool) -> None:
        self._paused_by_broker = held
        self._update_reading()

    def _update_reading(self) -> None:
        """Read from the client unless something stands against it; a client that is not read from cannot be heard."""
        wanted = not (self._paused_by_broker or self._over_write_limit or self._has_enough_reads)
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._beats.read_at = self._loop.time()
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # -- its end

    def _end_writing(self) -> None:
        """Disconnect the client, which has LINGER_SECONDS to read what it was told last and to close the connection."""
        if self._closing:
            return
        self._closing = True
        self._cancel_timers()
        self._services.clients.disconnect(self.client)
        self._services.request_dispatch()
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._write_ended = True
            self._timers.append(self._loop.call_later(LINGER_SECONDS, self._transport.close))
        else:
            self._transport.close()

    def close(self) -> None:
        self.flush()
        self._closing = True
        self._transport.close()

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    def _on_heart_beat_timeout(self) -> None:
        if self._reading:
            logger.info("%s sent nothing for too long: closing", self.client.id)
            self._transport.abort()

    @property
    def is_closing(self) -> bool:
        return self._closing

    def _cancel_timers(self) -> None:
        self._beats.stop()
        for timer in self._timers:
            timer.cancel()
