"""Find the stores in which the logs of a broker are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from brokerapp.errors import StoreUnavailable
from brokerapp.model.destination import TEMPORARY_LOGS
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.record import ShardRecord, ShardRecordStore

#: Seconds after which a process that is no node reads again which shards there are.
RECORD_SECONDS = 1.0
#: Seconds that a shard has to answer a process that is no node: one that stands still never does.
ANSWER_SECONDS = 10.0
T = TypeVar("T")


async def answered(store: RedisStore, answer: Awaitable[T], seconds: float) -> T:
    """Return what a shard answers within so many seconds. Raises StoreUnavailable, which names the shard."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise StoreUnavailable(f"shard {store.keys.shard} did not answer within {seconds:g} s") from None


class ShardRouter:
    """Holds the stores of a broker, and finds the one of a log.

    A node knows where its logs are (`locate`); others ask shard 0, which costs nothing where there are no shards.
    """

    def __init__(self, main: RedisStore, broker: str, replicas: int) -> None:
        self.main, self._broker, self._replicas = main, broker, replicas
        self.record_store = ShardRecordStore(main.client)
        self.record = ShardRecord()
        self.stores: dict[int, RedisStore] = {0: main}
        self.locate: Callable[[str], int] | None = None
        self._read_at = float("-inf")

    async def refresh(self) -> ShardRecord:
        """Read the record of shards, and connect to those that are new."""
        return await self._follow(await self.record_store.read())

    async def _follow(self, record: ShardRecord) -> ShardRecord:
        for number in self.stores.keys() - record.shards.keys() - {0}:
            await self.stores.pop(number).close()
        for number, shard in record.shards.items():
            if number not in self.stores:
                self.stores[number] = RedisStore(shard.url, self._broker, self._replicas, number)
        self.record, self._read_at = record, time.monotonic()
        return record

    async def all(self) -> Mapping[int, RedisStore]:
        """Return all stores, by number."""
        if self.locate is None and time.monotonic() - self._read_at > RECORD_SECONDS:
            await self._follow(await self.record_store.read_shards())
        return self.stores

    async def of(self, log: str) -> RedisStore:
        """Return the store that a log is in."""
        return next(iter((await self.by_shard([log])).values()))[0]

    async def by_shard(self, logs: Sequence[str]) -> dict[int, tuple[RedisStore, list[str]]]:
        """Return the stores that these logs are in, each with those logs."""
        stores = await self.all()
        if len(stores) == 1:
            return {0: (self.main, list(logs))}
        found: dict[int, tuple[RedisStore, list[str]]] = {}
        numbers = await self._shards_of(logs)
        if not stores.keys() >= set(numbers):  # a log was put into a shard that was added a moment ago
            await self.refresh()
            stores = self.stores
        for log, number in zip(logs, numbers, strict=True):
            found.setdefault(number, (stores[number], []))[1].append(log)
        return found

    async def _shards_of(self, logs: Sequence[str]) -> list[int]:
        if self.locate is not None:
            return list(map(self.locate, logs))
        lasting = [log for log in logs if not log.startswith(TEMPORARY_LOGS)]
        known = dict(zip(lasting, await self.record_store.shards_of(lasting), strict=True))
        return [known.get(log, 0) for log in logs]

    async def ask_each(self, ask: Callable[[RedisStore], Awaitable[T]]) -> list[T]:
        """Ask all stores the same and return their answers."""
        stores = (await self.all()).values()
        return list(await asyncio.gather(*(self._answer(store, ask(store)) for store in stores)))

    async def ask_about(
        self, logs: Sequence[str], ask: Callable[[RedisStore, list[str]], Awaitable[T]]
    ) -> list[tuple[list[str], T]]:
        """Ask each store about those of these logs that are in it, and return the answers with the logs."""
        parts = list((await self.by_shard(logs)).values()) if logs else []
        answers = await asyncio.gather(*(self._answer(store, ask(store, of_store)) for store, of_store in parts))
        return [(of_store, answer) for (_, of_store), answer in zip(parts, answers, strict=True)]

    async def _answer(self, store: RedisStore, answer: Awaitable[T]) -> T:
        """Return the answer of a shard, for which a node waits as long as it takes."""
        return await (answer if self.locate is not None else answered(store, answer, ANSWER_SECONDS))

    def others(self) -> Iterable[RedisStore]:
        """Return the stores beside the first."""
        return [store for number, store in self.stores.items() if number]
