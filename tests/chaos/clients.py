"""Clients on real sockets that reconnect to another node and record what they see."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence

from brokerapp.stomp.frames import Frame, FrameParser, encode
from tests.chaos.ledger import Given, Ledger, Sent, Stay

#: Milliseconds between heart-beats of the broker, and seconds of silence after which a client gives a connection up.
HEART_BEAT_MS, SILENCE = 500, 2.5
#: Seconds before a client whose connection broke tries the next node; for the answer to CONNECT and for a last receipt.
PAUSE, PATIENCE = 0.05, 3.0
#: Messages that a consumer may hold, and that of a producer are on their way.
PREFETCH, WINDOW = 20, 5


class Broken(Exception):
    """A connection is over; the text says why."""


class Session:
    """One connection: STOMP 1.2."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._parser = reader, writer, FrameParser()

    @staticmethod
    async def open(port: int, **headers: str) -> Session:
        """One whose CONNECTED came. Raises Broken."""
        try:
            async with asyncio.timeout(PATIENCE):
                session = Session(*await asyncio.open_connection("127.0.0.1", port))
                session.tell("CONNECT", {
                    "accept-version": "1.2", "host": "here", "heart-beat": f"0,{HEART_BEAT_MS}", **headers,
                })  # fmt: skip
                async for frame in session.frames():
                    session._parser.version = "1.2"
                    if frame.command == "CONNECTED":
                        return session
        except (OSError, TimeoutError) as error:
            raise Broken(str(error)) from error
        raise Broken("no CONNECTED")

    def tell(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Write a frame."""
        self._writer.write(encode(command, headers, body))

    async def frames(self) -> AsyncIterator[Frame]:
        """What the broker says. Raises Broken at the end, after silence, and at an ERROR."""
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    data = await self._reader.read(1 << 16)
            except (OSError, TimeoutError) as error:
                raise Broken(f"nothing heard: {error}") from error
            if not data:
                raise Broken("closed by the broker")
            for frame in self._parser.feed(data):
                if frame.command == "ERROR":
                    raise Broken(frame.headers.get("message", "ERROR"))
                yield frame

    def close(self) -> None:
        """Gone, without a word."""
        self._writer.transport.abort()


class Client:
    """One program, with the addresses of the nodes of one broker."""

    def __init__(self, name: str, broker: str, ports: Sequence[int], ledger: Ledger, chance: random.Random) -> None:
        self.name, self.broker, self.ledger, self.chance = name, broker, ledger, chance
        self._ports = itertools.cycle(chance.sample(ports, len(ports)))
        self.over = False
        self.connected: dict[str, str] = {}  #: headers of CONNECT
        self.ends: list[str] = []  #: why its connections ended

    async def live(self, clock: Callable[[], float]) -> None:
        """Work, at one node after the other, until it is over."""
        self.now = clock
        while not self.over:
            try:
                session = await Session.open(next(self._ports), **self.connected)
                try:
                    await self.work(session)
                finally:
                    session.close()
            except Broken as broken:
                self.ends.append(str(broken))
                await asyncio.sleep(PAUSE)

    async def work(self, session: Session) -> None:
        """What it does with a connection. Raises Broken when that ends; returns when it is over."""
        raise NotImplementedError


class Producer(Client):
    """Sends numbered messages and waits for receipts. What was not confirmed is not sent again: the next is."""

    def __init__(self, *args, route: Callable[[int], tuple[str, tuple[str, ...]]], groups: int, pace: float) -> None:
        super().__init__(*args)
        self._route, self._groups, self._pace = route, groups, pace
        self._numbers = itertools.count(1)

    def message(self, unit: str = "") -> tuple[Sent, dict[str, str]]:
        """The next one, with the headers of its SEND."""
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
            while not self.over:
                await either(room.acquire(), listening)
                self.send(session)
                await either(asyncio.sleep(self.chance.expovariate(1 / self._pace)), listening)
            for _ in range(WINDOW):
                await either(asyncio.wait_for(room.acquire(), PATIENCE), listening)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, session: Session, room: asyncio.Semaphore) -> None:
        async for frame in session.frames():
            if frame.command == "RECEIPT":
                self.ledger.confirm(frame.headers["receipt-id"].split(","), self.now())
                room.release()

    def send(self, session: Session) -> None:
        """The next message."""
        sent, headers = self.message()
        self.ledger.send(sent)
        session.tell("SEND", {**headers, "receipt": sent.id}, sent.id.encode())


class Transactor(Producer):
    """Sends several messages in one transaction, again and again."""

    def __init__(self, *args, size: int, **more) -> None:
        super().__init__(*args, **more)
        self._size, self._units = size, itertools.count(1)

    def send(self, session: Session) -> None:
        """The next transaction."""
        unit = f"{self.name}.{next(self._units)}"
        session.tell("BEGIN", {"transaction": unit})
        ids = []
        for _ in range(self._size):
            sent, headers = self.message(unit)
            self.ledger.send(sent)
            ids.append(sent.id)
            session.tell("SEND", {**headers, "transaction": unit}, sent.id.encode())
        session.tell("COMMIT", {"transaction": unit, "receipt": ",".join(ids)})


class Consumer(Client):
    """Gets messages, thinks about each for a while, and acknowledges or, of so many of one, rejects it."""

    def __init__(
        self, *args, place: str, destination: str, durable: bool, thinks: float, rejects: float = 0.0
    ) -> None:  # fmt: skip
        super().__init__(*args)
        self._rejects = rejects
        self.place, self._destination, self._durable, self._thinks = place, destination, durable, thinks
        self.connected = {"client-id": self.name} if durable else {}
        self._stays = itertools.count(1)
        self._settling: dict[str, list[Given]] = {}  # by receipt

    async def work(self, session: Session) -> None:
        self._stay = Stay(self.name, self.place, self.broker, next(self._stays))
        named = {"activemq.subscriptionName": self.place} if self._durable else {}
        session.tell("SUBSCRIBE", {
            "id": "1", "destination": self._destination, "ack": "client-individual",
            "activemq.prefetchSize": str(PREFETCH), **named,
        })  # fmt: skip
        came: asyncio.Queue[tuple[Given, str]] = asyncio.Queue()
        working = asyncio.create_task(self.consume(session, came))
        try:
            async for frame in session.frames():
                self._heard(frame, came)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def _heard(self, frame: Frame, came: asyncio.Queue[tuple[Given, str]]) -> None:
        if frame.command == "MESSAGE":
            flagged = frame.headers.get("redelivered") == "true"
            given = self.ledger.give(bytes(frame.body).decode(), self._stay, self.now(), flagged=flagged)
            came.put_nowait((given, frame.headers["ack"]))
        elif frame.command == "RECEIPT":
            self.confirmed(frame.headers["receipt-id"])

    def confirmed(self, receipt: str) -> None:
        """What was acknowledged with this receipt is settled for good."""
        for each in self._settling.pop(receipt):
            each.settled = self.now()

    def settle(self, given: Given, receipt: str, *, rejected: bool = False) -> None:
        """It is about to be acknowledged, or rejected."""
        self.ledger.settle(given, rejected=rejected)
        self._settling.setdefault(receipt, []).append(given)

    async def think(self) -> None:
        """As long as it takes: mostly a moment."""
        await asyncio.sleep(self.chance.expovariate(1 / self._thinks))

    async def consume(self, session: Session, came: asyncio.Queue[tuple[Given, str]]) -> None:
        """One after the other."""
        while True:
            given, ack = await came.get()
            await self.think()
            receipt, useless = f"{given.step}", self.chance.random() < self._rejects
            self.settle(given, receipt, rejected=useless)
            session.tell("NACK" if useless else "ACK", {"id": ack, "receipt": receipt})


class Relay(Consumer):
    """Passes on what it gets, and acknowledges it, in one transaction, some at a time."""

    def __init__(self, *args, to: tuple[str, str], **more) -> None:
        super().__init__(*args, **more)
        self._to = to
        self._numbers, self._units = itertools.count(1), itertools.count(1)
        self._confirmed: dict[str, tuple[asyncio.Event, list[str]]] = {}

    async def consume(self, session: Session, came: asyncio.Queue[tuple[Given, str]]) -> None:
        destination, place = self._to
        while True:
            batch = [await came.get()]
            while not came.empty():
                batch.append(came.get_nowait())
            await self.think()
            unit = f"{self.name}.{next(self._units)}"
            session.tell("BEGIN", {"transaction": unit})
            done, ids = asyncio.Event(), []
            for given, ack in batch:
                session.tell("ACK", {"id": ack, "transaction": unit})
                number = next(self._numbers)
                sent = Sent(f"{self.name}-{number}", self.name, number, (place,), "", unit, given.id)
                self.ledger.send(sent)
                ids.append(sent.id)
                headers = {"destination": destination, "persistent": "true", "transaction": unit}
                session.tell("SEND", headers, sent.id.encode())
                self.settle(given, unit)
            self._confirmed[unit] = done, ids
            session.tell("COMMIT", {"transaction": unit, "receipt": unit})
            await done.wait()

    def confirmed(self, receipt: str) -> None:
        super().confirmed(receipt)
        done, ids = self._confirmed.pop(receipt)
        self.ledger.confirm(ids, self.now())
        done.set()


async def either(wanted, listening: asyncio.Task) -> None:
    """Wait for this; raises Broken as soon as the connection is over."""
    waiting = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            listening.result()
        try:
            await waiting
        except TimeoutError as error:
            raise Broken("no receipt") from error
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await waiting


class Clock:
    """Seconds since it was started. What is before that, at most so many, is less than nothing: what clients saw then
    was before all that they saw later.
    """

    def __init__(self, ahead: float) -> None:
        self._began = time.monotonic() + ahead

    def start(self) -> None:
        """It is nought now."""
        self._began = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._began
