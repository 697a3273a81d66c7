"""Serve the shards of a broker from a node: those that it begins with, and those that operators add."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.core.shards.assembly import CommitsBuilder
from brokerapp.core.shards.shard_placement import ShardPlacement
from brokerapp.errors import BrokerError, ConfigurationRefused, StoreUnavailable
from brokerapp.model.destination import TEMPORARY_LOGS
from brokerapp.runtime.shards.family_mover import FamilyMover
from brokerapp.runtime.shards.vanished_places import VanishedPlaces
from brokerapp.store import StoreLimits
from brokerapp.store.memory_limits import server_limit
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.record import DRAINING, JOINING, SERVING
from brokerapp.store.shards.router import answered

logger = logging.getLogger(__name__)

#: Seconds between two looks at the shards: whether all nodes serve one that was added, and how full they are.
LOOK_SECONDS = 1.0
#: Seconds until a move is tried again that was not done: each holds the clients of the family for a moment.
RETRY_SECONDS = 15.0
#: Seconds between two counts of the messages and intents of a shard: a count reads the length of each log.
COUNT_SECONDS = 10.0
#: Seconds to wait for a shard that does not answer, at each look, and when its messages are counted.
ANSWER_SECONDS, COUNT_ANSWER_SECONDS = 1.0, 5.0


class NodeShards:
    """The shards that a node serves. `limits` are those of the whole broker, of which each shard has an equal share.

    `is_eldest` says whether this node decides for all; `statuses` are those of all live nodes.
    """

    def __init__(self, store: BrokerStore, limits: StoreLimits, is_eldest: Callable[[], bool]) -> None:
        self._store, self._is_eldest = store, is_eldest
        self._total, self._temp = limits.total, limits.temp
        self._limits = {0: limits}
        self._builder: CommitsBuilder
        self._placement: ShardPlacement
        self._vanished: VanishedPlaces
        self._next_move_at = float("-inf")  # after one that was not done
        self._together_by: int | None = None  # version of the definitions by which each family is in one shard
        self._served: set[int] = set()
        self._gone: set[str] = set()  # logs that this node knows of, and no shard has
        self._unserved: dict[int, str] = {}  # shards that were added, and why they cannot be served yet
        self._refreshing = asyncio.Lock()
        self._reports: dict[int, dict[str, Any]] = {}  # what was found at the last look at each shard
        self._count_at: dict[int, float] = {}  # when to count the messages of each shard next
        self._share()

    def _share(self) -> None:
        """Divide the limits of the broker among its shards."""
        numbers = self._store.shards.stores
        for number in numbers:
            limits = self._limits.setdefault(number, replace(self._limits[0]))
            limits.total, limits.temp = self._total // len(numbers), self._temp // len(numbers)

    def stores(self) -> Mapping[int, tuple[CommitStore, StoreLimits]]:
        """Return the shards with their limits."""
        return {number: (store, self._limits[number]) for number, store in self._store.shards.stores.items()}

    async def attach(self, builder: CommitsBuilder, placement: ShardPlacement) -> None:
        """Let the broker that was built with these write to the shards."""
        self._builder, self._placement = builder, placement
        for number, store in self._store.shards.stores.items():
            await self._begin_usage(number, store)
            self._served.add(number)
        self._vanished = VanishedPlaces(self._store.shard_record, placement.family_of)
        self._store.shards.locate = builder.commits.shard_of
        self._follow()

    async def _begin_usage(self, number: int, store: RedisStore) -> None:
        used, _ = await store.logs.used_bytes()
        self._builder.commits.begin_usage(number, used, await store.logs.temp_used_bytes())

    def _follow(self) -> None:
        record = self._store.shards.record
        if record.shards:
            self._placement.follow([each for each in record.serving if each in self._served], record.families)

    async def adopt(self) -> None:
        """Keep in the store where the logs are that the node has found: new ones of their families go there, too."""
        if self._store.shards.record.shards:
            located = self._builder.commits.located
            await self._placement.adopt({log: shard for log, shard in located.items() if log not in self._gone})

    async def refresh(self) -> None:
        """Serve shards that were added since, and put new families where they may be put now."""
        async with self._refreshing:
            stores = self._store.shards.stores
            known = (await self._store.shard_record.read_shards()).shards
            for number in self._served - known.keys() - {0}:
                await self._store.nodes.leave_shard(stores[number])
            await self._store.shards.refresh()
            self._follow()
            for number in self._served - stores.keys():
                self._served.remove(number)
                self._builder.commits.remove_shard(number)
                self._share()
                logger.info("shard %d of the store was removed", number)
            for number in stores.keys() - self._served:
                await self._serve(number, stores[number])
            self._unserved = {number: why for number, why in self._unserved.items() if number in stores}
            self._follow()
            await self._note_gone()
            await self.adopt()

    async def _note_gone(self) -> None:
        """Note which logs the record lacks: those that are there are claimed again, others when they are made anew."""
        lasting = [log for log in self._builder.commits.located if not log.startswith(TEMPORARY_LOGS)]
        known = await self._store.shard_record.known_shards_of(lasting)
        unknown = [log for log, shard in known.items() if shard is None]
        for log in unknown:
            self._placement.unclaim(log)
        try:
            async with asyncio.timeout(COUNT_ANSWER_SECONDS):
                found = await self._store.logs.attributes_of(unknown)
        except (TimeoutError, StoreUnavailable):
            found = [{} for _ in unknown]  # which the next refresh finds
        self._gone = {log for log, attributes in zip(unknown, found, strict=True) if not attributes}

    async def _serve(self, number: int, store: RedisStore) -> None:
        """Serve a shard that was added, if it answers; else `run` tries again. The others go on meanwhile."""
        try:
            await self._store.nodes.join_shard(store)
            used = await answered(store, store.logs.used_bytes(), ANSWER_SECONDS)
            temp = await answered(store, store.logs.temp_used_bytes(), ANSWER_SECONDS)
        except (StoreUnavailable, ConfigurationRefused) as error:
            if self._unserved.get(number) != str(error):
                logger.warning("shard %d of the store cannot be served yet: %s; trying again", number, error)
            self._unserved[number] = str(error)
            return
        self._unserved.pop(number, None)
        self._share()
        self._builder.add(number, store, self._limits[number])
        self._builder.commits.begin_usage(number, used[0], temp)
        self._served.add(number)
        logger.info("serving shard %d of the store", number)

    async def run(self, statuses: Callable[[], Any]) -> None:
        """Look at the shards now and then, until cancelled; the eldest node opens those that all nodes serve."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            shards = self._store.shards
            if shards.stores.keys() - self._served:
                await self.refresh()
            if shards.record.shards:  # a broker with one store reports none
                await asyncio.gather(*(self._look(number, shards.stores[number]) for number in self._served))
                await self._forget_vanished()
            joining = [each for each in shards.record.shards.values() if each.state == JOINING]
            if joining and self._is_eldest():
                served = [_served(status) for status in (await statuses()).values()]
                for shard in joining:
                    is_served = all(shard.number in numbers for numbers in served)
                    if is_served and await self._store.shard_record.set_state(shard, SERVING):
                        logger.info("shard %d of the store is served by all nodes", shard.number)

    async def run_moves(self, mover: FamilyMover) -> None:
        """Where this is the eldest node, move families together, and away from shards that are drained, until
        cancelled.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self._is_eldest() or time.monotonic() < self._next_move_at or not (wanted := self._wanted_move()):
                continue
            family, target = wanted
            try:
                await mover.move_family(family, target)
                await mover.wait()
                is_done = set(self._builder.commits.of_family(family).values()) == {target}
            except BrokerError as error:
                logger.warning("the family %s is not moved to shard %d: %s", family, target, error)
                is_done = False
            if not is_done:
                self._next_move_at = time.monotonic() + RETRY_SECONDS

    async def _forget_vanished(self) -> None:
        """Where this is the eldest node, forget where logs were that are gone."""
        stores, reports = self._store.shards.stores, self._reports.values()
        if not self._is_eldest() or stores.keys() != self._served or not all(each.get("answers") for each in reports):
            self._vanished.reset()
            return
        try:
            async with asyncio.timeout(COUNT_ANSWER_SECONDS):
                await self._vanished.look(stores, self._builder.commits.located.keys() - self._gone)
        except (TimeoutError, StoreUnavailable):
            self._vanished.reset()

    def _wanted_move(self) -> tuple[str, int] | None:
        """Return a family that is to move, and where to: away from a shard that is drained, or together.

        Definitions that were changed may have joined families which are in several shards.
        """
        placement, located = self._placement, self._builder.commits.located
        draining = {each.number for each in self._store.shards.record.shards.values() if each.state == DRAINING}
        if draining:
            families = (placement.family_of(log) for log, shard in located.items() if shard in draining)
            if (family := next(families, None)) is not None:
                return family, placement.place_anew(family)
        if len(self._store.shards.stores) == 1 or self._together_by == placement.version:
            return None
        places: dict[str, set[int]] = {}
        for log, shard in located.items():
            places.setdefault(placement.family_of(log), set()).add(shard)
        for family, shards in places.items():
            if len(shards) > 1:
                target = placement.place_of(family)
                return family, target if target in shards else min(shards)
        self._together_by = placement.version
        return None

    async def _look(self, number: int, store: RedisStore) -> None:
        report = self._reports.setdefault(number, {})
        try:
            memory = await answered(store, store.server.memory(), ANSWER_SECONDS)
            if number:  # the node watches the memory of the first store by itself
                self._limits[number].server = server_limit(memory)
            report.update(memory_used=memory["used"], memory_limit=memory["limit"])
            if monotonic() >= self._count_at.get(number, 0):
                self._count_at[number] = monotonic() + COUNT_SECONDS
                report.update(await answered(store, self._count(number, store), COUNT_ANSWER_SECONDS))
        except StoreUnavailable as error:
            if report.get("answers", True):
                logger.warning("shard %d of the store does not answer: %s", number, error)
            report["answers"] = False
            return
        if not report.get("answers", True):
            logger.warning("shard %d of the store answers again", number)
        report["answers"] = True

    async def _count(self, number: int, store: RedisStore) -> dict[str, int]:
        depths = await store.logs.depths(self._logs_of(number))
        return {"messages": sum(depths.values()), "intents": await IntentStore(store.client).count()}

    def _logs_of(self, number: int) -> list[str]:
        return [log for log, shard in self._builder.commits.located.items() if shard == number]

    def status(self) -> list[dict[str, Any]]:
        """Return what the node tells operators of the shards; nothing of a broker with one store."""
        record, commits = self._store.shards.record, self._builder.commits
        if not record.shards:
            return []
        logs = commits.located
        counts: dict[int, int] = {}
        for shard in logs.values():
            counts[shard] = counts.get(shard, 0) + 1
        states = {0: SERVING, **{number: each.state for number, each in record.shards.items()}}
        return [
            {
                "number": number, "state": states.get(number, ""), "logs": counts.get(number, 0),
                "used": commits.used_of(number), "limit": self._limits[number].total,
                **{"answers": True, "messages": 0, "intents": 0, **self._reports.get(number, {})},
            }
            for number in sorted(self._served)
        ]  # fmt: skip


def _served(status: Mapping[str, Any]) -> Collection[int]:
    return [each["number"] for each in status.get("shards", [])]
