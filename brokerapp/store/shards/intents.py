"""IntentStore: what other shards are to do of writes that this one has done its part of."""

from __future__ import annotations

from brokerapp.store.client.client import StorePart, pairs

#: How the keys begin by which parts of writes to several shards are recognised that are done again.
INTENT_KEY = "intent "
#: Intents read in one command.
SCANNED_AT_ONCE = 500


def intent_id(session: str, number: int) -> str:
    """Return the id of an intent of a node."""
    return f"{session}-{number}"


def owner_of(intent: str) -> str:
    """Return the session of the node that made an intent."""
    return intent.rpartition("-")[0]


def number_of(intent: str) -> int:
    """Return which intent of its node it is."""
    return int(intent.rpartition("-")[2])


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
