"""Connections of the load generator: a producer that keeps to its window, a consumer that acknowledges in bulk."""

from __future__ import annotations

import selectors

from benchmarks.protocol.dialect import Dialect, Headers
from benchmarks.protocol.frames import NUL, ack_block, ack_ids, end_of_frames, frame, send_block
from benchmarks.scenarios.rows import Scenario

RECEIVE_BYTES = 1 << 18
_END = "end"
_END_RECEIPT = f"receipt-id:{_END}".encode()


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
        self._unsent = b""
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
            self.write(b"")
        if ready & selectors.EVENT_READ:
            self._read()

    def write(self, data: bytes) -> None:
        """Send what the socket takes now, the rest when it is ready for more."""
        waiting = bool(self._unsent)
        data = self._unsent + data
        try:
            self._unsent = data[self.socket.send(data) :]
        except BlockingIOError:
            self._unsent = data
        if waiting != bool(self._unsent):
            writing = selectors.EVENT_WRITE if self._unsent else 0
            self._selector.modify(self.socket, selectors.EVENT_READ | writing, self)

    def disconnect(self) -> None:
        """Ask for the receipt that says that all sent before it has been dealt with; `finished` when it is here."""
        self._ending = True
        self.write(frame("DISCONNECT", {"receipt": _END}))

    def received(self, end: int) -> None:
        """Whole frames are in the buffer, up to `end`."""
        raise NotImplementedError

    def _read(self) -> None:
        try:
            count = self.socket.recv_into(self._view[self._held :])
        except BlockingIOError:  # a part of what TLS or WebSocket will make something of
            return
        if not count:
            raise RunFailed(f"the broker closed a connection after {bytes(self._view[: self._held])[-500:]!r}")
        self._held += count
        end = end_of_frames(self._buffer, self._held)
        if not end:
            return
        error = self._buffer.find(b"ERROR\n", 0, end)
        if error >= 0:
            raise RunFailed(f"the broker answered {bytes(self._view[error:end])[:500]!r}")
        last = self._buffer.find(_END_RECEIPT, 0, end) if self._ending else -1
        self.finished = last >= 0
        self.received(last if self.finished else end)
        self._buffer[: self._held - end] = self._buffer[end : self._held]
        self._held -= end


class Producer(Connection):
    """Sends prebuilt blocks as long as what is on its way stays within the window."""

    def __init__(self, address: tuple[str, int], dialect: Dialect, scenario: Scenario, messages: int) -> None:
        super().__init__(address, dialect)
        self.messages = messages
        self.receipts = 0
        self._window, self._block = scenario.window, scenario.block
        self._sent = 0
        self._blocks = send_blocks(scenario)
        self._wants_receipts = scenario.persistent

    @property
    def confirmed(self) -> bool:
        """Whether all messages are sent and all receipts are here."""
        return self._sent == self.messages and self.receipts >= self.messages * self._wants_receipts

    def fill(self, arrived: int) -> None:
        """Send what the window allows, when `arrived` messages of this producer have arrived."""
        limit = min(self.messages, arrived + self._window)
        while self._sent + self._block <= limit and not self._unsent:
            self.write(self._blocks[self._sent // self._block % len(self._blocks)])
            self._sent += self._block

    def received(self, end: int) -> None:
        self.receipts += self._buffer.count(NUL, 0, end)


def send_blocks(scenario: Scenario) -> list[bytes]:
    """A window's worth of SEND frames, in blocks; the receipts in one window all differ."""
    return [
        send_block([_send_headers(scenario, number) for number in range(first, first + scenario.block)], scenario.body)
        for first in range(0, scenario.window, scenario.block)
    ]


def _send_headers(scenario: Scenario, number: int) -> Headers:
    headers = {"destination": scenario.route.destination, **scenario.route.properties(number)}
    if scenario.persistent:
        headers |= {"persistent": "true", "receipt": number}
    return headers


class Consumer(Connection):
    """Counts deliveries and, unless sending settles them (`auto`), acknowledges each."""

    def __init__(self, address: tuple[str, int], dialect: Dialect, subscribe: Headers, ack_mode: str) -> None:
        super().__init__(address, dialect)
        self.deliveries = 0
        self._acks = ack_mode != "auto"
        self.ask(frame("SUBSCRIBE", {**subscribe, "id": 1, "ack": ack_mode, "receipt": "subscribed"}), "RECEIPT")

    def received(self, end: int) -> None:
        if not self._acks:
            self.deliveries += self._buffer.count(NUL, 0, end)
        elif ids := ack_ids(self._buffer, end):
            self.deliveries += len(ids)
            self.write(ack_block(ids))
