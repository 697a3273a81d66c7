"""RedisStore: the store on Redis 7 or Valkey 7.2 and later, one server-side function a verb (functions/)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from brokerapp.errors import DefinitionConflict, Fenced, StoreUnavailable
from brokerapp.message import Message
from brokerapp.store import Batch, Committed, Limits, LogState, StoredEntry, StoredJob
from brokerapp.store.commit_call import ROWS_AT_ONCE, committed, encode_jobs, encode_units
from brokerapp.store.connection import Direct, alive, packing
from brokerapp.store.keys import Keys
from brokerapp.store.library import LIBRARY, NAME, PREFIX
from brokerapp.store.rings import Rings

#: A node is taken for dead when it has not beaten for this long.
NODE_TIMEOUT_MS = 5_000
#: Trace batches kept when no archiver takes them: at up to 32,768 events each, some 8 million events.
TRACE_BATCHES = 250
#: Bytes of messages after which a read gives no more: bounds what an answer takes in memory.
READ_BYTES = 4 * 1024 * 1024
#: Entries removed in one call of `drop`: some milliseconds of the server's time.
DROP_BATCH = 5_000
#: Entries given places by priority in one call, for the same reason.
PRIORITIZED_AT_ONCE = 5_000
#: Answers nobody fetches are forgotten after this.
REPLY_SECONDS = 60


class RedisStore:
    """See brokerapp.store. Belongs to the event loop it is first used on."""

    def __init__(self, url: str, broker: str) -> None:
        self.url, self.keys = url, Keys(broker)
        # The caller decides what to do about a lost connection: the driver must not repeat a commit by itself. Nor may
        # it set a deadline: some calls wait for long, and what it does for one now and then swallows a cancellation.
        pool = redis.ConnectionPool.from_url(
            url, protocol=2, retry=Retry(NoBackoff(), 0), health_check_interval=0, socket_timeout=None, **alive(url)
        )
        pool.connection_class = packing(pool.connection_class)
        self._redis = redis.Redis.from_pool(pool)
        self._commits = Direct(pool)
        self._redis.response_callbacks.clear()  # answers as the server gives them, not as the driver reads them
        self.rings = Rings(self.keys, self._do, self._many)

    async def open(self) -> None:
        """Load the function library. A server without memory takes none: then it must be there already."""
        try:
            await self._do("FUNCTION", "LOAD", "REPLACE", LIBRARY)
        except StoreUnavailable:
            known = await self._do("FUNCTION", "LIST", "LIBRARYNAME", NAME, "WITHCODE")
            if not any(LIBRARY.encode() in each for each in known):
                raise

    async def close(self) -> None:
        """Give back the connections."""
        await self._commits.close()
        await self._redis.aclose()

    # -- messages

    async def commit(self, session: str, batch: Batch, limits: Limits) -> Committed:
        """Do a batch of units, whole or not at all each. Repeating the same batch does nothing more."""
        logs, body = encode_units(batch.units)
        keys = self.keys
        prefix = keys.log_prefix
        prefixes = (keys.payload_prefix, prefix, keys.expiring_prefix, keys.returned_prefix, keys.urgent_prefix)
        args: list[Any] = [session, batch.number, limits.total, *prefixes, limits.server, limits.temp]
        args.append(len(batch.declarations))
        for log, attributes in batch.declarations:
            args += (log, prefix + log, attributes or "")
        args.append(len(batch.marks))
        for mark in batch.marks:
            args += mark
        args.append(len(batch.returned))
        for returned in batch.returned:
            args += returned
        args += encode_jobs(batch)
        args += map(limits.of_log, logs)
        droppable = [(unit, *each) for unit, asked in batch.numbered for each in asked.droppable]
        args.append(len(droppable))
        for each in droppable:
            args += each
        fixed = (
            keys.state, keys.logs, keys.used, keys.marks, keys.expiring, keys.due, keys.jobs, keys.prioritized,
        )  # fmt: skip
        named = [*fixed, *(prefix + log for log in logs)]
        answer = await _ours("FCALL", self._commits.call("FCALL", PREFIX + "commit", len(named), *named, *args, *body))
        return committed(*answer, logs)

    async def read(self, log: str, after: int, count: int) -> list[StoredEntry]:
        """Up to `count` entries with a number above `after`, in order.

        Fewer when they are large, none only at the end.
        """
        arguments = [self.keys.payload_prefix, after, count, READ_BYTES]
        rows = await self._call("read", [self.keys.log(log)], arguments)
        return [_entry(row) for row in rows if row[1]]

    async def read_urgent(self, log: str, after: int, count: int) -> list[StoredEntry]:
        """Up to `count` entries of a prioritized log with a place (engine/places.py) after this one, in that order.

        Fewer when they are large, none only at the end.
        """
        keys = [self.keys.log(log), self.keys.urgent_prefix + log]
        rows = await self._call("urgent", keys, [self.keys.payload_prefix, after, count, READ_BYTES])
        return [_entry(row) for row in rows if row[1]]

    async def prioritize(self, log: str, session: str, after: int) -> int:
        """Give places to the next entries after this number of a log that was made a prioritized one.

        The number it came to, to go on from there; 0 when all entries have places. May be repeated.
        """
        keys = self.keys
        places = [keys.state, keys.prioritized, keys.log(log), keys.urgent_prefix + log]
        return await self._call("prioritize", places, [session, log, keys.payload_prefix, after, PRIORITIZED_AT_ONCE])

    async def newest(self, log: str) -> int:
        """The number of the newest entry; 0 when there is none."""
        found = await self._do("XREVRANGE", self.keys.log(log), "+", "-", "COUNT", 1)
        return int(found[0][0].partition(b"-")[0]) if found else 0

    async def back(self, log: str, before: int | None, count: int) -> int:
        """The number after which the last `count` entries before `before` (None: of all) begin."""
        end = "+" if before is None else f"({before}-0"
        found = await self._do("XREVRANGE", self.keys.log(log), end, "-", "COUNT", count)
        return int(found[-1][0].partition(b"-")[0]) - 1 if found else 0

    async def late_logs(self, now_ms: int) -> list[str]:
        """The logs that hold messages past their time."""
        names = await self._call("late", [self.keys.expiring], [self.keys.expiring_prefix, now_ms])
        return [name.decode() for name in names]

    async def expired(self, log: str, now_ms: int, skip: int, count: int) -> list[StoredEntry]:
        """Up to `count` entries past their time, after the first `skip` of these; fewer when they are large."""
        keys = [self.keys.log(log), self.keys.expiring_prefix + log]
        rows = await self._call("expired", keys, [self.keys.payload_prefix, now_ms, skip, count, READ_BYTES])
        return [_entry(row) for row in rows if row[1]]

    async def jobs(self, start_ms: int, end_ms: int, skip: int, count: int) -> list[StoredJob]:
        """Up to `count` jobs due from one moment to another, in that order, after the first `skip`."""
        arguments = [start_ms, end_ms, skip, count, READ_BYTES]
        rows = await self._call("waiting", [self.keys.due, self.keys.jobs], arguments)
        return [StoredJob(id.decode(), int(due), record) for id, due, record in rows]

    async def next_due(self) -> int | None:
        """When the next job is due, milliseconds since the epoch; None when there is none."""
        first = await self._do("ZRANGE", self.keys.due, 0, 0, "WITHSCORES")
        return int(first[1]) if first else None

    async def job_count(self) -> int:
        """How many jobs there are."""
        return await self._do("ZCARD", self.keys.due)

    async def drop(self, log: str, session: str, keep: bool = False) -> int:
        """Remove a log with what it holds, or only what it holds (`keep`); how many messages that were.

        `session` is the node's, or "" when no node runs; raises Fenced when one does.
        """
        keys = self.keys
        places = (
            keys.state, keys.logs, keys.used, keys.marks, keys.log(log), keys.node, keys.expiring_prefix + log,
            keys.returned_prefix + log, keys.prioritized, keys.urgent_prefix + log,
        )  # fmt: skip
        removed, left = 0, 1
        while left:
            gone, left = await self._call("drop", places, [session, keys.payload_prefix, log, DROP_BATCH, int(keep)])
            removed += gone
        return removed

    async def depths(self, logs: Sequence[str]) -> dict[str, int]:
        """Messages in each log."""
        counts = await self._many(("XLEN", self.keys.log(log)) for log in logs)
        return dict(zip(logs, counts, strict=True))

    async def logs(self) -> dict[str, dict[str, Any]]:
        """The logs that exist, with their attributes."""
        found = await self._do("HGETALL", self.keys.logs)
        return {name.decode(): json.loads(attributes) for name, attributes in _pairs(found)}

    async def attributes(self, log: str) -> dict[str, Any]:
        """The attributes of one log; none of one that does not exist."""
        found = await self._do("HGET", self.keys.logs, log)
        return json.loads(found) if found else {}

    async def attributes_of(self, logs: Sequence[str]) -> list[dict[str, Any]]:
        """The same of several, in one round trip."""
        found = await self._do("HMGET", self.keys.logs, *logs) if logs else []
        return [json.loads(each) if each else {} for each in found]

    async def first_times(self, logs: Sequence[str]) -> list[int]:
        """When the first message of each log came, milliseconds since the epoch; 0 where there is none."""
        found: list[bytes | None] = []
        for start in range(0, len(logs), ROWS_AT_ONCE):
            part = logs[start : start + ROWS_AT_ONCE]
            prefix = self.keys.payload_prefix
            found += await self._many(("FCALL", f"{PREFIX}first", 1, self.keys.log(log), prefix) for log in part)
        return [int(fields.split()[3]) // 1000 if fields else 0 for fields in found]

    # -- the node

    async def claim(self, session: str) -> int:
        """Become the one who may write; returns the last message's number."""
        return await self._call("claim", [self.keys.state], [session])

    async def recover(self) -> list[LogState]:
        """All logs as the last node left them."""
        logs = await self.logs()
        depths = await self.depths(list(logs))
        marks = {name.decode(): mark.decode() for name, mark in _pairs(await self._do("HGETALL", self.keys.marks))}
        returned = await self._returned(list(logs))
        return [
            LogState(name, each, depths[name], marks.get(name, ""), returned.get(name, {}))
            for name, each in logs.items()
        ]

    async def _returned(self, logs: Sequence[str]) -> dict[str, dict[int, int]]:
        """Deliveries of the entries that came back, by log."""
        if not int(await self._do("HGET", self.keys.state, "returned") or 0):
            return {}
        found = await self._many(("HGETALL", self.keys.returned_prefix + log) for log in logs)
        return {
            log: {int(id.partition(b"-")[0]): int(count) for id, count in _pairs(rows)}
            for log, rows in zip(logs, found, strict=True)
            if rows
        }

    async def beat(self, session: str, status: Mapping[str, Any]) -> None:
        """Say that the session's node lives; raises Fenced when another one took over."""
        await self._call("beat", [self.keys.state, self.keys.node], [session, json.dumps(status), NODE_TIMEOUT_MS])

    async def leave(self, session: str) -> None:
        """Say that the session's node is gone."""
        await self._call("leave", [self.keys.state, self.keys.node], [session])

    async def node(self) -> dict[str, Any] | None:
        """The live node's status."""
        status = await self._do("GET", self.keys.node)
        return json.loads(status) if status else None

    async def memory(self) -> dict[str, Any]:
        """Bytes the server uses, its limit (0: none), those of its machine, whether it gives up keys when they are used
        up, and its durability.
        """
        info = await self._do("INFO", "memory", "persistence")
        facts = dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)
        try:
            fsync = (await self._do("CONFIG", "GET", "appendfsync"))[1].decode()
        except (StoreUnavailable, IndexError):  # hosted servers refuse CONFIG
            fsync = "unknown"
        on = facts.get("aof_enabled") == "1"
        return {
            "used": int(facts.get("used_memory", 0)),
            "limit": int(facts.get("maxmemory", 0)),
            "machine": int(facts.get("total_system_memory", 0)),
            "evicts": facts.get("maxmemory_policy", "").startswith("allkeys"),
            "fsync": fsync if on else "off",
        }

    async def temp_used(self) -> int:
        """Bytes of messages that are not persistent."""
        return int(await self._do("HGET", self.keys.state, "temp") or 0)

    async def used(self) -> tuple[int, dict[str, int]]:
        """Bytes of messages: of all that is stored, and of each log."""
        total, by_log = await self._many([("HGET", self.keys.state, "bytes"), ("HGETALL", self.keys.used)])
        return int(total or 0), {name.decode(): int(size) for name, size in _pairs(by_log)}

    # -- numbers

    async def write_stats(
        self, version: int, rows: Mapping[str, str], gone: Sequence[str], forgotten: Sequence[str] = ()
    ) -> None:
        """Publish changed destinations (JSON by native name) and deleted ones as snapshot `version`.

        `forgotten` were deleted long ago: nobody who asks what changed is told of them any more.
        """
        keys = (self.keys.state, self.keys.stats, self.keys.stats_changed)
        items = list(rows.items())
        for start in range(0, len(items), ROWS_AT_ONCE):
            part = items[start : start + ROWS_AT_ONCE]
            await self._call("numbers", keys, [version, "", len(part), *(text for row in part for text in row), 0, 0])
        words = [version, self.keys.signals, 0, len(gone), *gone, len(forgotten), *forgotten]
        await self._call("numbers", keys, words)

    async def clear_stats(self) -> int:
        """Forget all numbers (a node that starts counts anew); returns the last snapshot's version."""
        keys = self.keys
        version, *_ = await self._many(
            [("HGET", keys.state, "snapshot"), ("DEL", keys.stats), ("DEL", keys.stats_changed)]
        )
        return int(version or 0)

    async def stats(self, since: int) -> tuple[int, list[str], list[str]]:
        """Snapshot version, JSON of the destinations changed after `since`, names of those deleted after it."""
        keys = self.keys
        version = int(await self._do("HGET", keys.state, "snapshot") or 0)
        if since <= 0 or since > version:
            rows = await self._do("HVALS", keys.stats)
            return version, [row.decode() for row in rows], []
        names = await self._do("ZRANGE", keys.stats_changed, f"({since}", "+inf", "BYSCORE")
        if not names:
            return version, [], []
        rows = await self._do("HMGET", keys.stats, *names)
        present = [row.decode() for row in rows if row is not None]
        gone = [name.decode() for name, row in zip(names, rows, strict=True) if row is None]
        return version, present, gone

    # -- definitions

    async def definitions(self, version: int | None = None) -> tuple[int, str | None]:
        """The current version, and the JSON of `version` (the current one when None)."""
        current = int(await self._do("HGET", self.keys.definitions, "current") or 0)
        wanted = current if version is None else version
        text = await self._do("HGET", self.keys.definitions, wanted)
        return current, text.decode() if text else None

    async def definitions_version(self) -> int:
        """The current version alone."""
        return int(await self._do("HGET", self.keys.definitions, "current") or 0)

    async def define(self, expected: int, text: str, about: Mapping[str, Any], imported: bool = False) -> int:
        """Make `text` the definitions if `expected` is still their version; returns the new one.

        `imported`: remember that they were taken from a file.
        """
        arguments = [expected, text, json.dumps(about), self.keys.signals, int(imported)]
        new = await self._call("define", [self.keys.definitions], arguments)
        if new < 0:
            raise DefinitionConflict(expected, -new)
        return new

    async def imported(self) -> str | None:
        """The definitions last taken from a file, as JSON."""
        text = await self._do("HGET", self.keys.definitions, "imported")
        return text.decode() if text else None

    async def definition_history(self, limit: int) -> list[dict[str, Any]]:
        """What is known about the last changes, newest first."""
        current = int(await self._do("HGET", self.keys.definitions, "current") or 0)
        versions = range(current, max(0, current - limit), -1)
        if not versions:
            return []
        metas = await self._do("HMGET", self.keys.definitions, *(f"meta:{version}" for version in versions))
        return [
            {"version": version, **json.loads(meta or b"{}")} for version, meta in zip(versions, metas, strict=True)
        ]

    # -- words between operators and the node

    async def request(self, verb: str, args: Mapping[str, Any], timeout: float) -> Any:
        """Ask the node; its answer, or StoreUnavailable when none comes in time (seconds)."""
        id = uuid.uuid4().hex
        asked = json.dumps({"id": id, "verb": verb, "args": dict(args)})
        await self._call("ask", [self.keys.request(id), self.keys.requests], [id, asked, int(timeout * 1000)])
        answer = await self._do("BLPOP", self.keys.reply(id), timeout)
        if answer is None:
            raise StoreUnavailable(f"the broker node did not answer {verb} within {timeout:g} seconds")
        return json.loads(answer[1])

    async def next_request(self, wait: float) -> dict[str, Any] | None:
        """The next thing asked of the node, waiting up to `wait` seconds; what nobody waits for any more is skipped."""
        found = await self._do("BLPOP", self.keys.requests, wait)
        asked = await self._do("GETDEL", self.keys.request(found[1].decode())) if found else None
        return json.loads(asked) if asked else None

    async def answer(self, id: str, answer: Any) -> None:
        """Answer a request."""
        await self._call("answer", [self.keys.reply(id)], [json.dumps(answer), REPLY_SECONDS])

    async def signals(self) -> AsyncIterator[str]:
        """`definitions` and `stats VERSION` as they are published. Ends with StoreUnavailable."""
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(self.keys.signals)
            yield "subscribed"
            async for message in pubsub.listen():
                yield message["data"].decode()
        except (RedisError, OSError) as error:
            raise StoreUnavailable(str(error)) from error
        finally:
            await pubsub.aclose()

    # -- trace

    async def record(self, batch: bytes, count: int) -> None:
        """Keep a trace batch for the archiver; the oldest go when nobody takes them."""
        await self._do("XADD", self.keys.trace, "MAXLEN", "~", TRACE_BATCHES, "*", "b", batch, "n", count)

    # -- the driver, and the one place where its errors become ours

    async def _call(self, function: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        return await self._do("FCALL", PREFIX + function, len(keys), *keys, *args)

    async def _do(self, *command: Any) -> Any:
        return await _ours(command[0], self._redis.execute_command(*command))

    async def _many(self, commands: Any) -> list[Any]:
        pipe = self._redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        try:
            return await pipe.execute()
        except (RedisError, OSError) as error:
            raise StoreUnavailable(str(error) or type(error).__name__) from error


async def _ours(command: str, answer: Awaitable[Any]) -> Any:
    """What the driver answers to a command; its errors as ours."""
    try:
        return await answer
    except ResponseError as error:
        if str(error).startswith("FENCED"):
            raise Fenced(str(error)) from error
        raise StoreUnavailable(f"{command}: {error}") from error
    except (RedisError, OSError) as error:
        raise StoreUnavailable(str(error) or type(error).__name__) from error


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _entry(row: Sequence[bytes]) -> StoredEntry:
    seq, stored, payload, original, shown = row
    return StoredEntry(
        int(seq), Message.load(stored), int(payload or 0), len(stored), original.decode(), shown.decode()
    )


def _pairs(reply: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """HGETALL's answer as pairs."""
    return zip(reply[::2], reply[1::2], strict=True)
