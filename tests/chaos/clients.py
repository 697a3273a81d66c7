"""Clients on real sockets that reconnect to another node and record what they see."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence

from brokerapp.stomp.frames import Frame, FrameParser, encode
from tests.chaos.ledger import ConsumerConnection, Delivery, Ledger, Sent

#: Milliseconds between heart-beats of the broker, and seconds of silence after which a client reconnects.
HEART_BEAT_MS, SILENCE_SECONDS = 500, 2.5
#: Seconds before a client whose connection broke tries the next node; for the answer to CONNECT and for a last receipt.
RECONNECT_DELAY, ANSWER_SECONDS = 0.05, 3.0
#: Messages that a consumer may hold, and that a producer may send without a receipt.
PREFETCH, WINDOW = 20, 5


class ConnectionEnded(Exception):
    """A connection has ended; the text says why."""


class Session:
    """One connection: STOMP 1.2."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._parser = reader, writer, FrameParser()

    @staticmethod
    async def open(port: int, **headers: str) -> Session:
        """Open a connection and wait for CONNECTED. Raises ConnectionEnded."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                session = Session(*await asyncio.open_connection("127.0.0.1", port))
                session.write("CONNECT", {
                    "accept-version": "1.2", "host": "here", "heart-beat": f"0,{HEART_BEAT_MS}", **headers,
                })  # fmt: skip
                async for frame in session.frames():
                    session._parser.version = "1.2"
                    if frame.command == "CONNECTED":
                        return session
        except (OSError, TimeoutError) as error:
            raise ConnectionEnded(str(error)) from error
        raise ConnectionEnded("no CONNECTED")

    def write(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Write a frame."""
        self._writer.write(encode(command, headers, body))

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield the frames of the broker. Raises ConnectionEnded at the end, after silence, and at an ERROR."""
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    data = await self._reader.read(1 << 16)
            except (OSError, TimeoutError) as error:
                raise ConnectionEnded(f"nothing heard: {error}") from error
            if not data:
                raise ConnectionEnded("closed by the broker")
            for frame in self._parser.feed(data):
                if frame.command == "ERROR":
                    raise ConnectionEnded(frame.headers.get("message", "ERROR"))
                yield frame

    def close(self) -> None:
        """Abort the connection without DISCONNECT."""
        self._writer.transport.abort()


class Client:
    """One application, with the addresses of the nodes of one broker."""

    def __init__(self, name: str, broker: str, ports: Sequence[int], ledger: Ledger, chance: random.Random) -> None:
        self.name, self.broker, self.ledger, self.chance = name, broker, ledger, chance
        self._ports = itertools.cycle(chance.sample(ports, len(ports)))
        self.is_finished = False
        self.connected: dict[str, str] = {}  #: headers of CONNECT
        self.end_reasons: list[str] = []  #: why its connections ended

    async def run(self, clock: Callable[[], float]) -> None:
        """Work at one node after the other until `is_finished`."""
        self.now = clock
        while not self.is_finished:
            try:
                session = await Session.open(next(self._ports), **self.connected)
                try:
                    await self.work(session)
                finally:
                    session.close()
            except ConnectionEnded as broken:
                self.end_reasons.append(str(broken))
                await asyncio.sleep(RECONNECT_DELAY)

    async def work(self, session: Session) -> None:
        """Use a connection. Raises ConnectionEnded when it ends; returns when `is_finished`."""
        raise NotImplementedError


class Producer(Client):
    """Sends numbered messages and waits for receipts. What was not confirmed is not sent again: the next is."""

    def __init__(self, *args, route: Callable[[int], tuple[str, tuple[str, ...]]], groups: int, pace: float) -> None:
        super().__init__(*args)
        self._route, self._groups, self._pace = route, groups, pace
        self._numbers = itertools.count(1)

    def message(self, unit: str = "") -> tuple[Sent, dict[str, str]]:
        """Return the next message, with the headers of its SEND."""
        number = next(self._numbers)
        destination, places = self._route(number)
        group = f"g{self.chance.randrange(self._groups)}" if self._groups else ""
        sent = Sent(f"{self.name}-{number}", self.name, number, places, group, unit)
        headers = {"destination": destination, "persistent": "true"}
        return sent, headers | ({"JMSXGroupID": group} if group else {})

    async def work(self, session: Session) -> None:
        room = asyncio.Semaphore(WINDOW)
        listening = asyncio.create_task(self._listen(session, room))
        try:
            while not self.is_finished:
                await wait_while_connected(room.acquire(), listening)
                self.send(session)
                await wait_while_connected(asyncio.sleep(self.chance.expovariate(1 / self._pace)), listening)
            for _ in range(WINDOW):
                await wait_while_connected(asyncio.wait_for(room.acquire(), ANSWER_SECONDS), listening)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, session: Session, room: asyncio.Semaphore) -> None:
        async for frame in session.frames():
            if frame.command == "RECEIPT":
                self.ledger.confirm(frame.headers["receipt-id"].split(","), self.now())
                room.release()

    def send(self, session: Session) -> None:
        """Send the next message."""
        sent, headers = self.message()
        self.ledger.send(sent)
        session.write("SEND", {**headers, "receipt": sent.id}, sent.id.encode())


class Transactor(Producer):
    """Sends several messages in one transaction, again and again."""

    def __init__(self, *args, size: int, **more) -> None:
        super().__init__(*args, **more)
        self._size, self._units = size, itertools.count(1)

    def send(self, session: Session) -> None:
        """Send the next transaction."""
        unit = f"{self.name}.{next(self._units)}"
        session.write("BEGIN", {"transaction": unit})
        ids = []
        for _ in range(self._size):
            sent, headers = self.message(unit)
            self.ledger.send(sent)
            ids.append(sent.id)
            session.write("SEND", {**headers, "transaction": unit}, sent.id.encode())
        session.write("COMMIT", {"transaction": unit, "receipt": ",".join(ids)})


class Consumer(Client):
    """Receives messages, processes each for a while, and acknowledges it, or rejects it with the chance `rejects`."""

    def __init__(
        self, *args, place: str, destination: str, durable: bool, thinks: float, rejects: float = 0.0
    ) -> None:  # fmt: skip
        super().__init__(*args)
        self._rejects = rejects
        self.place, self._destination, self._durable, self._thinks = place, destination, durable, thinks
        self.connected = {"client-id": self.name} if durable else {}
        self._stays = itertools.count(1)
        self._settling: dict[str, list[Delivery]] = {}  # by receipt

    async def work(self, session: Session) -> None:
        self._stay = ConsumerConnection(self.name, self.place, self.broker, next(self._stays))
        named = {"activemq.subscriptionName": self.place} if self._durable else {}
        session.write("SUBSCRIBE", {
            "id": "1", "destination": self._destination, "ack": "client-individual",
            "activemq.prefetchSize": str(PREFETCH), **named,
        })  # fmt: skip
        came: asyncio.Queue[tuple[Delivery, str]] = asyncio.Queue()
        working = asyncio.create_task(self.consume(session, came))
        try:
            async for frame in session.frames():
                self._received(frame, came)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def _received(self, frame: Frame, came: asyncio.Queue[tuple[Delivery, str]]) -> None:
        if frame.command == "MESSAGE":
            flagged = frame.headers.get("redelivered") == "true"
            given = self.ledger.deliver(bytes(frame.body).decode(), self._stay, self.now(), flagged=flagged)
            came.put_nowait((given, frame.headers["ack"]))
        elif frame.command == "RECEIPT":
            self.confirmed(frame.headers["receipt-id"])

    def confirmed(self, receipt: str) -> None:
        """Note that the broker confirmed what was acknowledged with this receipt."""
        for each in self._settling.pop(receipt):
            each.confirmed_at = self.now()

    def settle(self, given: Delivery, receipt: str, *, rejected: bool = False) -> None:
        """Note that a delivery is about to be acknowledged, or rejected."""
        self.ledger.settle(given, rejected=rejected)
        self._settling.setdefault(receipt, []).append(given)

    async def process(self) -> None:
        """Wait as long as processing takes."""
        await asyncio.sleep(self.chance.expovariate(1 / self._thinks))

    async def consume(self, session: Session, came: asyncio.Queue[tuple[Delivery, str]]) -> None:
        """Process deliveries one after the other."""
        while True:
            given, ack = await came.get()
            await self.process()
            receipt, useless = f"{given.step}", self.chance.random() < self._rejects
            self.settle(given, receipt, rejected=useless)
            session.write("NACK" if useless else "ACK", {"id": ack, "receipt": receipt})


class Relay(Consumer):
    """Forwards what it receives and acknowledges it in one transaction, several at a time."""

    def __init__(self, *args, to: tuple[str, str], **more) -> None:
        super().__init__(*args, **more)
        self._to = to
        self._numbers, self._units = itertools.count(1), itertools.count(1)
        self._confirmed: dict[str, tuple[asyncio.Event, list[str]]] = {}

    async def consume(self, session: Session, came: asyncio.Queue[tuple[Delivery, str]]) -> None:
        destination, place = self._to
        while True:
            batch = [await came.get()]
            while not came.empty():
                batch.append(came.get_nowait())
            await self.process()
            unit = f"{self.name}.{next(self._units)}"
            session.write("BEGIN", {"transaction": unit})
            done, ids = asyncio.Event(), []
            for given, ack in batch:
                session.write("ACK", {"id": ack, "transaction": unit})
                number = next(self._numbers)
                sent = Sent(f"{self.name}-{number}", self.name, number, (place,), "", unit, given.id)
                self.ledger.send(sent)
                ids.append(sent.id)
                headers = {"destination": destination, "persistent": "true", "transaction": unit}
                session.write("SEND", headers, sent.id.encode())
                self.settle(given, unit)
            self._confirmed[unit] = done, ids
            session.write("COMMIT", {"transaction": unit, "receipt": unit})
            await done.wait()

    def confirmed(self, receipt: str) -> None:
        super().confirmed(receipt)
        done, ids = self._confirmed.pop(receipt)
        self.ledger.confirm(ids, self.now())
        done.set()


async def wait_while_connected(wanted, listening: asyncio.Task) -> None:
    """Wait for this; raises ConnectionEnded as soon as the connection has ended."""
    waiting = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            listening.result()
        try:
            await waiting
        except TimeoutError as error:
            raise ConnectionEnded("no receipt") from error
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await waiting


class Clock:
    """Seconds since `start`. Moments before it, at most `ahead` seconds, are negative."""

    def __init__(self, ahead: float) -> None:
        self._began = time.monotonic() + ahead

    def start(self) -> None:
        """Set the clock to zero."""
        self._began = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._began
