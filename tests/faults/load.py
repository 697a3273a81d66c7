"""Run a load that records what was sent and confirmed, delivered, and acknowledged.

Clients are coroutines on bare sockets, light enough to keep a broker busy. A client ends when its connection does.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from brokerapp.stomp.frames import Frame, FrameParser, encode

WINDOW = 100  # messages of one producer on their way


class Connection:
    """STOMP 1.2 on a stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._parser = FrameParser()

    @staticmethod
    async def open(port: int, **headers: str) -> Connection:
        """A connection whose CONNECTED came."""
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
        await connection.tell(encode("CONNECT", {"accept-version": "1.2", "host": "here", **headers}))
        frames = connection.frames()
        assert [(await anext(frames)).command] == ["CONNECTED"]
        connection._parser.version = "1.2"
        return connection

    async def tell(self, data: bytes) -> None:
        """Write; waits while the broker does not read."""
        self._writer.write(data)
        await self._writer.drain()

    async def frames(self) -> AsyncIterator[Frame]:
        """What the broker says, until the connection ends."""
        while data := await self._reader.read(1 << 16):
            for frame in self._parser.feed(data):
                assert frame.command != "ERROR", frame
                yield frame

    def close(self) -> None:
        """Gone."""
        self._writer.close()


@dataclass
class Account:
    """What is known of one run of the broker."""

    sent: set[str] = field(default_factory=set)
    confirmed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  #: destination -> bodies
    delivered: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  #: queue -> bodies
    flagged: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  #: those that came as redelivered
    acked: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  #: those whose ACK has its RECEIPT

    async def produce(self, port: int, destination: str, name: str, count: int, pause: float = 0.0) -> None:
        """Send `count` persistent messages, a receipt each."""
        confirmed = self.confirmed[destination]
        room = asyncio.Semaphore(WINDOW)
        connection = await Connection.open(port)

        async def listen() -> None:
            done = 0
            async for frame in connection.frames():
                confirmed.add(frame.headers["receipt-id"])
                room.release()
                done += 1
                if done == count:
                    return

        listening = asyncio.create_task(listen())
        try:
            for number in range(count):
                await _either(room.acquire(), listening)
                body = f"{name}-{number}"
                self.sent.add(body)
                headers = {"destination": destination, "persistent": "true", "receipt": body}
                await connection.tell(encode("SEND", headers, body.encode()))
                if pause:
                    await asyncio.sleep(pause)
            await listening
        except ConnectionError:
            pass
        finally:
            listening.cancel()
            connection.close()

    async def consume(self, port: int, queue: str, prefetch: int = 100) -> None:
        """Ack one by one, a receipt each, until cancelled."""
        await self._consume(await Connection.open(port), queue, prefetch, {"destination": f"/queue/{queue}"})

    async def consume_durable(self, port: int, topic: str, client_id: str, prefetch: int = 100) -> None:
        """The same for a durable subscription of a topic, kept under its client-id."""
        connection = await Connection.open(port, **{"client-id": client_id})
        headers = {"destination": f"/topic/{topic}", "activemq.subscriptionName": "sub"}
        await self._consume(connection, client_id, prefetch, headers)

    async def _consume(self, connection: Connection, place: str, prefetch: int, headers: dict[str, str]) -> None:
        delivered, flagged, acked = self.delivered[place], self.flagged[place], self.acked[place]
        subscribe = {**headers, "id": "1", "ack": "client-individual", "activemq.prefetchSize": str(prefetch)}
        await connection.tell(encode("SUBSCRIBE", subscribe))
        try:
            async for frame in connection.frames():
                if frame.command == "RECEIPT":
                    acked.add(frame.headers["receipt-id"])
                    continue
                body = frame.body.decode()
                delivered[body] += 1
                if frame.headers.get("redelivered") == "true":
                    flagged.add(body)
                await connection.tell(encode("ACK", {"id": frame.headers["ack"], "receipt": body}))
        except ConnectionError:
            pass
        finally:
            connection.close()


async def _either(wanted, listening: asyncio.Task) -> None:
    """Wait for this, or for the end of the connection, which is an error."""
    waiting = asyncio.ensure_future(wanted)
    await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        raise ConnectionError("the broker is gone")
