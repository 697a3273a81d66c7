"""Clients that send transactions over queues of several shards, and an account of what became of them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from brokerapp.stomp.frames import encode
from tests.faults.load import Connection

#: Queues that a transaction sends to, and transactions of one client on their way.
QUEUES_IN_ONE, WINDOW = 3, 8
#: Seconds after which something hangs.
ENOUGH = 60.0


@dataclass
class Transactions:
    """Transactions that send to queues of several shards: which were sent, and which are confirmed."""

    queues: list[str]
    sent: dict[str, list[str]] = field(default_factory=dict)  #: body -> the queues that get it
    confirmed: set[str] = field(default_factory=set)

    async def run(self, port: int, name: str, seed: int) -> None:
        """Send transactions until the connection ends."""
        connection, chance, room = await Connection.open(port), random.Random(seed), asyncio.Semaphore(WINDOW)

        async def listen() -> None:
            async for frame in connection.frames():
                self.confirmed.add(frame.headers["receipt-id"])
                room.release()

        listening = asyncio.create_task(listen())
        try:
            number = 0
            while not listening.done():
                async with asyncio.timeout(ENOUGH):  # wait_for may swallow the cancellation
                    await room.acquire()
                body, number = f"{name}-{number}", number + 1
                self.sent[body] = chance.sample(self.queues, QUEUES_IN_ONE)
                frames = [encode("BEGIN", {"transaction": body})]
                frames += [
                    encode(
                        "SEND",
                        {"destination": f"/queue/{each}", "transaction": body, "persistent": "true"},
                        body.encode(),
                    )
                    for each in self.sent[body]
                ]
                frames.append(encode("COMMIT", {"transaction": body, "receipt": body}))
                await connection.tell(b"".join(frames))
        except (ConnectionError, TimeoutError):
            pass
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            connection.close()

    def check(self, found: dict[str, list[str]], confirmed: set[str] | None = None) -> None:
        """Compare with what each queue holds: all of a transaction, once and in order, or nothing; all `confirmed`.

        These are all that were, unless said.
        """
        there: dict[str, list[str]] = defaultdict(list)
        for queue, bodies in found.items():
            assert [body for body, count in Counter(bodies).items() if count > 1] == [], f"twice in {queue}"
            for body in bodies:
                there[body].append(queue)
            numbers: dict[str, list[int]] = defaultdict(list)
            for body in bodies:
                client, _, number = body.rpartition("-")
                numbers[client].append(int(number))
            assert all(each == sorted(each) for each in numbers.values()), f"not in order in {queue}"
        assert {body: sorted(queues) for body, queues in there.items()} == {
            body: sorted(self.sent[body]) for body in there
        }, "a transaction is there in part"
        assert (self.confirmed if confirmed is None else confirmed) - set(there) == set(), "confirmed, and lost"
