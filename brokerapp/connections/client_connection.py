"""ClientConnection: what one client says, in any protocol.

It admits the connection, checks the login, and performs what is read as commands. The socket is ClientSocket's, what is
read and written the protocol's: see `brokerapp/stomp/transport` and `brokerapp/openwire/transport`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from brokerapp.connections.client_socket import ClientSocket
from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import ANONYMOUS, Principal
from brokerapp.errors import BrokerError, LimitExceeded, ProtocolError
from brokerapp.model.commands import (
    AckBatchCommand,
    ClientCommand,
    ConnectCommand,
    DisconnectCommand,
    SendBatchCommand,
    SubscribeCommand,
)

logger = logging.getLogger(__name__)

#: Bytes read of a client and not handled yet from which no more are read.
UNHANDLED_BYTES = 1024 * 1024
#: Commands that are gathered while others of the same kind follow.
GATHERED = (SendBatchCommand, AckBatchCommand)
#: What a read is divided into: frames, or batches of them.
F = TypeVar("F")


class ClientConnection(ClientSocket, Generic[F]):
    """Connection of one client: handles what it reads, and performs what the client asks."""

    def __init__(self, connector: ConnectorState) -> None:
        super().__init__(connector)
        self._handlers: dict[type[ClientCommand], Callable[[Client, Any], None]] = {
            **self._services.commands,
            ConnectCommand: self._connect,
            DisconnectCommand: self._disconnect,
        }
        if connector.limits.max_consumers is not None:
            self._handlers[SubscribeCommand] = self._subscribe
        self._reads: list[bytes] = []  # that are not handled yet
        self._read_size = 0  # bytes in them
        self._gathered: SendBatchCommand | AckBatchCommand | None = None  # what came last, and nothing followed so far
        self._unread_frames: Iterator[F] | None = None  # what is left of a read while a login is checked
        self._login: asyncio.Task[None] | None = None
        self._requested_login: ConnectCommand | None = None
        self._is_counted = False  # among the connections of the connector

    # -- the protocol's

    @abstractmethod
    def _parse(self, *reads: bytes) -> Iterator[F]:
        """Return what can be read now that these bytes came, in this order."""

    @abstractmethod
    def _receive(self, frame: F) -> None:
        """Perform what the client asks. Raises ProtocolError."""

    @abstractmethod
    def _on_accepted(self, connect: ConnectCommand) -> None:
        """Tell the client that it is connected."""

    @property
    @abstractmethod
    def _is_connected(self) -> bool:
        """Whether the client has asked to be connected."""

    @abstractmethod
    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        """Report that a request was refused."""

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._connector.is_stopping:
            self.close()
            return
        if self._connector.is_full:
            self._refuse_connection()
            return
        self._connector.connection_count += 1
        self._connector.accepted_count += 1
        self._connector.open_connections.add(self)
        self._is_counted = True
        if patience := self._connector.limits.connect_ms:
            self._timers.append(self._loop.call_later(patience / 1000, self._on_connect_timeout))

    def _refuse_connection(self) -> None:
        connector = self._connector
        connector.refused_count += 1
        limit = connector.limits.max_connections
        self._fail(ProtocolError(f"{connector.name} takes at most {limit} connections (maximumConnections)"))

    def _on_connect_timeout(self) -> None:
        if not self._is_connected:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._beats.read_at = self._loop.time()
        if self._closing:
            return
        if not self._reads and self._login is None:
            self._services.read_turns.add(self)
        self._reads.append(data)
        self._read_size += len(data)
        if self._read_size >= UNHANDLED_BYTES:
            self._update_reading()

    def eof_received(self) -> None:
        """Handle what came before the end, while it can still be answered."""
        self._handle_reads_now()

    def _handle_reads_now(self) -> None:
        self.handle_reads(sys.maxsize)
        self.publish()
        self._services.request_dispatch()

    @property
    def _has_enough_reads(self) -> bool:
        return self._login is not None or self._read_size >= UNHANDLED_BYTES

    @property
    def has_reads(self) -> bool:
        """Return whether something was read that can be handled and is not yet."""
        return bool(self._reads) and self._login is None  # else no more is handled until it is checked

    def handle_reads(self, limit: int) -> int:
        """Handle what was read, up to the read that reaches this number of bytes; return the number of bytes.

        Messages with which it ends are published by `publish`.
        """
        size = 0
        if self.has_reads:
            reads, size = self._take_reads(limit)
            self._consume(self._parse(*reads))
        if isinstance(self._gathered, AckBatchCommand):
            self.publish()
        return size

    def _take_reads(self, limit: int) -> tuple[list[bytes], int]:
        """Return the reads up to the one that reaches this number of bytes, which then wait no more, and their size."""
        reads, size, was_full = self._reads, self._read_size, self._read_size >= UNHANDLED_BYTES
        if size <= limit:
            self._reads = []
        else:
            ends = itertools.accumulate(map(len, reads))
            count, size = next((count, end) for count, end in enumerate(ends, start=1) if end >= limit)
            reads, self._reads = reads[:count], reads[count:]
        self._read_size -= size
        if was_full:
            self._update_reading()
        return reads, size

    def _consume(self, frames: Iterator[F]) -> None:
        if self._closing:
            return
        try:
            for frame in frames:
                self._receive(frame)
                if self._login is not None:
                    self._unread_frames = frames
                    break
                if self._closing:
                    break
        except Exception as error:
            self.publish()  # what came before
            self._end_because_of(error)

    def _perform(self, command: ClientCommand) -> None:
        """Let the broker do what the client asks; messages that come one after the other are one batch, and acks."""
        if self._gathered is not None:
            if self._gathered.extend(command):
                return
            self.publish()
            if self._closing:
                return
        if isinstance(command, GATHERED):
            self._gathered = command
        else:
            self._handlers[type(command)](self.client, command)

    def publish(self) -> None:
        """Publish messages of the client that nothing followed so far, or settle its acknowledgements."""
        gathered, self._gathered = self._gathered, None
        if gathered is None:
            return
        try:
            self._handlers[type(gathered)](self.client, gathered)
        except Exception as error:
            self._end_because_of(error)

    def _end_because_of(self, error: Exception) -> None:
        """End the connection of a client that broke the protocol, or after a fault of ours, which is logged."""
        if not isinstance(error, ProtocolError):
            logger.error("a frame of %s could not be handled", self.client.id, exc_info=error)
            error = ProtocolError("internal error: see the broker's log")
        self._fail(error)

    def _fail(self, error: ProtocolError) -> None:
        """Tell the client about a broken protocol and close the connection."""
        self._log_refused_login(error)
        self.refuse(error, getattr(error, "receipt", None))
        self.flush()
        self._end_writing()

    def _log_refused_login(self, error: ProtocolError) -> None:
        """Log why a client that has not logged in is refused."""
        if not self._closing and self.client not in self._services.clients:
            self._services.login.log_refusal(self._connector.name, self.client, self._requested_login, error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._handle_reads_now()
        self._closing = True
        if self._is_counted:
            self._connector.connection_count -= 1
            self._connector.open_connections.discard(self)
        self._cancel_timers()
        if self._login is not None:
            self._login.cancel()
        self._services.clients.disconnect(self.client)
        self._services.request_dispatch()

    # -- what the client asks

    def _connect(self, _client: Client, connect: ConnectCommand) -> None:
        self._requested_login = connect
        login = self._services.login
        if self._connector.authenticate is None and not login.must_claim_client_id(self.client, connect):
            self._identify(connect, ANONYMOUS)
            self._accept(connect)
            return
        self._login = self._loop.create_task(self._log_in(connect))
        self._update_reading()

    async def _log_in(self, connect: ConnectCommand) -> None:
        """Check the password and claim the client id, while the client waits."""
        try:
            login, connector = self._services.login, self._connector
            principal = await login.authenticate(connector.authenticate, self.client, connect)
            if self._closing:
                return
            self._identify(connect, principal)
            await login.claim_client_id(
                self.client, connect, lambda: self._accept(connect), steal=connector.limits.allow_link_stealing
            )
        except ProtocolError as error:
            self._fail(error)
            return
        finally:
            self._login = None
        frames, self._unread_frames = self._unread_frames, None
        if frames is not None:
            self._consume(frames)
        self._handle_reads_now()
        self._update_reading()

    def _identify(self, connect: ConnectCommand, principal: Principal) -> None:
        self._handlers |= self._services.login.identify(self.client, connect, principal)

    def _accept(self, connect: ConnectCommand) -> None:
        """Let it in, unless it went away meanwhile. Raises ProtocolError where its client id is taken."""
        if self._closing:
            return
        self._services.login.register(self.client, connect, steal=self._connector.limits.allow_link_stealing)
        self._on_accepted(connect)
        self._services.dispatcher.wake(self.client)

    def _subscribe(self, client: Client, subscribe: SubscribeCommand) -> None:
        limit = self._connector.limits.max_consumers
        if limit is not None and len(client.subscriptions) >= limit:
            raise LimitExceeded(f"a connection has at most {limit} consumers (maximumConsumersAllowedPerConnection)")
        self._services.commands[SubscribeCommand](client, subscribe)

    def _disconnect(self, _client: Client, disconnect: DisconnectCommand) -> None:
        self._services.clients.leave(self.client, disconnect.receipt, self.close)
        self._closing = True

    def stop(self) -> None:
        """Take no more commands; what was asked is still done. Clients that have not logged in are closed."""
        if self.client in self._services.clients:
            self.client.is_stopping = True
            self.client.update_reading()
        elif not self._closing:
            self.close()

    def resume(self) -> None:
        self.client.is_stopping = False
        self.client.update_reading()

    def tell_cluster_brokers(self) -> None:
        """Tell the client of the broker's nodes, where its protocol can."""

    @property
    def is_settled(self) -> bool:
        client = self.client
        is_busy = self.has_reads or self._login or client.transactions or client.pending_writes or client.blocked_sends
        return not is_busy and not any(each.unacked for each in client.subscriptions.values())

    def send_away(self, addresses: Sequence[str]) -> None:
        self.flush()
        self._end_writing()
        self.pause_reading(held=False)  # what comes is dropped, and the end is noticed
