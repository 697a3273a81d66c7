"""ClusterRecordStore: a broker's copy of its cluster's record."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.store.client.client import StorePart, pairs
from brokerapp.store.commit_codec import ROWS_AT_ONCE


class ClusterRecordStore(StorePart):
    """Stores this broker's copy of the cluster's record; the Lua side is clustering.lua."""

    async def read(self) -> tuple[str, int, dict[str, str]]:
        """Return the record's id ("" when there is none), its version, and its entries as JSON by name."""
        found = {
            name.decode(): value.decode()
            for name, value in pairs(await self._client.execute("HGETALL", self._keys.cluster))
        }
        entries = {name[1:]: value for name, value in found.items() if name.startswith("=")}
        return found.get("id", ""), int(found.get("version", 0)), entries

    async def save(
        self, session: str, id: str, version: int, changed: Mapping[str, str], *, anew: bool = False
    ) -> None:
        """Save changes (JSON by name, "" to remove); `anew` replaces the whole record. May be repeated.

        The version is written with each part, so a copy that was cut off between two is older than it says in what
        it lacks: who catches up compares names and not versions alone.
        """
        rows = list(changed.items())
        for start in range(0, max(1, len(rows)), ROWS_AT_ONCE):
            part = [text for row in rows[start : start + ROWS_AT_ONCE] for text in row]
            begin = int(anew and not start)
            await self._client.call_confirmed(
                "keep_record", [self._keys.state, self._keys.cluster], [session, id, version, begin, *part]
            )
