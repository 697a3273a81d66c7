"""HistoryRings: bounded lists of packed history points by destination and resolution, and leases.

A lease lets one process of all do what must be done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from brokerapp.model.time_series import Resolution
from brokerapp.store.client.client import StorePart

#: Under this name the broker's own ring is kept: no destination is written so.
BROKER_RING = "broker"
#: Points a ring may have too many before it is cut: cutting is a call of its own.
TRIM_SLACK = 30
#: Points written in one round trip: a millisecond of the server's time.
ROWS_AT_ONCE = 500


class HistoryRings(StorePart):
    """Stores the history of destinations, and leases; see brokerapp.model.time_series."""

    async def append(self, resolution: Resolution, rows: Mapping[str, bytes], now: float) -> None:
        """Append a point to each of these rings."""
        items = list(rows.items())
        for start in range(0, len(items), ROWS_AT_ONCE):
            part = items[start : start + ROWS_AT_ONCE]
            keys = [self._keys.ring(resolution.name, name) for name, _ in part]
            moved = [text for name, _ in part if name != BROKER_RING for text in (now, name)]
            commands: list[tuple[Any, ...]] = [
                ("RPUSH", key, point) for key, (_, point) in zip(keys, part, strict=True)
            ]
            lengths = await self._client.execute_many(
                [*commands, ("ZADD", self._keys.rings, *moved)] if moved else commands
            )
            long = [key for key, length in zip(keys, lengths, strict=False) if length > resolution.length + TRIM_SLACK]
            if long:
                await self._client.execute_many([("LTRIM", key, -resolution.length, -1) for key in long])

    async def read(self, resolution: Resolution, names: Sequence[str], last: int = 0) -> list[list[bytes]]:
        """Return the points of each of these rings, oldest first: the `last` ones, or all."""
        return await self._client.execute_many(
            [("LRANGE", self._keys.ring(resolution.name, name), -last, -1) for name in names]
        )

    async def last_points(self) -> dict[str, float]:
        """Return the time of the last point (seconds since the epoch) of each destination with a history."""
        found = await self._client.execute("ZRANGE", self._keys.rings, 0, -1, "WITHSCORES")
        return {name.decode(): float(at) for name, at in zip(found[::2], found[1::2], strict=True)}

    async def remove(self, names: Sequence[str], resolutions: Iterable[Resolution]) -> None:
        """Remove the history of these destinations."""
        for start in range(0, len(names), ROWS_AT_ONCE):
            part = names[start : start + ROWS_AT_ONCE]
            keys = [self._keys.ring(each.name, name) for each in resolutions for name in part]
            await self._client.execute_many([("DEL", *keys), ("ZREM", self._keys.rings, *part)])

    async def acquire_lease(self, name: str, holder: str, milliseconds: int) -> bool:
        """Acquire or extend a lease; False while another holder has it."""
        return bool(await self._client.call("lease", [self._keys.lease(name)], [holder, milliseconds]))

    async def release_lease(self, name: str, holder: str) -> None:
        """Release a lease that this holder has."""
        await self.acquire_lease(name, holder, 1)
