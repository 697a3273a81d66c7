"""Find the stores in which the logs of a broker are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from brokerapp.model.destination import TEMPORARY_LOGS
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.record import ShardRecord, ShardRecordStore

#: Seconds after which a process that is no node reads again which shards there are.
RECORD_SECONDS = 1.0
T = TypeVar("T")


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
        for log, number in zip(logs, await self._shards_of(logs), strict=True):
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
        return list(await asyncio.gather(*map(ask, (await self.all()).values())))

    async def ask_about(
        self, logs: Sequence[str], ask: Callable[[RedisStore, list[str]], Awaitable[T]]
    ) -> list[tuple[list[str], T]]:
        """Ask each store about those of these logs that are in it, and return the answers with the logs."""
        parts = list((await self.by_shard(logs)).values()) if logs else []
        answers = await asyncio.gather(*(ask(store, of_store) for store, of_store in parts))
        return [(of_store, answer) for (_, of_store), answer in zip(parts, answers, strict=True)]

    def others(self) -> Iterable[RedisStore]:
        """Return the stores beside the first."""
        return [store for number, store in self.stores.items() if number]
