"""Moments: messages that expire, and jobs that are due. All in milliseconds since the epoch."""

from __future__ import annotations

from brokerapp.store import StoredJob, StoredLogEntry
from brokerapp.store.client.client import StoreClient
from brokerapp.store.entries import READ_BYTES, entries_of


class ScheduleStore(StoreClient):
    """See brokerapp.store and moments.lua."""

    async def late_logs(self, now_ms: int) -> list[str]:
        """The logs that hold messages past their time."""
        names = await self._call("late", [self.keys.expiring], [self.keys.expiring_prefix, now_ms])
        return [name.decode() for name in names]

    async def expired(self, log: str, now_ms: int, skip: int, count: int) -> list[StoredLogEntry]:
        """Up to `count` entries past their time, after the first `skip` of these; fewer when they are large."""
        keys = [self.keys.log(log), self.keys.expiring_prefix + log]
        rows = await self._call("expired", keys, [self.keys.payload_prefix, now_ms, skip, count, READ_BYTES])
        return entries_of(rows)

    async def jobs(self, start_ms: int, end_ms: int, skip: int, count: int) -> list[StoredJob]:
        """Up to `count` jobs due from one moment to another, in that order, after the first `skip`."""
        arguments = [start_ms, end_ms, skip, count, READ_BYTES]
        rows = await self._call("waiting", [self.keys.due, self.keys.jobs], arguments)
        return [StoredJob(id.decode(), int(due), record) for id, due, record in rows]

    async def job(self, id: str) -> StoredJob | None:
        """The job of this id; None when there is none."""
        due, record = await self._many([("ZSCORE", self.keys.due, id), ("HGET", self.keys.jobs, id)])
        return None if due is None or record is None else StoredJob(id, int(float(due)), record)

    async def next_due(self) -> int | None:
        """When the next job is due, milliseconds since the epoch; None when there is none."""
        first = await self._do("ZRANGE", self.keys.due, 0, 0, "WITHSCORES")
        return int(first[1]) if first else None

    async def job_count(self) -> int:
        """How many jobs there are."""
        return await self._do("ZCARD", self.keys.due)
