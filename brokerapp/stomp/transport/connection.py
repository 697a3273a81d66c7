"""Pass bytes of a socket to STOMP's session, its commands to the broker, and frames back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from brokerapp.connections.client_connection import ClientConnection
from brokerapp.connections.client_socket import WRITE_HIGH_WATER
from brokerapp.connections.connector_state import ConnectorState
from brokerapp.connections.protocol_detection import detect_protocol
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import BrokerError, ProtocolError, RequestRefused
from brokerapp.model.commands import ConnectCommand
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.stomp.frames import BROKER_LIMITS, Frame, FrameBatch, FrameParser
from brokerapp.stomp.message_frames import MessageFrames
from brokerapp.stomp.naming import DestinationNaming
from brokerapp.stomp.session import StompSession

logger = logging.getLogger(__name__)

#: Longest body before the client has connected: a CONNECT has none.
MAX_CONNECT_BODY_BYTES = 1024
#: Characters of what a client wrote that the log shows.
MAX_LOGGED_CHARACTERS = 80


class StompConnection(ClientConnection[Frame | FrameBatch]):
    """Socket of one STOMP client, and the sink through which the broker sends to it."""

    def __init__(self, connector: ConnectorState) -> None:
        super().__init__(connector)
        limits = connector.limits
        self._parser = FrameParser(MAX_CONNECT_BODY_BYTES, limits.max_frame)
        self._session = StompSession(DestinationNaming(self._own_temporary, connector.conventions), limits)
        self._is_first = True  # nothing came from it yet
        self._has_warned = False  # of a header line of its that is passed over: once is enough

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._messages = MessageFrames(self._session, self.client)

    @property
    def _is_connected(self) -> bool:
        return self._session.state != "new"

    @property
    def frame_limit(self) -> int:
        """Bytes the next frame may have at most, roughly: whoever collects them need not collect more."""
        return self._parser.max_body + self._parser.head_limits.head

    def _own_temporary(self, kind: DestinationKind, name: str) -> Destination:
        return self._services.own_temporary(self.client, kind, name)

    # -- what the client asks

    def _parse(self, *reads: bytes) -> Iterator[Frame | FrameBatch]:
        if self._is_first and self._is_foreign(reads[0]):
            return iter(())
        return self._parser.feed(*reads)

    def _is_foreign(self, beginning: bytes) -> bool:
        """Whether the client's first bytes are of another protocol: then the log says so, and the connection ends."""
        self._is_first, protocol = False, detect_protocol(beginning)
        if protocol is None:
            return False
        address = self.client.remote_address
        if self._connector.foreign_clients.count_to_report((protocol, address.rpartition(":")[0]), self._loop.time()):
            name, served = self._connector.name, self._connector.transport.protocols
            logger.warning(
                "connector %s: the client at %s speaks %s: only %s is served here", name, address, protocol, served
            )
        self.close()
        return True

    def _receive(self, frame: Frame | FrameBatch) -> None:
        session = self._session
        if frame.ignored_lines and not self._has_warned:
            self._has_warned = True
            line = frame.ignored_lines[0][:MAX_LOGGED_CHARACTERS]
            logger.warning("%s: header line %r of %s has no colon: passed over", self.client.id, line, frame.command)
        try:
            action = session.receive(frame) if isinstance(frame, Frame) else session.receive_batch(frame)
            self._perform(action)
        except RequestRefused as error:
            self.publish()  # what came before
            self.refuse(error, frame.receipt)
            self._services.dispatcher.wake(self.client)
        except ProtocolError as error:
            error.receipt = frame.receipt  # type: ignore[attr-defined]
            raise

    def _connect(self, _client: Client, connect: ConnectCommand) -> None:
        self._parser.max_body = self._connector.limits.max_body
        self._parser.version = self.client.protocol_version = self._session.version
        super()._connect(_client, connect)

    def _on_accepted(self, connect: ConnectCommand) -> None:
        client, session = self.client, self._session
        if client.is_broker:
            self._parser.head_limits = BROKER_LIMITS
        session.user_headers = self._services.login.user_headers(connect.login, client.principal)
        self._out.append(session.connected(connect.headers, client.client_id, self._services.name))
        grace = self._connector.limits.heart_beat_grace
        self._beats.start(self._loop, session.heart_beat, grace, self._beat, self._on_heart_beat_timeout)

    def _beat(self) -> None:
        self._out.append(b"\n")
        self.flush()

    # -- the broker's side: Sink

    def deliver(self, subscription: Subscription, entries: Sequence[LogEntry], ack_ids: Sequence[str]) -> None:
        self._out_size += self._messages.write(self._out, subscription, entries, ack_ids)
        if self._out_size > WRITE_HIGH_WATER:
            self.flush()  # so that a socket that is full says so before more is given to it

    def end_of_browse(self, subscription: Subscription) -> None:
        names = (self.client.temporary_names.get(each.stomp, each.stomp) for each in subscription.destinations)
        self._out.append(self._session.server_frames.end_of_browse(",".join(names), subscription.id))

    def receipts(self, ids: Sequence[str]) -> None:
        self._out.append(self._session.server_frames.receipts(ids))

    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        self._out.append(self._session.server_frames.error(error, receipt))

    def heart_beat_times(self) -> tuple[int, int, int]:
        return *self._session.heart_beat, round((self._loop.time() - self._beats.read_at) * 1000)
