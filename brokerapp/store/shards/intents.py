"""IntentStore: what other shards are to do of writes that this one has done its part of."""

from __future__ import annotations

from brokerapp.store.client.client import StorePart, pairs

#: Intents read in one command.
SCANNED_AT_ONCE = 500


class IntentStore(StorePart):
    """Reads the intents of a shard."""

    async def read_all(self) -> dict[str, bytes]:
        """Return all intents, by id."""
        found: dict[str, bytes] = {}
        cursor: bytes | int = 0
        while True:
            cursor, rows = await self._client.execute("HSCAN", self._keys.intents, cursor, "COUNT", SCANNED_AT_ONCE)
            found.update((id.decode(), content) for id, content in pairs(rows))
            if int(cursor) == 0:
                return found

    async def count(self) -> int:
        """Return how many there are."""
        return int(await self._client.execute("HLEN", self._keys.intents))
