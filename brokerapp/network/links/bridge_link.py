"""Connect a bridge to a broker, as its STOMP client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brokerapp.connections.protocol_detection import is_openwire
from brokerapp.errors import ProtocolError
from brokerapp.model.message import escape, unescape
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.network.links.dialect import SLUICE, RemoteDialect, dialect_of
from brokerapp.network.links.sockets import CONNECT_SECONDS, WRITE_HIGH_WATER, TlsContextFactory, connect_socket
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.outbound_rules import OutboundRule
from brokerapp.network.options.size_limits import FrameLimits, read_limits
from brokerapp.stomp.frames import BROKER_LIMITS, CLIENT_LIMITS, Frame, FrameBatch, FrameParser, encode
from brokerapp.stomp.session import BRIDGE_HEADER, LIMITS_HEADER

#: Milliseconds between heart-beats, both ways: a dead end is known after three.
HEARTBEAT_MS = 5_000
SILENT_SECONDS = 3 * HEARTBEAT_MS / 1000
#: What a broker mostly says to a bridge, and in one go: it is read at once instead of frame by frame.
_RECEIPTS = re.compile(rb"(?:\n*RECEIPT\nreceipt-id:[^\n\r]*\n\n\0)+\n*")
_RECEIPT_ID = re.compile(r"receipt-id:([^\n]*)\n")


class OpenWireSpoken(BridgeConnectionLost):
    """The port that was connected to speaks OpenWire."""


async def dial(
    name: str, address: BrokerAddress, trust: TlsContextFactory, outbound: OutboundRule | None = None
) -> BridgeLink:
    """Connect to where a broker listens for STOMP; the link is not open yet. Raises BridgeConnectionLost."""
    patience = address.connect_timeout or CONNECT_SECONDS
    link = BridgeLink(name, patience)
    await connect_socket(link, address, trust, outbound, patience)
    return link


class BridgeLink(asyncio.Protocol):
    """Frames out, frames in by what they are about. Nothing here waits but `open`."""

    def __init__(self, name: str, patience: float | None = None) -> None:
        self.name, self._connect_timeout = name, patience or CONNECT_SECONDS
        self.remote = ""  #: the name of the broker there, as it says itself
        self.dialect: RemoteDialect = SLUICE  #: what it speaks
        self.frame_limits = FrameLimits()  #: of what it takes
        self.on_message_by_subscription: dict[str, Callable[[Frame], None]] = {}  #: subscription -> who is told
        self.on_receipt: Callable[[str], None] = lambda _id: None
        self.on_error: Callable[[Frame], None] = lambda _frame: None
        self.on_writable_changed: Callable[[bool], None] = lambda _free: None  #: whether it takes more for now
        loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = loop.create_future()  #: done when the connection is over: why
        self._connected: asyncio.Future[Frame] = loop.create_future()
        self._loop, self._parser = loop, FrameParser()
        self._out: list[bytes] = []
        self._flushing = False
        self._last_read_at = loop.time()
        self._is_paused = self._speaks_openwire = False
        self._heartbeat_timer: asyncio.TimerHandle | None = None

    async def open(self, headers: Mapping[str, str]) -> None:
        """Log in, as the bridge of the broker named in `headers`. Raises BridgeConnectionLost.

        Nothing is left of it when that fails or is given up: an id that it has could not be had again.
        """
        try:
            await self._log_in(headers)
        except BaseException:
            self.close()
            raise

    async def _log_in(self, headers: Mapping[str, str]) -> None:
        beats = f"{HEARTBEAT_MS},{HEARTBEAT_MS}"
        self.send("CONNECT", {"accept-version": "1.2", "host": "/", "heart-beat": beats, **headers})
        either: set[asyncio.Future[Any]] = {self._connected, self.lost}
        await asyncio.wait(either, timeout=self._connect_timeout, return_when=asyncio.FIRST_COMPLETED)
        if not self._connected.done():
            kind = OpenWireSpoken if self._speaks_openwire else BridgeConnectionLost
            raise kind(self.lost.result() if self.lost.done() else "no reply to CONNECT")
        answer = self._connected.result()
        if answer.command != "CONNECTED":
            raise BridgeConnectionLost(answer.headers.get("message", "the login was rejected"))
        self._parser.version, self._parser.head_limits = "1.2", BROKER_LIMITS
        dialect = dialect_of(answer.headers)
        if dialect is None:
            server = answer.headers.get("server", "a server without a name")
            raise BridgeConnectionLost(f"it is {server}; only Sluice and ActiveMQ Classic are supported")
        self.dialect = dialect
        self.remote = answer.headers.get(BRIDGE_HEADER, "")
        heads = BROKER_LIMITS if dialect.is_sluice else CLIENT_LIMITS  # to an ActiveMQ, a bridge is a client
        try:
            self.frame_limits = read_limits(answer.headers.get(LIMITS_HEADER, "0,0"), heads)
        except ValueError as error:
            raise BridgeConnectionLost(f"invalid reply to CONNECT: {LIMITS_HEADER}: {error}") from error
        if answer.headers.get("heart-beat", "0,0") != "0,0":
            self._heartbeat_timer = self._loop.call_later(HEARTBEAT_MS / 1000, self._on_heartbeat)

    # -- out

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Write a frame, at the end of this tick."""
        self._write(encode(command, headers, body))

    def _write(self, data: bytes) -> None:
        self._out.append(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def subscribe(self, id: str, destination: str, told: Callable[[Frame], None], headers: Mapping[str, str]) -> None:
        """Consume; `told` is called with each MESSAGE."""
        self.on_message_by_subscription[id] = told
        self.send("SUBSCRIBE", {"id": id, "destination": destination, **headers})

    def unsubscribe(self, id: str, headers: Mapping[str, str] | None = None) -> None:
        """End a subscription at the broker."""
        self.on_message_by_subscription.pop(id, None)
        self.send("UNSUBSCRIBE", {"id": id, **(headers or {})})

    def ack(self, ids: Sequence[str], receipt: str | None = None) -> None:
        """Acknowledge what was given under these ids; the receipt comes when all that is stored."""
        if receipt is not None and ids:
            *ids, last = ids
        self._write(b"".join([b"ACK\nid:%b\n\n\0\n" % escape(id).encode() for id in ids]))
        if receipt is not None:
            self.send("ACK", {"id": last, "receipt": receipt})

    def _flush(self) -> None:
        self._flushing = False
        out, self._out = self._out, []
        if out and not self.lost.done():
            self._transport.write(b"".join(out))

    def _on_heartbeat(self) -> None:
        if not self._is_paused and self._loop.time() - self._last_read_at > SILENT_SECONDS:
            self._set_lost("no heart-beats received")
            self._transport.abort()
            return
        self._transport.write(b"\n")
        self._heartbeat_timer = self._loop.call_later(HEARTBEAT_MS / 1000, self._on_heartbeat)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""
        self._loop.call_later(seconds, lambda: None if self.lost.done() else call())

    def close(self, why: str = "closed") -> None:
        """Flush and close the connection, with a reason."""
        if not self.lost.done():
            self._flush()
            self._transport.close()
            self._set_lost(why)

    def pause_reading(self, held: bool) -> None:
        """Read nothing more from it for now, or do: it is not silent while nobody listens."""
        if self._transport.is_closing():
            return
        self._is_paused, self._last_read_at = held, self._loop.time()
        if held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # -- asyncio's side

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)

    def data_received(self, data: bytes) -> None:
        self._last_read_at = self._loop.time()
        if not self._connected.done() and is_openwire(data):
            self._speaks_openwire = True
            self._set_lost("the port speaks OpenWire: use the port of a stomp connector")
            self._transport.abort()
            return
        if self._parser.is_idle and (receipts := _RECEIPTS.match(data)) is not None:
            for each in _RECEIPT_ID.findall(receipts[0].decode()):
                self.on_receipt(unescape(each))
            data = data[receipts.end() :]
        try:
            for frame in self._parser.feed(data):
                self._receive(frame)
        except ProtocolError as error:
            self._set_lost(f"the port does not speak STOMP: {error}")
            self._transport.abort()

    def _receive(self, frame: Frame | FrameBatch) -> None:
        assert isinstance(frame, Frame)  # servers write no runs of SENDs or ACKs
        match frame.command:
            case "MESSAGE":
                told = self.on_message_by_subscription.get(frame.headers.get("subscription", ""))
                if told is not None:
                    told(frame)
            case "RECEIPT":
                self.on_receipt(frame.headers.get("receipt-id", ""))
            case "CONNECTED" | "ERROR" if not self._connected.done():
                self._connected.set_result(frame)
            case "ERROR":
                self.on_error(frame)

    def pause_writing(self) -> None:
        self.on_writable_changed(False)

    def resume_writing(self) -> None:
        self.on_writable_changed(True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_lost(str(exc) if exc else "the connection was closed by the other broker")

    def _set_lost(self, why: str) -> None:
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
        if not self.lost.done():
            self.lost.set_result(why)
