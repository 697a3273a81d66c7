"""Connect to an ActiveMQ as a bridge over OpenWire: the client's side of the protocol, without what bridges do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol
from uuid import uuid4

from brokerapp.errors import OpenWireError
from brokerapp.model.transport_connector import MAX_BODY_BYTES, OpenWireSettings
from brokerapp.network.links.broker_link import BridgeConnectionLost, BridgeLogin, LinkEvents
from brokerapp.network.links.sockets import CONNECT_SECONDS, WRITE_HIGH_WATER
from brokerapp.openwire.codec import Codec, FrameSplitter
from brokerapp.openwire.commands import (
    BrokerId,
    BrokerInfo,
    ConnectionError,
    ConnectionId,
    ConnectionInfo,
    DataStructure,
    ExceptionResponse,
    KeepAliveInfo,
    MessageDispatch,
    ProducerId,
    ProducerInfo,
    Response,
    SessionId,
    SessionInfo,
    ShutdownInfo,
    WireFormatInfo,
)
from brokerapp.openwire.wire_format_options import WireFormatOptions

logger = logging.getLogger(__name__)

#: The number of the only session, and of its only producer.
SESSION = PRODUCER = 1
#: The longest frame, bytes, that is taken, and announced: a body as long as Sluice stores them, and what is around it.
MAX_FRAME_BYTES = MAX_BODY_BYTES + 1024 * 1024
#: In such a part of the time after which either side is given up this one looks, and says something where it is silent:
#: an ActiveMQ looks once in that time whether something came since it last looked.
_KEEP_ALIVE_SHARE = 3
_SILENT = "nothing received for {:g} s"
#: The highest number of a command: a Java int. The next one is 1.
_MAX_COMMAND_ID = 2**31 - 1


class NumberedCommand(DataStructure, Protocol):
    """A command that may be answered."""

    command_id: int
    response_required: bool


class OpenWireConnection(asyncio.Protocol):
    """Commands out, commands in. Nothing here waits but `open`."""

    def __init__(self, name: str, settings: OpenWireSettings, patience: float | None = None) -> None:
        self.name, self._connect_timeout = name, patience or CONNECT_SECONDS
        self.remote, self.remote_id = "", ""  #: name and id of the broker there
        self.client_id = ""  #: with which this side logged in
        self.max_frame_size = MAX_FRAME_BYTES  #: of the frames that it takes
        self.connection_id = ConnectionId(f"ID:sluice-{uuid4()}")
        self.producer_id = ProducerId(self.connection_id.value, PRODUCER, SESSION)
        self.on_dispatch: Callable[[MessageDispatch], None] = lambda _dispatch: None
        self.events = LinkEvents(lambda _id: None, lambda _id, _why: None, lambda _free: None)
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()  #: done when the connection is over: why
        self._own = WireFormatOptions(
            version=settings.version,
            tight_encoding_enabled=settings.tight_encoding,
            cache_enabled=settings.cache,
            cache_size=1024,
            tcp_no_delay_enabled=True,
            max_inactivity_duration=settings.max_inactivity_ms,
            max_inactivity_duration_initial_delay=settings.initial_delay_ms,
            max_frame_size=MAX_FRAME_BYTES,
            provider_name="Sluice",
        )
        self._peer = WireFormatOptions()  # what it announced
        self._codec, self._splitter = Codec(), FrameSplitter(MAX_FRAME_BYTES)
        self._negotiated: asyncio.Future[None] = self._loop.create_future()
        self._introduced: asyncio.Future[None] = self._loop.create_future()
        self._receipts: dict[int, str] = {}  # by the number of the command that is to be answered
        self._logged_in: asyncio.Future[str] = self._loop.create_future()  # why not, or ""
        self._command_count = 0
        self._out: list[bytes] = []
        self._is_flush_due = self._is_paused = False
        self._read_at = self._wrote_at = self._loop.time()
        self._silence_seconds = 0.0  # after which the broker is given up; 0: never
        self._timer: asyncio.TimerHandle | None = None

    # -- login

    async def open(self, login: BridgeLogin) -> None:
        """Log in as a bridge. Raises BridgeConnectionLost."""
        try:
            async with asyncio.timeout(self._connect_timeout):
                await self._or_lost(self._negotiated)
                await self._or_lost(self._introduced)
                self._introduce(login)
                await self._or_lost(self._logged_in)
        except TimeoutError:
            self.close()
            raise BridgeConnectionLost("no reply to the login over OpenWire") from None
        except BaseException:
            self.close()
            raise
        if why := self._logged_in.result():
            self.close()
            raise BridgeConnectionLost(why)

    async def _or_lost(self, awaited: asyncio.Future[Any]) -> None:
        """Wait for something. Raises BridgeConnectionLost where the connection ends before."""
        either: set[asyncio.Future[Any]] = {awaited, self.lost}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not awaited.done():
            raise BridgeConnectionLost(self.lost.result())

    def _introduce(self, login: BridgeLogin) -> None:
        """Say whose bridge this is, in the order in which an ActiveMQ says it."""
        self.send(
            BrokerInfo(
                broker_id=BrokerId(login.broker),
                broker_name=login.broker,
                network_connection=True,
                network_properties="",
            )
        )
        user, password = login.user or (None, None)
        self.client_id = login.client_id
        info = ConnectionInfo(
            connection_id=self.connection_id, client_id=login.client_id, password=password, user_name=user
        )
        self.send(info, receipt="login")
        session = SessionId(self.connection_id.value, SESSION)
        self.send(SessionInfo(session_id=session))
        self.send(ProducerInfo(producer_id=self.producer_id))

    # -- out

    def send(self, command: NumberedCommand, receipt: str | None = None) -> None:
        """Write a command, at the end of this tick; the broker answers it where there is a receipt.

        Raises OpenWireError for one that cannot be encoded.
        """
        self._command_count = command.command_id = self._command_count % _MAX_COMMAND_ID + 1
        command.response_required = receipt is not None
        self._write(command)
        if receipt is not None:
            self._receipts[command.command_id] = receipt

    def _write(self, command: DataStructure) -> None:
        self._out.append(self._codec.encode(command))
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        out, self._out = self._out, []
        if out and not self.lost.done():
            self._wrote_at = self._loop.time()
            self._transport.write(b"".join(out))

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""
        self._loop.call_later(seconds, lambda: None if self.lost.done() else call())

    def close(self, why: str = "closed") -> None:
        """Say good-bye, flush and close the connection, with a reason."""
        if not self.lost.done():
            if self._negotiated.done():
                self._write(ShutdownInfo())
            self._flush()
            self._transport.close()
            self._set_lost(why)

    def pause_reading(self, held: bool) -> None:
        """Read nothing more from it for now, or do: it is not silent while nobody listens."""
        if self._transport.is_closing():
            return
        self._is_paused, self._read_at = held, self._loop.time()
        if held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _on_time(self) -> None:
        """Show that this side lives, and see whether the other one does."""
        now, silence = self._loop.time(), self._silence_seconds
        if not self._is_paused and now - self._read_at > silence:
            self._end(_SILENT.format(silence))
            return
        if now - self._wrote_at >= silence / _KEEP_ALIVE_SHARE / 2:
            self._write(KeepAliveInfo())
        self._timer = self._loop.call_later(silence / _KEEP_ALIVE_SHARE, self._on_time)

    # -- asyncio's side

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        self._write(self._own.to_info())

    def data_received(self, data: bytes) -> None:
        self._read_at = max(self._read_at, self._loop.time())
        try:
            for frame in self._splitter.feed(data):
                self._receive(self._codec.decode(frame))
        except OpenWireError as error:
            self._end(f"the port does not speak OpenWire as expected: {error}")

    def _receive(self, command: Any) -> None:
        match command:
            case MessageDispatch():
                self.on_dispatch(command)
            case ExceptionResponse():
                why = (command.exception and command.exception.message) or "refused without a reason"
                self._answer(command.correlation_id, why)
            case Response():
                self._answer(command.correlation_id, None)
            case KeepAliveInfo():
                if command.response_required:
                    self.send(KeepAliveInfo())
            case WireFormatInfo():
                self._negotiate(WireFormatOptions.of(command))
            case BrokerInfo():
                self._on_broker_info(command)
            case ConnectionError():
                self.events.on_refused("", (command.exception and command.exception.message) or "connection error")
            case ShutdownInfo():
                self._end("the other broker is shutting down")

    def _answer(self, number: int, refusal: str | None) -> None:
        receipt = self._receipts.pop(number, None)
        if receipt is None:
            return
        if not self._logged_in.done():  # the first command that is answered
            self._logged_in.set_result(refusal or "")
        elif refusal is None:
            self.events.on_receipt(receipt)
        else:
            self.events.on_refused(receipt, refusal)

    def _negotiate(self, offered: WireFormatOptions) -> None:
        if self._negotiated.done():
            raise OpenWireError("WireFormatInfo on a connection that has agreed upon its format already")
        self._flush()  # what was written before has the format of none
        self._peer, agreed = offered, self._own.agreed_with(offered)
        self.max_frame_size = agreed.max_frame_size or MAX_FRAME_BYTES
        self._codec = Codec(
            agreed.version, max_frame_size=self.max_frame_size,
            tight=agreed.tight_encoding_enabled, cached=agreed.cache_enabled,
        )  # fmt: skip
        self._silence_seconds = agreed.max_inactivity_duration / 1000
        if self._silence_seconds > 0:
            # the other side shows signs of life from then on
            self._read_at += agreed.max_inactivity_duration_initial_delay / 1000
            self._timer = self._loop.call_later(self._silence_seconds / _KEEP_ALIVE_SHARE, self._on_time)
        self._negotiated.set_result(None)

    def _on_broker_info(self, info: BrokerInfo) -> None:
        if not self._introduced.done():
            self.remote = info.broker_name or ""
            self.remote_id = str(info.broker_id.value or "") if info.broker_id is not None else ""
            self._introduced.set_result(None)

    def pause_writing(self) -> None:
        self.events.on_writable_changed(False)

    def resume_writing(self) -> None:
        self.events.on_writable_changed(True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_lost(str(exc) if exc else "the connection was closed by the other broker")

    def _end(self, why: str) -> None:
        self._set_lost(why)
        self._transport.abort()

    def _set_lost(self, why: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.lost.done():
            self.lost.set_result(why)
