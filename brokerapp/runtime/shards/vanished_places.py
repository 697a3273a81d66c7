"""Forget where logs and families were that are gone, so that the record of shards does not grow for ever.

Nodes remove logs in their shards, and create some of the same name at the same time. So a place is forgotten a while
after its log was first missed, if it is still in no shard and no node has claimed it meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping

from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.record import ShardRecordStore

#: Seconds after which a log that is missing is gone: longer than a node lives that claimed it and could not create it.
FORGET_SECONDS = 60.0


class VanishedPlaces:
    """Looks through the record of shards, some names at a time. `family_of` is by the definitions in force."""

    def __init__(self, record: ShardRecordStore, family_of: Callable[[str], str]) -> None:
        self._record, self._family_of = record, family_of
        self._missed: dict[str, float] = {}  # `log NAME` or `family NAME`, since when
        self._cursor, self._in_families = 0, False

    def reset(self) -> None:
        """Begin again: a shard did not answer, and what was asked of it may be done yet."""
        self._missed.clear()

    async def look(self, stores: Mapping[int, RedisStore], known: Collection[str]) -> None:
        """Look at the next names. `known` are the logs that this node knows of."""
        self._cursor, names = await self._record.scan(self._cursor, families=self._in_families)
        if self._in_families:
            families = set(map(self._family_of, known))
            missing = [f"family {name}" for name in names if name not in families]
        else:
            missing = [f"log {name}" for name in await _missing([each for each in names if each not in known], stores)]
        if not self._cursor:
            self._in_families = not self._in_families
        now = time.monotonic()
        if new := [each for each in missing if each not in self._missed]:
            await self._record.note_vanished(new)
            self._missed.update(dict.fromkeys(new, now))
        if gone := [each for each in missing if now - self._missed[each] >= FORGET_SECONDS]:
            await self._record.forget_vanished(gone)
            for each in gone:
                del self._missed[each]


async def _missing(logs: list[str], stores: Mapping[int, RedisStore]) -> list[str]:
    """Return those of these logs that no shard has."""
    answers = await asyncio.gather(*(store.logs.attributes_of(logs) for store in stores.values()))
    return [log for log, *found in zip(logs, *answers, strict=True) if not any(found)]
