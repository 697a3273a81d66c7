"""Requests: what operators ask of a running node, because it may hold the messages concerned in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from brokerapp.broker import Broker
from brokerapp.committer import Committer
from brokerapp.destination import Destination, Kind
from brokerapp.engine.message_log import Entry, MessageLog
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.store.redis import RedisStore

#: Messages purged in one unit.
PURGE_BATCH = 1_000


class Desk:
    """Carries out one kind of request after the other for a node."""

    def __init__(self, broker: Broker, store: RedisStore, committer: Committer, pump: Callable[[], None]) -> None:
        self._broker, self._store, self._committer, self._pump = broker, store, committer, pump

    async def purge(self, destination: str) -> int:
        """Remove all messages of a queue but those in flight."""
        log = self._broker.queues.find(Destination.parse(destination))
        held = {entry.seq for consumer in log.consumers for entry in consumer.unacked.values()}
        held |= {
            entry.seq
            for client in self._broker.clients.values()
            for transaction in client.transactions.values()
            for _, _, entry in transaction.settled
            if entry.log == log.name
        }
        log.paused = True
        try:
            return await self._purge(log, held)
        finally:
            log.paused = False
            self._broker.delivery.touched[log] = None
            self._pump()

    async def _purge(self, log: MessageLog, held: set[int]) -> int:
        removed, after = 0, 0
        log.ready.clear()
        log.unloaded, log.loaded = log.depth - log.in_flight, 0
        while True:
            found = await self._read(log, after)
            if not found:
                break
            after = found[-1].seq
            gone = [each for each in found if each.seq not in held]
            for each in gone:
                self._committer.settle(Entry(log.name, each.seq, each.message, each.payload, each.size))
            removed += len(gone)
            log.depth -= len(gone)
            log.counts.DequeueCount += len(gone)
            self._broker.stats.changed.add(log.counts)
        await self._committer.drain()
        log.returned.clear()
        log.unloaded, log.loaded = max(0, log.depth - log.in_flight), after
        return removed

    async def _read(self, log: MessageLog, after: int):
        done = asyncio.get_running_loop().create_future()
        self._committer.read(log.name, after, PURGE_BATCH, done.set_result)
        return await done

    async def create(self, destination: str) -> None:
        """Let a queue or topic exist."""
        wanted = Destination.parse(destination)
        if wanted.kind is Kind.QUEUE:
            self._broker.queues.ensure(wanted)
            await self._committer.drain()
        else:
            self._broker.stats.of(wanted)

    async def delete(self, destination: str) -> int:
        """Remove a queue with all it holds, or a topic; refused while it has consumers."""
        wanted = Destination.parse(destination)
        if wanted.kind is Kind.TOPIC:
            if self._broker.delivery.subscribers(wanted.name):
                raise RequestRefused(f"{wanted} has subscribers")
            self._broker.stats.forget(wanted)
            return 0
        log = self._broker.queues.find(wanted)
        if log.consumers or log.in_flight:
            raise RequestRefused(f"{wanted} has consumers")
        self._broker.queues.forget(log)
        await self._committer.drain()
        return await self._store.drop(log.name, self._broker.session)


async def answer(
    broker: Broker, store: RedisStore, committer: Committer, pump: Callable[[], None], request: dict[str, Any]
) -> dict[str, Any]:
    """The reply to a request: {"result": ...} or {"error": sentence, "code": code}."""
    desk = Desk(broker, store, committer, pump)
    verbs: dict[str, Callable[..., Awaitable[Any]]] = {
        "purge": desk.purge,
        "create": desk.create,
        "delete": desk.delete,
    }
    verb = verbs.get(request["verb"])
    if verb is None:
        return {"error": f"the node knows no {request['verb']!r}", "code": BrokerError.code}
    try:
        return {"result": await verb(**request["args"])}
    except BrokerError as error:
        return {"error": str(error), "code": error.code}
