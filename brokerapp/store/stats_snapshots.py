"""Numbers: the snapshots of all destinations that operators see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brokerapp.store.client.client import StoreClient
from brokerapp.store.commit_codec import ROWS_AT_ONCE


class StatisticsStore(StoreClient):
    """See brokerapp.store and numbers.lua."""

    async def write_stats(self, rows: Mapping[str, str], gone: Sequence[str], forgotten: Sequence[str] = ()) -> int:
        """Publish changed destinations (JSON by native name) and deleted ones as the next snapshot; its version.

        `forgotten` were deleted long ago: nobody who asks what changed is told of them any more.
        """
        keys = (self.keys.state, self.keys.stats, self.keys.stats_changed)
        items = list(rows.items())
        for start in range(0, len(items), ROWS_AT_ONCE):
            part = items[start : start + ROWS_AT_ONCE]
            await self._call("numbers", keys, ["", len(part), *(text for row in part for text in row), 0, 0])
        words = [self.keys.signals, 0, len(gone), *gone, len(forgotten), *forgotten]
        return await self._call("numbers", keys, words)

    async def snapshot(self) -> int:
        """The version of the last snapshot."""
        return int(await self._do("HGET", self.keys.state, "snapshot") or 0)

    async def clear_stats(self) -> None:
        """Forget all numbers: a node that starts alone counts anew."""
        await self._many([("DEL", self.keys.stats), ("DEL", self.keys.stats_changed)])

    async def stats(self, since: int) -> tuple[int, list[str], list[str]]:
        """Snapshot version, JSON of the destinations changed after `since`, names of those deleted after it."""
        keys = self.keys
        version = await self.snapshot()
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

    async def stats_of(self, names: Sequence[str]) -> list[str]:
        """JSON of these destinations (by native name), without those that have no numbers."""
        found: list[str] = []
        for start in range(0, len(names), ROWS_AT_ONCE):
            rows = await self._do("HMGET", self.keys.stats, *names[start : start + ROWS_AT_ONCE])
            found += [row.decode() for row in rows if row is not None]
        return found
