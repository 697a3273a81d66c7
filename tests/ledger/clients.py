"""Clients of a load on real sockets that record in a ledger what they do and see.

A message says its number in the ledger: in the header `number`, or at the beginning of its body where many are alike.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from brokerapp.stomp.frames import Frame, encode
from tests.ledger.ledger import ACKED, LEFT, REJECTED, Delivery, Ledger, Message, Span
from tests.protocol.clients import RawClient

#: Frames that are written before an answer is awaited.
WINDOW = 250
#: Headers and body of a message, by its number.
Content = Callable[[int], tuple[Mapping[str, str], bytes]]


def now() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def alike(size: int = 40) -> Content:
    """Messages that differ in their bodies only."""
    return lambda number: ({}, f"{number} ".encode().ljust(size, b"."))


class LedgerClient:
    """A connection with at most one subscription. `places`: see Ledger.arrive."""

    def __init__(self, port: int, ledger: Ledger, name: str, places: Mapping[str, Sequence[str]]) -> None:
        self.ledger, self.name, self._places = ledger, name, places
        self._raw = RawClient(port, **{"client-id": name})
        self._raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._came: list[Frame] = []
        self._receipts = itertools.count(1)
        self._transactions = itertools.count(1)
        self.place = ""  #: where it consumes
        self.mode = "auto"
        self.held: list[Delivery] = []

    # -- sending

    def send(
        self, to: str, count: int, content: Content | None = None, in_transaction: str = "", **headers: str
    ) -> list[Message]:
        """Send messages and wait until the broker has confirmed all of them; in a transaction that is told later."""
        sent: list[Message] = []
        while len(sent) < count:
            sent += self._send(to, min(WINDOW, count - len(sent)), content or alike(), in_transaction, headers)
        return sent

    def _send(
        self, to: str, count: int, content: Content, transaction: str, headers: Mapping[str, str]
    ) -> list[Message]:
        common = {"destination": stomp(to), "persistent": "true", **headers}
        if transaction:
            common["transaction"] = transaction
        sent, frames = [], []
        for _ in range(count):
            number = len(self.ledger.messages)
            own, body = content(number)
            sent.append(self.ledger.send(self.name, to, len(body), {**headers, **own}))
            length = {"content-length": str(len(body))} if b"\0" in body else {}
            frames.append(encode("SEND", {**common, **own, **length}, body))
        with self._until_confirmed() as spans:
            self._raw.write(b"".join(frames))
        for each in sent:
            each.born = spans[0]
        if not transaction:
            self.ledger.arrive(sent, self._places, spans[0])
        return sent

    @contextmanager
    def transaction(self, *, commits: bool = True) -> Iterator[Transaction]:
        """A transaction that is committed at the end, or rolled back."""
        transaction = Transaction(self, f"t{next(self._transactions)}")
        self._raw.tell("BEGIN", {"transaction": transaction.name})
        yield transaction
        span = self.tell("COMMIT" if commits else "ABORT", {"transaction": transaction.name})
        transaction.end(span, self._places, commits=commits)

    # -- consuming

    def subscribe(self, place: str, mode: str = "auto", prefetch: int = 1000, **headers: str) -> LedgerClient:
        """Consume; `place` is a queue, a topic, or the durable subscription that `headers` ask for."""
        self.place, self.mode = place, mode
        named = {"id": "s", "destination": stomp(place), "ack": mode, "activemq.prefetchSize": str(prefetch)}
        self.ledger.subscribed[place, self.name] = self.tell("SUBSCRIBE", {**named, **headers})
        return self

    def take(self, count: int) -> list[Delivery]:
        """The next messages; in mode `auto` they are acknowledged by that."""
        taken = [self._given(self._message()) for _ in range(count)]
        if self.mode == "auto":
            for each in taken:
                self.ledger.end(each, ACKED, each.given)
        else:
            self.held += taken
        return taken

    def _given(self, frame: Frame) -> Delivery:
        number, ack = number_of(frame.headers, frame.body), frame.headers.get("ack", "")
        delivery = self.ledger.give(number, self.place, self.name, now(), ack)
        delivery.copy.message.id = frame.headers["message-id"]
        return delivery

    def ack(self, deliveries: Sequence[Delivery], **headers: str) -> None:
        """Acknowledge these; in mode `client` the last stands for all before it."""
        named = deliveries[-1:] if self.mode == "client" else deliveries
        span = self._settle("ACK", named, headers)
        if "transaction" not in headers:
            self.settled(deliveries, ACKED, span)

    def reject(self, deliveries: Sequence[Delivery]) -> Span:
        """NACK these; what becomes of them the load says."""
        span = self._settle("NACK", deliveries, {})
        self.settled(deliveries, REJECTED, span)
        return span

    def _settle(self, command: str, deliveries: Iterable[Delivery], headers: Mapping[str, str]) -> Span:
        frames = [encode(command, {"id": each.ack, **headers}, b"") for each in deliveries]
        with self._until_confirmed() as spans:
            self._raw.write(b"".join(frames))
        return spans[0]

    def settled(self, deliveries: Iterable[Delivery], how: str, span: Span) -> None:
        """These ended so; it holds them no longer."""
        for each in deliveries:
            self.ledger.end(each, how, span)
            self.held.remove(each)

    def leave(self) -> Span:
        """End the connection; what it holds goes back."""
        span = self.tell("DISCONNECT", {})
        self._raw.close()
        self.settled(list(self.held), LEFT, span)
        if self.place:
            self.ledger.left[self.place, self.name] = span
        return span

    def break_off(self) -> None:
        """The connection is lost."""
        self._raw.close()

    # -- frames

    def tell(self, command: str, headers: Mapping[str, str]) -> Span:
        """A frame, and wait for its receipt; when the broker did it."""
        before, receipt = now(), f"r{next(self._receipts)}"
        self._raw.tell(command, {**headers, "receipt": receipt})
        self._hear(receipt)
        return Span(before, now())

    @contextmanager
    def _until_confirmed(self) -> Iterator[list[Span]]:
        """When all that is written meanwhile was done: a transaction of nothing follows it."""
        spans: list[Span] = []
        before, name = now(), f"b{next(self._transactions)}"
        yield spans
        self._raw.tell("BEGIN", {"transaction": name})
        spans.append(Span(before, self.tell("COMMIT", {"transaction": name}).before))

    def _hear(self, receipt: str) -> None:
        """Read up to this receipt; messages that come before it are kept."""
        while True:
            frame = self._raw.hear()
            if frame.command == "RECEIPT" and frame.headers["receipt-id"] == receipt:
                return
            self._keep(frame)

    def _message(self) -> Frame:
        while not self._came:
            self._keep(self._raw.hear())
        return self._came.pop(0)

    def _keep(self, frame: Frame) -> None:
        assert frame.command == "MESSAGE", f"{self.name}: {frame}"
        self._came.append(frame)


class Transaction:
    """What one client does in one transaction."""

    def __init__(self, client: LedgerClient, name: str) -> None:
        self._client, self.name = client, name
        self._sent: list[Message] = []
        self._acked: list[Delivery] = []

    def send(self, to: str, count: int, content: Content | None = None, **headers: str) -> None:
        """Send messages in it."""
        self._sent += self._client.send(to, count, content, self.name, **headers)

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge messages in it."""
        self._client.ack(deliveries, transaction=self.name)
        self._acked += deliveries

    def end(self, span: Span, places: Mapping[str, Sequence[str]], *, commits: bool) -> None:
        """It ended then."""
        if not commits:
            self._client.ledger.roll_back(self._sent, span)
            return
        # The record may have them sent, and stored, when they came or when they were committed.
        begun = min([span.after, *(each.born.after for each in self._sent)])
        self._client.ledger.arrive(self._sent, places, Span(begun, span.before))
        self._client.settled(self._acked, ACKED, span)


def number_of(headers: Mapping[str, str], body: bytes) -> int:
    """Which message of the ledger this is."""
    return int(headers.get("number") or bytes(body).partition(b" ")[0])


def stomp(place: str) -> str:
    """A destination as frames name it."""
    kind, _, name = place.partition("://")
    return f"/{kind}/{name}"


#: Milliseconds for which messages live that are to expire.
LIFETIME = 150


def soon() -> int:
    """When such a message expires that is sent now."""
    return now() // 1000 + LIFETIME


def wait_until_late() -> None:
    """Until what was sent before has expired."""
    time.sleep(LIFETIME / 1000 + 0.05)
