"""The parts of a broker's store that concern its logs, whichever shards those are in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from brokerapp.model import JsonObject
from brokerapp.store import LogState, StoredJob, StoredLogEntry
from brokerapp.store.shards.router import ShardRouter

T = TypeVar("T")


class ShardedEntries:
    """Reads the messages of logs; see EntryStore."""

    def __init__(self, shards: ShardRouter) -> None:
        self._shards = shards

    async def read(self, log: str, after: int, count: int) -> list[StoredLogEntry]:
        """See EntryStore; so for all below."""
        return await (await self._shards.of(log)).entries.read(log, after, count)

    async def read_back(self, log: str, before: int, count: int) -> list[StoredLogEntry]:
        return await (await self._shards.of(log)).entries.read_back(log, before, count)

    async def read_by_priority(self, log: str, after: int, count: int) -> list[StoredLogEntry]:
        return await (await self._shards.of(log)).entries.read_by_priority(log, after, count)

    async def read_by_seq(self, log: str, numbers: Sequence[int]) -> list[StoredLogEntry]:
        return await (await self._shards.of(log)).entries.read_by_seq(log, numbers)

    async def existing_seqs(self, log: str, numbers: Sequence[int]) -> set[int]:
        return await (await self._shards.of(log)).entries.existing_seqs(log, numbers)

    async def newest_seq(self, log: str) -> int:
        return await (await self._shards.of(log)).entries.newest_seq(log)

    async def first_arrivals_ms(self, logs: Sequence[str]) -> list[int]:
        answers = await self._shards.ask_about(logs, lambda store, some: store.entries.first_arrivals_ms(some))
        return _in_order(logs, answers)


class ShardedLogs:
    """Reads the state of logs and removes them; see LogStore."""

    def __init__(self, shards: ShardRouter) -> None:
        self._shards = shards

    async def all_attributes(self) -> dict[str, JsonObject]:
        """See LogStore; so for all below."""
        return _merged(await self._shards.ask_each(lambda store: store.logs.all_attributes()))

    async def attributes(self, log: str) -> JsonObject:
        return await (await self._shards.of(log)).logs.attributes(log)

    async def attributes_of(self, logs: Sequence[str]) -> list[JsonObject]:
        answers = await self._shards.ask_about(logs, lambda store, some: store.logs.attributes_of(some))
        return _in_order(logs, answers)

    async def depths(self, logs: Sequence[str]) -> dict[str, int]:
        answers = await self._shards.ask_about(logs, lambda store, some: store.logs.depths(some))
        return _merged([answer for _, answer in answers])

    async def used_bytes(self) -> tuple[int, dict[str, int]]:
        answers = await self._shards.ask_each(lambda store: store.logs.used_bytes())
        return sum(total for total, _ in answers), _merged([by_log for _, by_log in answers])

    async def temp_used_bytes(self) -> int:
        return sum(await self._shards.ask_each(lambda store: store.logs.temp_used_bytes()))

    async def last_seqs(self, logs: Sequence[str]) -> dict[str, int]:
        answers = await self._shards.ask_about(logs, lambda store, some: store.logs.last_seqs(some))
        return _merged([answer for _, answer in answers])

    async def recover(self) -> list[LogState]:
        """Return the state of all logs; of one that several shards have, as a move left it there, where it is now."""
        states: dict[str, dict[int, LogState]] = {}
        stores = await self._shards.all()
        for number, found in zip(stores, await self._shards.ask_each(lambda store: store.logs.recover()), strict=True):
            for state in found:
                states.setdefault(state.name, {})[number] = state
        doubtful = [name for name, by_shard in states.items() if len(by_shard) > 1]
        places = dict(zip(doubtful, await self._shards.record_store.shards_of(doubtful), strict=True))
        return [by_shard.get(places.get(name, 0)) or next(iter(by_shard.values())) for name, by_shard in states.items()]

    async def recover_logs(self, logs: Sequence[str]) -> list[LogState]:
        answers = await self._shards.ask_about(logs, lambda store, some: store.logs.recover_logs(some))
        return [state for _, states in answers for state in states]

    async def index_priority(self, log: str, session: str, after: int) -> int:
        return await (await self._shards.of(log)).logs.index_priority(log, session, after)

    async def drop(self, log: str, session: str, keep: bool = False, *, discarded: bool = False) -> int:
        return await (await self._shards.of(log)).logs.drop(log, session, keep, discarded=discarded)


class ShardedSchedules:
    """Reads scheduled jobs, which are in shard 0, and entries that expire; see ScheduleStore."""

    def __init__(self, shards: ShardRouter) -> None:
        self._shards, self._main = shards, shards.main.schedules

    async def logs_with_expired(self, now_ms: int) -> list[str]:
        """See ScheduleStore; so for all below."""
        found = await self._shards.ask_each(lambda store: store.schedules.logs_with_expired(now_ms))
        return list(chain.from_iterable(found))

    async def read_expired(self, log: str, now_ms: int, skip: int, count: int) -> list[StoredLogEntry]:
        return await (await self._shards.of(log)).schedules.read_expired(log, now_ms, skip, count)

    async def read_jobs(self, start_ms: int, end_ms: int, skip: int, count: int) -> list[StoredJob]:
        return await self._main.read_jobs(start_ms, end_ms, skip, count)

    async def read_job(self, id: str) -> StoredJob | None:
        return await self._main.read_job(id)

    async def next_due_ms(self) -> int | None:
        return await self._main.next_due_ms()

    async def job_count(self) -> int:
        return await self._main.job_count()


def _merged(answers: Sequence[dict[str, T]]) -> dict[str, T]:
    return {name: each for answer in answers for name, each in answer.items()}


def _in_order(logs: Sequence[str], answers: Sequence[tuple[list[str], list[T]]]) -> list[T]:
    """Return what was answered of each log, in the order of these logs."""
    by_log = {log: each for some, answer in answers for log, each in zip(some, answer, strict=True)}
    return [by_log[log] for log in logs]
