"""Pass commands of OpenWire between a socket and the session, and the session's commands to the broker."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator, Sequence

from brokerapp.connections.client_connection import ClientConnection
from brokerapp.connections.client_socket import WRITE_HIGH_WATER
from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import BrokerError, OpenWireError, ProtocolError, RequestRefused
from brokerapp.model.commands import (
    ClientCommand,
    ConnectCommand,
    DisconnectCommand,
    PrefetchCommand,
    PullCommand,
    SubscribeCommand,
    WindowCommand,
)
from brokerapp.openwire.codec import Codec, FrameSplitter
from brokerapp.openwire.commands import (
    BaseCommand,
    BrokerId,
    BrokerInfo,
    ConnectionControl,
    ConnectionError,
    ConsumerControl,
    ConsumerId,
    DataStructure,
    ExceptionResponse,
    KeepAliveInfo,
    MessageDispatch,
    WireFormatInfo,
)
from brokerapp.openwire.session.bridges import (
    DURABLE_SYNC_VERSION,
    ConnectingBridge,
    durable_subscriptions_info,
    with_ids,
)
from brokerapp.openwire.session.consumers import Delivery, OpenWireConsumer
from brokerapp.openwire.session.exceptions import throwable
from brokerapp.openwire.session.outgoing_messages import message_dispatch
from brokerapp.openwire.session.producer_windows import producer_ack
from brokerapp.openwire.session.session import OpenWireSession, receipt_of
from brokerapp.openwire.transport.duplex import BridgeBack, DuplexBridges
from brokerapp.openwire.transport.negotiation import (
    MAX_BRIDGE_LOGIN_FRAME_SIZE,
    MAX_LOGIN_FRAME_SIZE,
    codec_for,
    keep_alive_times,
    own_options,
)
from brokerapp.openwire.wire_format_options import WireFormatOptions

logger = logging.getLogger(__name__)

#: Bytes that a client may send before it notices that it is not read from: most of its sends await no answer, and Linux
#: would let it have sent some megabytes. ActiveMQ's default is half of it.
RECEIVE_BUFFER_BYTES = 128 * 1024
#: Seconds that a client has to close the socket when its connection is over.
SHUTDOWN_SECONDS = 2.0


#: Commands of the broker that it does at once, and confirms to nobody.
UNCONFIRMED = frozenset((WindowCommand, PrefetchCommand, PullCommand))


def greeting(connector: ConnectorState) -> bytes:
    """Return what the broker says first: what it can do."""
    return Codec().encode(own_options(connector.limits).to_info())


class OpenWireConnection(ClientConnection[BaseCommand]):
    """Socket of one OpenWire client, and the sink through which the broker sends to it."""

    def __init__(
        self, connector: ConnectorState, duplex_bridges: DuplexBridges | None = None, *, is_greeted: bool = False
    ) -> None:
        """`is_greeted`: the client was sent the greeting already."""
        super().__init__(connector)
        self._is_greeted = is_greeted
        self._duplex_bridges = duplex_bridges
        self._bridge_back: BridgeBack | None = None
        self._session = OpenWireSession(
            broker=self._services.name,
            node=self._services.session,
            broker_ids=self._services.broker_ids,
            max_producers=connector.limits.max_producers,
            max_body=connector.limits.max_body,
        )
        self._options = own_options(connector.limits)
        self._codec = Codec()
        self._splitter = FrameSplitter(MAX_LOGIN_FRAME_SIZE)
        self._is_negotiated = False
        self._delivery_count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection, and say first what this side can do."""
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if not self._is_greeted:
            self._write(self._options.to_info())
        super().connection_made(transport)
        self.client.on_branch_ended = self._on_branch_ended
        self.flush()

    @property
    def _is_connected(self) -> bool:
        return self._session.connection is not None

    # -- what the client says

    def _parse(self, *reads: bytes) -> Iterator[BaseCommand]:
        for frame in self._splitter.feed(b"".join(reads)):
            yield self._codec.decode(frame)

    def _receive(self, frame: BaseCommand) -> None:
        if isinstance(frame, WireFormatInfo):
            self._negotiate(frame)
            return
        if isinstance(frame, KeepAliveInfo):
            if frame.response_required:
                self._beat()
            return
        if self._bridge_back is not None and self._bridge_back.receive(frame):
            self._confirm(frame)
            return
        try:
            self._handle(frame)
        except RequestRefused as error:
            self.publish()  # what came before
            self._session.on_refused(frame)
            self.refuse(error, receipt_of(frame))
            self._services.dispatcher.wake(self.client)
        except ProtocolError as error:
            if isinstance(frame, BaseCommand):
                error.receipt = receipt_of(frame)  # type: ignore[attr-defined]
            raise

    def _handle(self, frame: BaseCommand) -> None:
        """Let the broker do what a command asks."""
        commands = self._session.receive(frame)
        if isinstance(frame, BrokerInfo) and self._session.bridge is not None:
            self._splitter.max_frame_size = MAX_BRIDGE_LOGIN_FRAME_SIZE
        for each in commands:
            self._perform(each)
        if frame.response_required and UNCONFIRMED.issuperset(map(type, commands)):
            self._confirm(frame)

    def _perform(self, command: ClientCommand) -> None:
        super()._perform(command)
        if isinstance(command, SubscribeCommand):
            self._tell_to_pull(str(command.id))

    def _tell_to_pull(self, name: str) -> None:
        """Tell the library of a client that counts on a prefetch that it has none, as a policy has it."""
        subscription, consumer = self.client.subscriptions.get(name), self._consumer_named(name)
        if (
            subscription is not None
            and consumer is not None
            and consumer.info.prefetch_size
            and not subscription.prefetch
        ):
            self._write(ConsumerControl(consumer_id=consumer.id, prefetch=0))
            self._services.dispatcher.wake(self.client)

    def _consumer_named(self, name: str) -> OpenWireConsumer | None:
        return self._session.consumers.get(ConsumerId.parse(name))

    def _disconnect(self, _client: Client, disconnect: DisconnectCommand) -> None:
        """End the client's connection, after which it closes the socket itself."""
        if disconnect.receipt is None:
            super()._disconnect(_client, disconnect)
            return
        self._services.clients.leave(self.client, disconnect.receipt, self.flush)
        self._closing = True  # what it says behind this is not done: nobody would end it
        self._timers.append(self._loop.call_later(SHUTDOWN_SECONDS, self.close))

    def _fail(self, error: ProtocolError) -> None:
        """Say why, and close the socket a moment later: a client that is refused wants to end in its own way."""
        connection = self._session.connection
        if connection is not None and self.client not in self._services.clients:  # its login failed
            error.receipt = receipt_of(connection)  # type: ignore[attr-defined]
        if self.client not in self._services.clients:
            self._log_refused_login(error)
        elif isinstance(error, OpenWireError):
            logger.warning("connector %s: the connection of %s ends: %s", self._connector.name, self.client.id, error)
        self.refuse(error, getattr(error, "receipt", None))
        self.flush()
        if not self._closing:
            self._closing = True
            self._cancel_timers()
            self._services.clients.disconnect(self.client)
            self._services.request_dispatch()
            self._timers.append(self._loop.call_later(SHUTDOWN_SECONDS, self._transport.close))

    def _confirm(self, frame: BaseCommand) -> None:
        """Answer a command that needed nothing of the broker."""
        if frame.response_required:
            self.receipts([str(frame.command_id)])
            self._services.dispatcher.wake(self.client)

    def _negotiate(self, offered: WireFormatInfo) -> None:
        if self._is_negotiated:
            raise ProtocolError("WireFormatInfo on a connection that has agreed upon its format already")
        self._is_negotiated = True
        self._options = agreed = self._options.agreed_with(WireFormatOptions.of(offered))
        self._codec = codec_for(agreed)
        self.client.is_openwire, self.client.protocol_version = True, f"OpenWire {agreed.version}"
        grace = self._connector.limits.heart_beat_grace
        self._beats.start(self._loop, keep_alive_times(agreed), grace, self._beat, self._on_heart_beat_timeout)
        name = self._services.name
        self._write(BrokerInfo(broker_id=BrokerId(name), broker_name=name, broker_url=self._connector.address))
        self.flush()

    def _on_accepted(self, connect: ConnectCommand) -> None:
        limits = self._connector.limits
        self._splitter.max_frame_size = limits.max_frame or limits.max_body
        self._session.user_headers = self._services.login.user_headers(connect.login, self.client.principal)
        if (bridge := self._session.bridge) is not None:
            self._join(bridge)
        else:
            self._write(self._cluster_brokers())  # the bridge of an ActiveMQ warns of a command that it does not expect
        if self._session.connection is not None:
            self._confirm(self._session.connection)

    def _join(self, bridge: ConnectingBridge) -> None:
        """Know the broker whose bridge this is by its id from now on, and tell it what it asks for."""
        services = self._services
        services.broker_ids.learn(bridge.broker_id, bridge.broker)
        if bridge.wants_durable_subscriptions and self._options.version >= DURABLE_SYNC_VERSION:
            self._write(durable_subscriptions_info(services.name, services.durable_subscriptions()))
        if bridge.is_duplex and self._duplex_bridges is not None:
            self._bridge_back = self._duplex_bridges.start(bridge, self)

    # -- what the client is told

    def _write(self, command: DataStructure) -> None:
        self._out.append(self._codec.encode(command))

    def send(self, command: DataStructure) -> None:
        """Write a command of the bridge back, at the end of this tick."""
        if not self._out:
            self._loop.call_soon(self.flush)
        self._write(command)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._bridge_back is not None:
            self._bridge_back.set_writable(False)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._bridge_back is not None:
            self._bridge_back.set_writable(True)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        bridge_back, self._bridge_back = self._bridge_back, None
        if bridge_back is not None:
            bridge_back.end()

    def _cluster_brokers(self) -> ConnectionControl:
        brokers = self._connector.cluster_brokers
        return ConnectionControl(connected_brokers=brokers.next_list(), rebalance_connection=brokers.rebalances)

    def tell_cluster_brokers(self) -> None:
        """Tell the client which nodes serve the broker now."""
        if self.client in self._services.clients and self._session.bridge is None:
            self._write(self._cluster_brokers())
            self.flush()

    def send_away(self, addresses: Sequence[str]) -> None:
        if addresses and self.client in self._services.clients and self._session.bridge is None:
            self._write(ConnectionControl(connected_brokers=",".join(addresses), rebalance_connection=True))
        super().send_away(addresses)

    def _beat(self) -> None:
        self._write(KeepAliveInfo())
        self.flush()

    def deliver(self, subscription: Subscription, entries: Sequence[LogEntry], ack_ids: Sequence[str]) -> None:
        """Messages of a consumer."""
        consumer = self._consumer_named(subscription.name)
        if consumer is None:
            return
        bridge = self._session.bridge
        first = self._delivery_count + 1
        self._delivery_count += len(entries)
        if ack_ids:
            ids = [entry.message.id for entry in entries]
            consumer.hold(ids, ack_ids, first, pulls=not subscription.prefetch)
            if self.client.blocked_sends:
                self.client.update_reading()
        for number, entry in enumerate(entries, first):
            try:
                dispatch = message_dispatch(consumer, entry, number)
                self._write(dispatch if bridge is None else with_ids(dispatch, self._services.broker_ids))
            except OpenWireError as error:  # it cannot be told: the connection ends, and another client may get it
                self._loop.call_soon(self._fail, error)
                return
            except Exception:  # a fault of ours ends this client's connection, not the node
                logger.exception("a message could not be told to %s", self.client.id)
                self._loop.call_soon(self._fail, ProtocolError("internal error: see the broker's log"))
                return
            self._out_size += len(entry.message.body)
            if self._out_size > WRITE_HIGH_WATER:
                self.flush()

    def end_of_browse(self, subscription: Subscription) -> None:
        """A browser has got all: a dispatch without a message says so."""
        consumer = self._consumer_named(subscription.name)
        if consumer is not None:
            self._write(MessageDispatch(consumer_id=consumer.id, destination=consumer.destination))

    def receipts(self, ids: Sequence[str]) -> None:
        """Confirm commands."""
        for each in ids:
            self._write(producer_ack(each) or self._session.transactions.response(each))

    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        """Report that a command was refused."""
        if receipt is not None and (freed := producer_ack(receipt)) is not None:
            self._write(freed)
            receipt = None  # its producer waits for no answer
        if receipt is not None:
            self._session.transactions.on_refused(receipt, self._is_held)
            self._write(ExceptionResponse(correlation_id=int(receipt), exception=throwable(error)))
        else:
            connection = self._session.connection
            self._write(
                ConnectionError(
                    exception=throwable(error), connection_id=connection.connection_id if connection else None
                )
            )

    def _on_branch_ended(self, branch: str) -> None:
        """Know what consumers hold now that a branch in which they acknowledged messages is over."""
        self._session.transactions.on_branch_ended(branch, self._is_held)

    def _is_held(self, delivery: Delivery) -> bool:
        """Whether a consumer holds a delivery, as far as the broker knows."""
        try:
            return self.client.find_unacked(delivery.ack_id, None) is not None
        except RequestRefused:
            return False

    def heart_beat_times(self) -> tuple[int, int, int]:
        """Milliseconds: between our heart-beats, between its own, and since something came from it."""
        interval = self._options.max_inactivity_duration
        return interval, interval, round((self._loop.time() - self._beats.read_at) * 1000)
