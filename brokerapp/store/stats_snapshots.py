"""StatisticsStore: versioned snapshots of destinations' statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brokerapp.store.client.client import StorePart
from brokerapp.store.commit_codec import ROWS_AT_ONCE


class StatisticsStore(StorePart):
    """Stores versioned snapshots of destinations' statistics; the Lua side is numbers.lua."""

    async def write(self, rows: Mapping[str, str], gone: Sequence[str], forgotten: Sequence[str] = ()) -> int:
        """Publish changed destinations (JSON by native name) and deleted ones as the next snapshot; return its version.

        `forgotten` were deleted long ago: nobody who asks what changed is told of them any more.
        """
        keys = (self._keys.state, self._keys.stats, self._keys.stats_changed)
        items = list(rows.items())
        for start in range(0, len(items), ROWS_AT_ONCE):
            part = items[start : start + ROWS_AT_ONCE]
            await self._client.call("numbers", keys, ["", len(part), *(text for row in part for text in row), 0, 0])
        words = [self._keys.signals, 0, len(gone), *gone, len(forgotten), *forgotten]
        version: int = await self._client.call("numbers", keys, words)
        return version

    async def version(self) -> int:
        """Return the version of the last snapshot."""
        return int(await self._client.execute("HGET", self._keys.state, "snapshot") or 0)

    async def clear(self) -> None:
        """Remove all statistics: a node that starts alone counts from zero."""
        await self._client.execute_many([("DEL", self._keys.stats), ("DEL", self._keys.stats_changed)])

    async def changes_since(self, since: int) -> tuple[int, list[str], list[str]]:
        """Return the snapshot's version, and destinations changed (as JSON) and deleted (names) after `since`."""
        keys = self._keys
        version = await self.version()
        if since <= 0 or since > version:
            rows = await self._client.execute("HVALS", keys.stats)
            return version, [row.decode() for row in rows], []
        names = await self._client.execute("ZRANGE", keys.stats_changed, f"({since}", "+inf", "BYSCORE")
        if not names:
            return version, [], []
        rows = await self._client.execute("HMGET", keys.stats, *names)
        present = [row.decode() for row in rows if row is not None]
        gone = [name.decode() for name, row in zip(names, rows, strict=True) if row is None]
        return version, present, gone

    async def read(self, names: Sequence[str]) -> list[str]:
        """Return the statistics of these destinations as JSON, without those that have none."""
        found: list[str] = []
        for start in range(0, len(names), ROWS_AT_ONCE):
            rows = await self._client.execute("HMGET", self._keys.stats, *names[start : start + ROWS_AT_ONCE])
            found += [row.decode() for row in rows if row is not None]
        return found
