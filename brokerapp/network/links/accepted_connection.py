"""Use the connection that the duplex bridge of an ActiveMQ made to take messages to there, too.

Both brokers are a client of the other one on it. What the ActiveMQ sends as the answer to this bridge, and its
advisories about consumers there, are this bridge's; all else is of the bridge that comes from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from brokerapp.network.links.broker_link import LinkEvents
from brokerapp.network.links.openwire_connection import PRODUCER, SESSION, NumberedCommand
from brokerapp.openwire.commands import (
    BaseCommand,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    ExceptionResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    ProducerId,
    ProducerInfo,
    Response,
    SessionId,
    SessionInfo,
)
from brokerapp.openwire.transport.duplex import DuplexConnection

#: How the names of the topics begin on which an ActiveMQ tells of consumers.
_ADVISORIES = "ActiveMQ.Advisory."


class AcceptedConnection:
    """One half of a duplex connection; what a link over OpenWire needs of its connection."""

    max_frame_size = 2**63 - 1  #: of the frames that the broker takes: a bridge of ActiveMQ knows no limit

    def __init__(
        self, connection: DuplexConnection, *, name: str, id: str, client_id: str, remote: str, remote_id: str
    ) -> None:
        self.name, self.remote, self.remote_id, self.client_id = name, remote, remote_id, client_id
        self.connection_id, self.producer_id = ConnectionId(id), ProducerId(id, PRODUCER, SESSION)
        self.on_dispatch: Callable[[MessageDispatch], None] = lambda _dispatch: None
        self.events = LinkEvents(lambda _id: None, lambda _id, _why: None, lambda _free: None)
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()  #: done when the connection is over: why
        self._advisory_consumer: ConsumerId | None = None
        self._receipts: dict[int, str] = {}  # by the number of the command that is to be answered
        self._command_count = 0

    def introduce(self, login: tuple[str, str] | None) -> None:
        """Log in at the broker, which does not answer: it is this broker's client already."""
        user, password = login or (None, None)
        self.send(
            ConnectionInfo(
                connection_id=self.connection_id, client_id=self.client_id, user_name=user, password=password
            )
        )
        self.send(SessionInfo(session_id=SessionId(self.connection_id.value, SESSION)))
        self.send(ProducerInfo(producer_id=self.producer_id))

    def send(self, command: NumberedCommand, receipt: str | None = None) -> None:
        """Write a command; the broker answers it where there is a receipt."""
        if isinstance(command, MessageAck):  # advisories come as messages of that broker's bridge, not to a consumer
            return
        self._command_count = command.command_id = self._command_count % 0x7FFFFFFF + 1
        if isinstance(command, ConsumerInfo):
            self._advisory_consumer = command.consumer_id
        elif receipt is not None:
            command.response_required = True
            self._receipts[command.command_id] = receipt
        self._connection.send(command)

    def receive(self, command: BaseCommand) -> bool:
        """Handle what is this bridge's; return whether it was."""
        match command:
            case ExceptionResponse():
                receipt = self._receipts.pop(command.correlation_id, None)
                if receipt is not None:
                    why = (command.exception and command.exception.message) or "refused without a reason"
                    self.events.on_refused(receipt, why)
            case Response():
                receipt = self._receipts.pop(command.correlation_id, None)
                if receipt is not None:
                    self.events.on_receipt(receipt)
            case MessageCommand() if self._tells_of_consumers(command):
                self.on_dispatch(MessageDispatch(consumer_id=self._advisory_consumer, message=command))
            case _:
                return False
        return True

    @staticmethod
    def _tells_of_consumers(message: MessageCommand) -> bool:
        name = message.destination.physical_name if message.destination is not None else None
        return message.data_structure is not None and (name or "").startswith(_ADVISORIES)

    def set_writable(self, is_writable: bool) -> None:
        """Tell the bridge whether the connection takes more for now."""
        self.events.on_writable_changed(is_writable)

    def pause_reading(self, held: bool) -> None:
        """Go on reading: the bridge that comes from there is read for its own sake."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""
        self._loop.call_later(seconds, lambda: None if self.lost.done() else call())

    def end(self, why: str = "the connection was closed by the other broker") -> None:
        """Note that the connection is over."""
        if not self.lost.done():
            self.lost.set_result(why)

    def close(self, why: str = "closed") -> None:
        """Flush and close the connection, with a reason: the other broker makes another one."""
        if not self.lost.done():
            self._connection.close()
            self.end(why)
