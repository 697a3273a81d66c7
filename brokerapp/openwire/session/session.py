"""OpenWireSession: one client's protocol state. Commands of OpenWire in, commands of the broker out.

No sockets, no clock, no broker. A client opens sessions on its connection, and producers and consumers in these; the
broker knows the connection as a client and each consumer as a subscription of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.errors import LimitExceeded, OpenWireError, ProtocolError, RequestRefused
from brokerapp.model.commands import (
    AckBatchCommand,
    ClientCommand,
    ConnectCommand,
    DestinationCommand,
    DisconnectCommand,
    GiveUpCommand,
    PrefetchCommand,
    ProducerCommand,
    PullCommand,
    RollBackOnlyCommand,
    SendBatchCommand,
    SubscribeCommand,
    UnsubscribeCommand,
    WindowCommand,
)
from brokerapp.model.transport_connector import MAX_BODY_BYTES
from brokerapp.openwire.commands import (
    BaseCommand,
    BrokerInfo,
    BrokerSubscriptionInfo,
    ConnectionControl,
    ConnectionInfo,
    ConsumerControl,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    FlushCommand,
    MessageAck,
    MessageCommand,
    MessagePull,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    SessionId,
    SessionInfo,
    ShutdownInfo,
    TransactionInfo,
)
from brokerapp.openwire.session.bridges import ConnectingBridge, connecting_bridge, mark_bridged, stamp_of
from brokerapp.openwire.session.consumers import AckType, Delivery, OpenWireConsumer
from brokerapp.openwire.session.destinations import broker_destination, broker_text
from brokerapp.openwire.session.incoming_messages import send_command
from brokerapp.openwire.session.producer_windows import window_receipt
from brokerapp.openwire.session.subscribe_options import subscribe_options
from brokerapp.openwire.session.transactions import ClientTransactions, transaction_name

#: Commands of the broker, and nothing where the command of the client changes the session only.
Commands = Sequence[ClientCommand]
NOTHING: Commands = ()
#: Producers of one connection, where its connector has no limit: a bound on what a peer can make us keep.
MAX_PRODUCERS = 10_000
#: How most messages are acknowledged.
CONSUMED = frozenset((AckType.STANDARD, AckType.INDIVIDUAL))
#: The operation of a DestinationInfo that creates a destination; the other one deletes it.
ADD_DESTINATION = 0


def receipt_of(command: BaseCommand) -> str | None:
    """Return by what the broker is to confirm a command; None where the client waits for no response."""
    return str(command.command_id) if command.response_required else None


#: Commands that may come before the client has introduced itself.
FIRST_COMMANDS = (BrokerInfo, BrokerSubscriptionInfo, ConnectionInfo, ConnectionControl, ShutdownInfo)


def _session_of(id: ConsumerId | ProducerId) -> SessionId:
    return SessionId(id.connection_id, id.session_id)


def _with_receipt(commands: Sequence[ProducerCommand | UnsubscribeCommand], receipt: str | None) -> Commands:
    """Let the last of these be confirmed."""
    if commands:
        commands[-1].receipt = receipt
    return commands


class OpenWireSession:
    """Protocol state of one client."""

    def __init__(
        self,
        *,
        broker: str,
        node: str,
        broker_ids: BrokerIds,
        max_producers: int | None = None,
        max_body: int = MAX_BODY_BYTES,
    ) -> None:
        self._broker, self._node, self._broker_ids = broker, node, broker_ids
        self._max_producers = MAX_PRODUCERS if max_producers is None else max_producers
        self._max_body = max_body
        self.connection: ConnectionInfo | None = None
        self.bridge: ConnectingBridge | None = None  #: what the client says of itself, if it is the bridge of a broker
        self._may_resend = False  # what was sent when a connection broke: it is a client with failover:
        self.user_headers = ""  #: header lines that each message the client sends gets
        self.consumers: dict[ConsumerId, OpenWireConsumer] = {}
        self.producers: dict[ProducerId, ProducerInfo] = {}
        self.transactions = ClientTransactions()

    def receive(self, command: BaseCommand) -> Commands:
        """Return what the broker is to do. Raises ProtocolError (ends the connection) or RequestRefused."""
        handler = HANDLERS.get(type(command))
        if handler is None:
            raise ProtocolError(f"{type(command).__name__} is not a command of a client")
        if self.connection is None and not isinstance(command, FIRST_COMMANDS):
            raise ProtocolError(f"the first command must be ConnectionInfo, not {type(command).__name__}")
        return handler(self, command)

    # -- connections, sessions, producers

    def _connect(self, info: ConnectionInfo) -> Commands:
        if self.connection is not None:
            if self.connection.connection_id == info.connection_id:  # a transport that reconnects may say it again
                return NOTHING
            raise ProtocolError("ConnectionInfo on a connection that has one already")
        self.connection = info
        self._may_resend = self._may_resend or info.fault_tolerant or info.failover_reconnect
        connect = ConnectCommand(info.user_name, info.password, info.client_id, False, {})
        connect.connection_id = str(info.connection_id)
        if (bridge := self.bridge) is not None:
            connect.bridge, connect.duplex, connect.copies = bridge.broker, bridge.is_duplex, bridge.sends_copies
            # a former one, dead perhaps, yields; one to another node of this broker, with the same client id, does not
            connect.way = f"{bridge.connector} {self._node}"
        return (connect,)

    def _introduce_broker(self, info: BrokerInfo) -> Commands:
        """Learn that the client is another broker, whose bridge it will be when it logs in."""
        if self.connection is not None:
            raise ProtocolError("BrokerInfo behind ConnectionInfo: a bridge introduces its broker first")
        self.bridge = connecting_bridge(info, self._broker)
        return NOTHING

    def _list_durable_subscriptions(self, info: BrokerSubscriptionInfo) -> Commands:
        """Learn which durable subscriptions there are at the broker whose bridge it is."""
        if self.bridge is not None:
            known = tuple([each for each in info.subscription_infos or () if each is not None])
            self.bridge = replace(self.bridge, durable_subscriptions=known)
        return NOTHING

    def _control_connection(self, control: ConnectionControl) -> Commands:
        """Learn that the client reconnected: with `failover:` that is the first thing it says then."""
        self._may_resend = self._may_resend or control.fault_tolerant
        return NOTHING

    def _add_producer(self, info: ProducerInfo) -> Commands:
        id = info.producer_id
        if id is None or id in self.producers:
            return NOTHING
        if not id.connection_id:  # it has no text by which its window is told to be free
            raise RequestRefused("ProducerInfo without the connection of its producer")
        if len(self.producers) >= (limit := self._max_producers):
            raise LimitExceeded(f"a connection has at most {limit} producers (maximumProducersAllowedPerConnection)")
        self.producers[id] = info
        if info.destination is None:  # each message names its own
            return NOTHING
        return (ProducerCommand(str(id), broker_text(info.destination), receipt_of(info)),)

    def _remove(self, info: RemoveInfo) -> Commands:
        removed, receipt = info.object_id, receipt_of(info)
        if isinstance(removed, ProducerId):
            closed = self._close_producers([removed] if removed in self.producers else [])
            return _with_receipt(closed, receipt)
        if isinstance(removed, ConsumerId):
            gone = self._close_consumers([removed] if removed in self.consumers else [], info)
            return _with_receipt(gone, receipt)
        if isinstance(removed, SessionId):
            closed = self._close_producers([id for id in self.producers if _session_of(id) == removed])
            gone = self._close_consumers([id for id in self.consumers if _session_of(id) == removed], info)
            return _with_receipt([*closed, *gone], receipt)
        return [*self._close_consumers(list(self.consumers), info), DisconnectCommand(receipt)]

    def _close_producers(self, gone: Sequence[ProducerId]) -> list[ProducerCommand]:
        closed = {id: self.producers.pop(id) for id in gone}
        return [ProducerCommand(str(id), None, None) for id, info in closed.items() if info.destination is not None]

    def _close_consumers(self, gone: Sequence[ConsumerId], info: RemoveInfo) -> list[UnsubscribeCommand]:
        commands = []
        for id in gone:
            consumer = self.consumers.pop(id)
            unseen = consumer.unseen(info.last_delivered_sequence_id)
            commands.append(UnsubscribeCommand(consumer.name, None, None, None, unseen=unseen))
        return commands

    def _shut_down(self, _info: ShutdownInfo) -> Commands:
        return (DisconnectCommand(None),)

    # -- consumers

    def _add_consumer(self, info: ConsumerInfo) -> Commands:
        if info.consumer_id is None or not info.consumer_id.connection_id or info.destination is None:
            raise RequestRefused("ConsumerInfo without a consumer id, its connection or a destination")
        if info.consumer_id in self.consumers:
            return NOTHING
        consumer = OpenWireConsumer(info, info.destination)
        self.consumers[consumer.id] = consumer
        return (
            SubscribeCommand(
                consumer.name,
                broker_text(info.destination),
                "client-individual",
                info.selector or None,
                info.browser,
                subscribe_options(info),
                receipt_of(info),
            ),
        )

    def on_refused(self, command: BaseCommand) -> None:
        """Forget a consumer or producer that the broker refused."""
        if isinstance(command, ConsumerInfo) and command.consumer_id is not None:
            self.consumers.pop(command.consumer_id, None)
        elif isinstance(command, ProducerInfo) and command.producer_id is not None:
            self.producers.pop(command.producer_id, None)

    def _unsubscribe(self, info: RemoveSubscriptionInfo) -> Commands:
        return (UnsubscribeCommand(None, None, info.subscription_name or "", receipt_of(info)),)

    # -- messages

    def _send(self, message: MessageCommand) -> Commands:
        receipt = receipt_of(message) or self._window_receipt(message)
        stamp = self.user_headers if self.bridge is None else stamp_of(message, self.user_headers)
        try:
            send = send_command(message, stamp, receipt, self._max_body, keep=self.bridge is None)
        except OpenWireError as error:  # the frame was read: what is wrong concerns this message alone
            raise RequestRefused(str(error)) from None
        if self.bridge is not None:
            mark_bridged(send, message, self._broker_ids)
        send.may_come_again = message.persistent and self._may_resend
        return (SendBatchCommand([send]),)

    def _window_receipt(self, message: MessageCommand) -> str | None:
        producer = self.producers.get(message.producer_id) if message.producer_id is not None else None
        return window_receipt(producer, message)

    def _acknowledge(self, ack: MessageAck) -> Commands:
        consumer = self.consumers.get(ack.consumer_id) if ack.consumer_id is not None else None
        if consumer is None:  # what it held went back when it was closed
            return NOTHING
        if not consumer.has_delivered:
            return self._acknowledge_early(consumer, ack)
        if ack.ack_type in CONSUMED:
            return self._consume(consumer, ack)
        if ack.ack_type == AckType.DELIVERED:
            return self._extend(consumer, ack)
        if ack.ack_type == AckType.REDELIVERED:
            return NOTHING  # the client counts what it does itself
        if ack.ack_type == AckType.UNMATCHED and not consumer.takes_copies:
            return NOTHING  # another consumer may want it
        if ack.ack_type == AckType.POISON and ack.transaction_id is not None:
            raise RequestRefused("a poison acknowledgement cannot be part of a transaction")
        if ack.ack_type in (AckType.POISON, AckType.EXPIRED):
            taken = consumer.take(ack)
            is_expired = ack.ack_type == AckType.EXPIRED
            cause = None if is_expired or ack.poison_cause is None else str(ack.poison_cause)
            given_up = GiveUpCommand([each.ack_id for each in taken], cause, is_expired, receipt_of(ack))
            return [*self._narrow(consumer, taken), given_up]
        return self._consume(consumer, ack)

    @staticmethod
    def _acknowledge_early(consumer: OpenWireConsumer, ack: MessageAck) -> Commands:
        """Ignore what a client that reconnected acknowledges, as consumers get it again; roll back its transaction."""
        if ack.transaction_id is None or ack.ack_type not in CONSUMED:
            return NOTHING
        reason = f"{consumer.id} acknowledged in it what it had got on a former connection"
        return (RollBackOnlyCommand(transaction_name(ack.transaction_id), reason, receipt_of(ack)),)

    def _consume(self, consumer: OpenWireConsumer, ack: MessageAck) -> Commands:
        """Acknowledge messages."""
        receipt = receipt_of(ack)
        transaction = None if ack.transaction_id is None else transaction_name(ack.transaction_id)
        try:
            taken = consumer.take(ack)
        except RequestRefused as error:
            if transaction is None:
                raise
            return (RollBackOnlyCommand(transaction, str(error), receipt, is_refused=True),)
        ack_ids = [each.ack_id for each in taken]
        commands = self._narrow(consumer, taken)
        if transaction is not None:
            self.transactions.on_acknowledged(transaction, consumer, taken)
        receipts = [None] * (len(ack_ids) - 1) + [receipt] if receipt is not None else None
        return [*commands, AckBatchCommand(ack_ids, None, receipts, transaction)]

    @staticmethod
    def _extend(consumer: OpenWireConsumer, ack: MessageAck) -> Commands:
        """Let a consumer have as many more messages as its application has got and not acknowledged."""
        new = [each for each in consumer.up_to(ack.last_message_id) if not each.is_extended]
        for each in new:
            each.is_extended = True
        return (WindowCommand(consumer.name, len(new)),) if new else NOTHING

    @staticmethod
    def _narrow(consumer: OpenWireConsumer, taken: Sequence[Delivery]) -> list[ClientCommand]:
        """End the extension of a consumer's window by messages that are acknowledged now."""
        extended = sum([each.is_extended for each in taken])
        return [WindowCommand(consumer.name, -extended)] if extended else []

    def _control_consumer(self, control: ConsumerControl) -> Commands:
        if control.consumer_id not in self.consumers:
            return NOTHING
        return (PrefetchCommand(str(control.consumer_id), control.prefetch),)

    def _pull(self, pull: MessagePull) -> Commands:
        return (PullCommand(str(pull.consumer_id), pull.timeout),)

    def _change_destination(self, info: DestinationInfo) -> Commands:
        destination = broker_destination(info.destination)
        return (DestinationCommand(destination, info.operation_type == ADD_DESTINATION, receipt_of(info)),)

    # -- transactions

    def _transaction(self, info: TransactionInfo) -> Commands:
        return self.transactions.perform(info, receipt_of(info))

    def _ignore(self, _command: BaseCommand) -> Commands:
        return NOTHING


HANDLERS: dict[type[BaseCommand], Callable[[OpenWireSession, Any], Commands]] = {
    BrokerInfo: OpenWireSession._introduce_broker,
    BrokerSubscriptionInfo: OpenWireSession._list_durable_subscriptions,
    ConnectionInfo: OpenWireSession._connect,
    ConnectionControl: OpenWireSession._control_connection,
    SessionInfo: OpenWireSession._ignore,  # producers and consumers name theirs
    FlushCommand: OpenWireSession._ignore,  # nothing is held back; the client waits for the response
    ProducerInfo: OpenWireSession._add_producer,
    ConsumerInfo: OpenWireSession._add_consumer,
    RemoveInfo: OpenWireSession._remove,
    RemoveSubscriptionInfo: OpenWireSession._unsubscribe,
    ShutdownInfo: OpenWireSession._shut_down,
    MessageCommand: OpenWireSession._send,
    MessageAck: OpenWireSession._acknowledge,
    ConsumerControl: OpenWireSession._control_consumer,
    MessagePull: OpenWireSession._pull,
    DestinationInfo: OpenWireSession._change_destination,
    TransactionInfo: OpenWireSession._transaction,
}
