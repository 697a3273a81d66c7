"""ScheduleStore: messages that expire, and scheduled jobs."""

from __future__ import annotations

from brokerapp.store import StoredJob, StoredLogEntry
from brokerapp.store.client.client import StorePart
from brokerapp.store.entries import READ_BYTES, entries_of


class ScheduleStore(StorePart):
    """Reads scheduled jobs and expired entries; the Lua side is moments.lua. Times are milliseconds since the epoch."""

    async def logs_with_expired(self, now_ms: int) -> list[str]:
        """Return the logs that hold expired messages."""
        names = await self._client.call("late", [self._keys.expiring], [self._keys.expiring_prefix, now_ms])
        return [name.decode() for name in names]

    async def read_expired(self, log: str, now_ms: int, skip: int, count: int) -> list[StoredLogEntry]:
        """Return up to `count` expired entries after the first `skip`; fewer when they are large."""
        keys = [self._keys.log(log), self._keys.expiring_prefix + log]
        rows = await self._client.call("expired", keys, [self._keys.payload_prefix, now_ms, skip, count, READ_BYTES])
        return entries_of(rows)

    async def read_jobs(self, start_ms: int, end_ms: int, skip: int, count: int) -> list[StoredJob]:
        """Return up to `count` jobs due in a time range, in order, after the first `skip`."""
        arguments = [start_ms, end_ms, skip, count, READ_BYTES]
        rows = await self._client.call("waiting", [self._keys.due, self._keys.jobs], arguments)
        return [StoredJob(id.decode(), int(due), record) for id, due, record in rows]

    async def read_job(self, id: str) -> StoredJob | None:
        """Return the job of this id; None when there is none."""
        due, record = await self._client.execute_many([("ZSCORE", self._keys.due, id), ("HGET", self._keys.jobs, id)])
        return None if due is None or record is None else StoredJob(id, int(float(due)), record)

    async def next_due_ms(self) -> int | None:
        """Return when the next job is due; None when there is none."""
        first = await self._client.execute("ZRANGE", self._keys.due, 0, 0, "WITHSCORES")
        return int(first[1]) if first else None

    async def job_count(self) -> int:
        """Return the number of scheduled jobs."""
        count: int = await self._client.execute("ZCARD", self._keys.due)
        return count
