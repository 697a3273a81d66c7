"""OpenWireClient: sends commands of OpenWire as they are, where a JMS client would send others or none."""

from __future__ import annotations

import itertools
import socket
import ssl
import time
from collections import deque
from types import TracebackType
from typing import Self

from brokerapp.openwire.codec import Codec, FrameSplitter
from brokerapp.openwire.commands import (
    BaseCommand,
    ConnectionControl,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    DataStructure,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessageId,
    OpenWireDestination,
    ProducerId,
    ProducerInfo,
    Response,
    SessionId,
    SessionInfo,
    WireFormatInfo,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.message_content import decode_text_content, encode_text_content
from brokerapp.openwire.session.consumers import AckType
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.waiting import PATIENCE

#: Seconds in which a broker that has nothing to say says nothing.
QUIET = 0.3
_numbers = itertools.count(1)


def queue(name: str) -> OpenWireDestination:
    """A queue."""
    return OpenWireDestination(t.QUEUE, name)


def topic(name: str) -> OpenWireDestination:
    """A topic."""
    return OpenWireDestination(t.TOPIC, name)


def text_of(dispatch: MessageDispatch) -> str | None:
    """The text of what a consumer is given; None for a dispatch without a message."""
    return None if dispatch.message is None else decode_text_content(dispatch.message.content or b"")


class OpenWireSocket:
    """The socket of a connection, on which nothing was said yet."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname="127.0.0.1")
        self._codec, self._splitter = Codec(), FrameSplitter()
        self._frames: deque[bytes] = deque()
        self._command_id = 0
        self.received: list[DataStructure] = []  #: what was not asked for yet

    def agree(self, options: WireFormatOptions) -> WireFormatOptions:
        """Say what this side wishes, and return what the broker offers; from then on the agreement holds."""
        self.write(options.to_info())
        offered = WireFormatOptions.of(self.next(WireFormatInfo))
        agreed = options.agreed_with(offered)
        self._codec = Codec(
            agreed.version, tight=agreed.tight_encoding_enabled, cached=agreed.cache_enabled,
            stack_trace_enabled=agreed.stack_trace_enabled,
        )  # fmt: skip
        return offered

    def connect(self, **fields) -> Response:
        """Log in, and return the answer."""
        id = fields.pop("connection_id", ConnectionId(f"ID:raw-{next(_numbers)}-1:1"))
        return self.ask(ConnectionInfo(connection_id=id, **fields))

    def write_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def is_closed(self) -> bool:
        """Return whether the broker closes the connection in time; what it says first is received."""
        heard = []
        try:
            while (each := self.next(object)) is not None:
                heard.append(each)
        except (AssertionError, ConnectionResetError):
            return True
        finally:
            self.received = heard
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket without a word."""
        self._socket.close()

    # -- commands

    def write(self, command: DataStructure) -> None:
        """Send a command as it is."""
        self._socket.sendall(self._codec.encode(command))

    def tell_together(self, *commands: BaseCommand) -> None:
        """Send commands that are to be answered by nothing in one write, which the broker reads as one."""
        for each in commands:
            self._command_id += 1
            each.command_id = self._command_id
        self._socket.sendall(b"".join(map(self._codec.encode, commands)))

    def tell(self, command: BaseCommand) -> None:
        """Send a command that is to be answered by nothing."""
        self._command_id += 1
        command.command_id = self._command_id
        self.write(command)

    def ask(self, command: BaseCommand) -> Response:
        """Send a command, and return its answer."""
        command.response_required = True
        self.tell(command)
        return self.next(Response, command.command_id)

    def next(self, kind: type, correlation_id: int | None = None, seconds: float = PATIENCE):
        """Return the next command of this class; None where none comes in time."""
        deadline = time.monotonic() + seconds
        while True:
            for at, each in enumerate(self.received):
                if isinstance(each, kind) and correlation_id in (None, getattr(each, "correlation_id", None)):
                    return self.received.pop(at)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            if not self._frames:
                self._read(left)
            else:  # one by one, as a command may say how those behind it are encoded
                self.received.append(self._codec.decode(self._frames.popleft()))

    def _read(self, seconds: float) -> None:
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return
        assert data, "the broker closed the connection"
        self._frames.extend(self._splitter.feed(data))


class OpenWireClient(OpenWireSocket):
    """One connection with one session. With the ids of another connection it is what `failover:` connects next."""

    def __init__(
        self, port: int, *, client_id: str | None = None, connection_id: str | None = None,
        fault_tolerant: bool = False, user: str | None = None, password: str | None = None,
    ) -> None:  # fmt: skip
        number = next(_numbers)
        self.connection_id = connection_id or f"ID:test-{number}-1:1"
        super().__init__(port)
        self._sequence = 0
        self.write(WireFormatOptions().to_info())
        if connection_id is not None:
            self.tell(ConnectionControl(fault_tolerant=True))
        self.ask(
            ConnectionInfo(
                connection_id=ConnectionId(self.connection_id), client_id=client_id or f"test-{number}",
                fault_tolerant=fault_tolerant, user_name=user, password=password,
            )
        )  # fmt: skip
        self.session_id = SessionId(self.connection_id, 1)
        self.ask(SessionInfo(session_id=self.session_id))

    # -- what clients do

    def consumer(self, number: int, destination: OpenWireDestination, prefetch: int = 1000, **fields) -> ConsumerId:
        """Subscribe, and return the id of the consumer."""
        id = ConsumerId(self.connection_id, 1, number)
        answer = self.ask(ConsumerInfo(consumer_id=id, destination=destination, prefetch_size=prefetch, **fields))
        assert type(answer) is Response, answer
        return id

    def producer(self, number: int = 1, window_size: int = 0) -> ProducerId:
        """Create a producer, and return its id."""
        id = ProducerId(self.connection_id, number, 1)
        self.ask(ProducerInfo(producer_id=id, window_size=window_size))
        return id

    def message(
        self, destination: OpenWireDestination, text: str, *, sequence: int | None = None, **fields
    ) -> MessageCommand:
        """Return a text message of the first producer, the next one if no number is given."""
        if sequence is None:
            self._sequence += 1
            sequence = self._sequence
        producer = ProducerId(self.connection_id, 1, 1)
        return MessageCommand(
            **{
                "producer_id": producer, "message_id": MessageId(None, producer, sequence),
                "destination": destination, "persistent": True, "priority": 4,
                "content": encode_text_content(text), "data_type": t.TEXT_MESSAGE, **fields,
            }
        )  # fmt: skip

    def send(self, destination: OpenWireDestination, *texts: str) -> None:
        """Send persistent text messages, each when the one before is stored."""
        for text in texts:
            answer = self.ask(self.message(destination, text))
            assert type(answer) is Response, answer

    def dispatches(self, count: int) -> list[MessageDispatch]:
        """Return the dispatches that come: as many as are expected, and those that should not."""
        found: list[MessageDispatch] = []
        while each := self.next(MessageDispatch, seconds=PATIENCE if len(found) < count else QUIET):
            found.append(each)
        return found

    def texts(self, count: int) -> list[str | None]:
        """Return the texts of what is dispatched."""
        return [text_of(each) for each in self.dispatches(count)]

    def acknowledge(self, dispatch: MessageDispatch, type: AckType = AckType.STANDARD, **fields) -> Response:
        """Acknowledge one message."""
        return self.ask(self.ack_of(dispatch, type, **fields))

    def ack_bytes(self, dispatch: MessageDispatch) -> bytes:
        """Return the bytes that acknowledge one message, and ask for no answer."""
        return self._codec.encode(self.ack_of(dispatch, AckType.STANDARD))

    @staticmethod
    def ack_of(dispatch: MessageDispatch, type: AckType = AckType.STANDARD, **fields) -> MessageAck:
        """Return what acknowledges one message."""
        assert dispatch.message is not None
        id = dispatch.message.message_id
        return MessageAck(
            consumer_id=dispatch.consumer_id, destination=dispatch.destination, ack_type=type,
            first_message_id=id, last_message_id=id, message_count=1, **fields,
        )  # fmt: skip
