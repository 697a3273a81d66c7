"""Connections of the load generator: a producer that keeps to its window, a consumer that acknowledges in bulk."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from benchmarks.generator.traffic import Block
from benchmarks.protocol.dialect import Dialect, Headers
from benchmarks.protocol.frames import NUL, RECEIPT, ack_block, ack_ids, end_of_frames, frame, heads, message_numbers
from benchmarks.scenarios.rows import Scenario

RECEIVE_BYTES = 1 << 18
_END = "end"
_END_RECEIPT = RECEIPT + _END.encode()


class RunFailed(Exception):
    """A broker refused, lost or duplicated something; the text says what, with the counts."""


class Connection:
    """A STOMP connection: it blocks until `attach`, from then on the loop calls `handle` when its socket is ready."""

    def __init__(self, address: tuple[str, int], dialect: Dialect) -> None:
        self.socket = dialect.transport(address)
        self.finished = False
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._held = 0
        self._unsent: deque[memoryview] = deque()
        self._ending = False
        self.ask(frame("CONNECT", dialect.connect), "CONNECTED")

    def ask(self, request: bytes, answer: str) -> None:
        """Send a frame and wait for the one that answers it, before the connection is attached to a loop."""
        self.socket.sendall(request)
        received = b""
        while NUL not in received:
            chunk = self.socket.recv(RECEIVE_BYTES)
            if not chunk:
                break
            received += chunk
        if not received.lstrip().startswith(answer.encode() + b"\n"):
            raise RunFailed(f"expected {answer}, got {received[:500]!r}")

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Stop blocking; `selector` tells when the socket is ready."""
        self.socket.setblocking(False)
        self._selector = selector
        selector.register(self.socket, selectors.EVENT_READ, self)

    def handle(self, ready: int) -> None:
        """Do what the socket is ready for, a mask of selector events."""
        if ready & selectors.EVENT_WRITE:
            self._send()
            if not self._unsent:
                self._selector.modify(self.socket, selectors.EVENT_READ, self)
        if ready & selectors.EVENT_READ:
            while self._read() and not self.finished:
                pass

    def write(self, data: bytes) -> None:
        """Send what the socket takes now, the rest when it is ready for more."""
        self._unsent.append(memoryview(data))
        if len(self._unsent) == 1:
            self._send()
            if self._unsent:
                self._selector.modify(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def _send(self) -> None:
        """Send what waits, as far as the socket takes it."""
        with suppress(BlockingIOError):
            while self._unsent:
                rest = self._unsent[0][self.socket.send(self._unsent[0]) :]
                if rest:
                    self._unsent[0] = rest
                else:
                    self._unsent.popleft()

    def disconnect(self) -> None:
        """Ask for the receipt that says that all sent before it has been dealt with; `finished` when it is here."""
        self._ending = True
        self.write(frame("DISCONNECT", {"receipt": _END}))

    def received(self, heads: bytes) -> None:
        """Whole frames have come, which have these heads."""
        raise NotImplementedError

    def _read(self) -> bool:
        """Take what the socket has received, as far as there is room for it; whether there may be more."""
        room = len(self._buffer) - self._held
        try:
            count = self.socket.recv_into(self._view[self._held :])
        except BlockingIOError:  # nothing more, or a part of what TLS or WebSocket will make something of
            return False
        if not count:
            raise RunFailed(f"the broker closed a connection after {bytes(self._view[: self._held])[-500:]!r}")
        self._held += count
        end = end_of_frames(self._buffer, self._held)
        if not end:
            return count == room
        found = heads(self._buffer, end)
        error = found.find(b"ERROR\n")
        if error >= 0:
            raise RunFailed(f"the broker answered {found[error:][:500]!r}")
        self.finished = self._ending and _END_RECEIPT in found
        self.received(found)
        self._buffer[: self._held - end] = self._buffer[end : self._held]
        self._held -= end
        return count == room


class Producer(Connection):
    """Sends prepared blocks as long as what is on its way stays within the window.

    `receipts` counts messages that a receipt confirms: that of a transaction confirms all its messages.
    """

    def __init__(self, address: tuple[str, int], dialect: Dialect, scenario: Scenario, blocks: Sequence[Block]) -> None:
        super().__init__(address, dialect)
        self.messages = sum(each.messages for each in blocks)
        self.receipts = 0
        self._window = scenario.window
        self._sent = 0
        self._blocks = deque(blocks)
        self._confirmed_by_receipt = scenario.transaction or 1
        self._wants_receipts = scenario.persistent

    @property
    def confirmed(self) -> bool:
        """Whether all messages are sent and all receipts are here."""
        return not self._blocks and self.receipts >= self.messages * self._wants_receipts

    def fill(self, arrived: int) -> None:
        """Send what the window allows, when `arrived` messages of this producer have arrived."""
        while self._blocks and self._sent + self._blocks[0].messages <= arrived + self._window and not self._unsent:
            block = self._blocks.popleft()
            self._sent += block.messages
            self.write(block.data)

    def received(self, heads: bytes) -> None:
        self.receipts += (heads.count(RECEIPT) - self.finished) * self._confirmed_by_receipt


class Consumer(Connection):
    """Notes which messages came and, unless sending settles them (`auto`), acknowledges each."""

    def __init__(self, address: tuple[str, int], dialect: Dialect, subscribe: Headers, ack_mode: str) -> None:
        super().__init__(address, dialect)
        self.numbers: list[bytes] = []
        self._acks = ack_mode != "auto"
        self.ask(frame("SUBSCRIBE", {**subscribe, "id": 1, "ack": ack_mode, "receipt": "subscribed"}), "RECEIPT")

    @property
    def deliveries(self) -> int:
        """How many messages came."""
        return len(self.numbers)

    def received(self, heads: bytes) -> None:
        self.numbers += message_numbers(heads)
        if self._acks and (ids := ack_ids(heads)):
            self.write(ack_block(ids))


class RejectingConsumer(Consumer):
    """Rejects each message as often as `rejections` says of it before it acknowledges it, which alone is a delivery."""

    def __init__(
        self, address: tuple[str, int], dialect: Dialect, subscribe: Headers, rejections: Callable[[int], int]
    ) -> None:
        super().__init__(address, dialect, subscribe, "client-individual")
        self._rejections = rejections
        self._left: dict[bytes, int] = {}

    def received(self, heads: bytes) -> None:
        answers = []
        for number, ack in zip(message_numbers(heads), ack_ids(heads), strict=True):
            left = self._left.setdefault(number, self._rejections(int(number)))
            self._left[number] = left - 1
            if left <= 0:
                self.numbers.append(number)
            answers.append(b"%b\nid:%b\n\n\0" % (b"NACK" if left > 0 else b"ACK", ack))
        if answers:
            self.write(b"".join(answers))
