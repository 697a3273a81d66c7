"""ShardRecordStore: which shards a broker has, and where its logs are. Kept in shard 0."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from brokerapp.errors import RequestRefused
from brokerapp.store.client.client import StorePart, is_cluster, pairs
from brokerapp.store.client.continuity import FORMAT_OF_SHARDS
from brokerapp.store.client.keys import MOST_SHARDS

#: States of a shard: the nodes open it, and put nothing there yet; families are put there; no new ones are.
JOINING, SERVING, DRAINING = "joining", "serving", "draining"
#: Names looked at in one call.
SCANNED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard beside the first one, and what may be put there."""

    number: int
    url: str
    state: str


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """The shards of a broker beside the first one, by number, and where families of logs live."""

    shards: dict[int, Shard] = field(default_factory=dict)
    families: dict[str, int] = field(default_factory=dict)

    @property
    def serving(self) -> list[int]:
        """Return the shards that new families are put into."""
        return [0, *(each.number for each in self.shards.values() if each.state == SERVING)]


class ShardRecordStore(StorePart):
    """Stores the record of shards; the Lua side is shards.lua."""

    async def read_shards(self) -> ShardRecord:
        """Return which shards there are, without the families."""
        return ShardRecord(_shards_of(await self._client.execute("HGETALL", self._keys.shards)))

    async def read(self) -> ShardRecord:
        """Return the record; empty for a broker with one store."""
        shards, families = await self._client.execute_many(
            [("HGETALL", self._keys.shards), ("HGETALL", self._keys.shard_families)]
        )
        return ShardRecord(
            _shards_of(shards),
            {family.decode(): int(number) for family, number in pairs(families)},
        )

    async def add(self, url: str, state: str = JOINING) -> int:
        """Add a shard and return its number. Raises RequestRefused for a store that is one of the broker's already.

        A cluster may be several shards: each has a slot of its own, and the cluster decides which server has it.
        """
        keys, number, may_repeat = self._keys, 0, is_cluster(url)
        if may_repeat or url != self._client.url:
            arguments = [url, state, keys.signals, int(may_repeat), FORMAT_OF_SHARDS, MOST_SHARDS - 1]
            number = await self._client.call_confirmed("add_shard", [keys.shards, keys.state], arguments)
        if not number:
            raise RequestRefused("the store with this URL is a shard of the broker already")
        if number < 0:
            raise RequestRefused(
                f"{MOST_SHARDS - 1} shards were added to the broker, removed ones included: no more can be"
            )
        return number

    async def next_number(self) -> int:
        """Return the number that the next shard gets."""
        return int(await self._client.execute("HGET", self._keys.state, "shards") or 0) + 1

    async def set_state(self, shard: Shard, state: str) -> bool:
        """Let families be put into a shard, or none; return False when the shard was removed."""
        keys, record = self._keys, json.dumps({"url": shard.url, "state": state})
        arguments = [shard.number, record, keys.signals]
        return bool(await self._client.call_confirmed("set_shard", [keys.shards, keys.state], arguments))

    async def remove(self, number: int, existing: Collection[str]) -> None:
        """Forget a shard. Raises RequestRefused while a log is in it, or may be put there.

        `existing` are the logs that are there.
        """
        if existing:
            raise RequestRefused(f"shard {number} holds {len(existing)} destinations, among them {min(existing)}")
        keys = self._keys
        places = [keys.shards, keys.state, keys.shard_logs, keys.shard_families]
        removed = await self._client.call_confirmed("remove_shard", places, [number, keys.signals])
        if removed < 0:
            raise RequestRefused(f"shard {number} cannot be removed: it does not exist")
        if not removed:
            raise RequestRefused(f"shard {number} is serving: drain it first")

    async def claim_logs(self, wanted: Sequence[tuple[str, str, int]]) -> list[int]:
        """Put logs, each with its family, into these shards, unless they or their families have a place.

        Return where they are. The families live there from now on, unless they have a place.
        """
        keys, arguments = self._keys, [each for row in wanted for each in row]
        found: list[int] = await self._client.call_confirmed(
            "locate",
            [keys.logs, keys.shard_logs, keys.shard_families, keys.state, keys.shard_vanished],
            arguments,
        )
        return found

    async def known_shards_of(self, logs: Sequence[str]) -> dict[str, int | None]:
        """Return where logs are, as far as the record says so."""
        found = await self._client.execute("HMGET", self._keys.shard_logs, *logs) if logs else []
        return {log: None if each is None else int(each) for log, each in zip(logs, found, strict=True)}

    async def scan(self, cursor: int, *, families: bool = False) -> tuple[int, list[str]]:
        """Return some names of logs, or of families, that have places, and where to go on; 0: these were the last."""
        key = self._keys.shard_families if families else self._keys.shard_logs
        next_cursor, rows = await self._client.execute("HSCAN", key, cursor, "COUNT", SCANNED_AT_ONCE)
        return int(next_cursor), [name.decode() for name, _ in pairs(rows)]

    async def note_vanished(self, places: Collection[str]) -> None:
        """Note of logs, `log NAME`, and families, `family NAME`, that they seem to be gone, until one is claimed."""
        await self._client.execute("SADD", self._keys.shard_vanished, *places)

    async def forget_vanished(self, places: Collection[str]) -> int:
        """Forget the places of those that are noted as gone and that no node has claimed since; return how many."""
        keys = self._keys
        where = [keys.shard_logs, keys.shard_families, keys.state, keys.shard_vanished]
        return int(await self._client.call_confirmed("forget_places", where, [keys.signals, *places]))

    async def put_log(self, log: str, number: int) -> None:
        """Note where a log is that the record lacks."""
        await self._client.execute_confirmed("HSET", self._keys.shard_logs, log, number)

    async def shards_of(self, logs: Sequence[str]) -> list[int]:
        """Return the shards in which logs are."""
        found = await self._client.execute("HMGET", self._keys.shard_logs, *logs) if logs else []
        return [int(each or 0) for each in found]


def _shards_of(rows: Sequence[bytes]) -> dict[int, Shard]:
    return {int(number): Shard(int(number), **json.loads(each)) for number, each in pairs(rows)}
