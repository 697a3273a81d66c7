"""Call the store of a former version, which is first on the path: a JSON list a line, a response a line."""

import asyncio
import json
import sys
from types import SimpleNamespace

from brokerapp.message import Message

from brokerapp.store import Batch, Limits, Unit
from brokerapp.store.redis import RedisStore


class Former:
    """A node of that version, as far as the store sees one."""

    def __init__(self, url: str, broker: str) -> None:
        self._store, self._batch = RedisStore(url, broker), 0

    async def open(self):
        await self._store.open()

    async def claim(self):
        return await self._store.claim("former", "former")

    async def append(self, log: str, body: str):
        message = Message("ID:former:1", b"message-id:ID\\cformer\\c1\n", body.encode(), True, born_us=1)
        return await self._commit(Unit([(message.stored(), [(log, "", "")])]))

    async def settle(self, log: str, seq: int):
        [found] = await self._store.read_these(log, [seq])
        entry = SimpleNamespace(log=log, seq=seq, payload=found.payload, size=found.size, message=found.message)
        return await self._commit(Unit(settles=[entry]))

    async def read(self, log: str):
        return [[each.seq, each.message.body.decode()] for each in await self._store.read(log, 0, 1000)]

    async def beat(self):
        await self._store.beat("former", {"node": "former"}, "former")

    async def _commit(self, unit: Unit):
        self._batch += 1
        return (await self._store.commit("former", Batch(self._batch, [unit]), Limits())).base + 1


async def serve() -> None:
    former = Former(*sys.argv[1:])
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(await getattr(former, verb)(*arguments)) + "\n")
        sys.stdout.flush()


asyncio.run(serve())
