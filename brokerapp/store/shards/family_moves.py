"""Move the logs of a family from one shard to another while all nodes hold what is asked of them.

Entries keep their numbers, and payloads theirs, so that what nodes and consumers know of them stays true. First the
target gets all, then shard 0 says that the family is there, which is the moment that counts, then the source removes
what it has. A move that is given up before that moment leaves the logs where they were; what is left over in the wrong
shard, whichever of them that is, is removed when the next node starts, or with the next move.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from brokerapp.errors import RequestRefused
from brokerapp.store import DISCARDED
from brokerapp.store.client.client import pairs
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.router import ShardRouter

logger = logging.getLogger(__name__)

#: States of a move: under way; done; it ended without a change.
MOVING, MOVED, FAILED = "moving", "moved", "failed"
#: Milliseconds within which a move must be done. Nodes hold what is asked of the family a little longer at most.
MOVE_MS = 60_000
#: Milliseconds for which one can read how a move ended.
KEPT_MS = 24 * 3600 * 1000
#: Entries, and bytes of them, that are copied in one call: some milliseconds of either store.
ENTRIES_AT_ONCE, BYTES_AT_ONCE = 1_000, 4 * 1024 * 1024
#: Kept hand-overs looked at in one call.
SCANNED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class FamilyMove:
    """A move of a family."""

    family: str
    source: int
    target: int
    token: str  #: by which it is known
    version: int = 0  #: of the definitions which say what the family is
    state: str = MOVING
    messages: int = 0  #: that were moved
    milliseconds: int = 0  #: that the family was held
    error: str = ""  #: why it failed


class FamilyMoves:
    """Carries out the steps of moves. `session` is that of the node which does so."""

    def __init__(self, shards: ShardRouter) -> None:
        self._shards, self._main = shards, shards.main

    async def last(self) -> FamilyMove | None:
        """Return the last move, which may be under way."""
        found = await self._main.client.execute("GET", self._main.keys.shard_move)
        return FamilyMove(**json.loads(found)) if found else None

    async def begin(self, move: FamilyMove) -> None:
        """Begin a move. Raises RequestRefused while another one is under way."""
        arguments = [move.token, json.dumps(asdict(move)), MOVE_MS]
        if not await self._main.client.call("begin_family", [self._main.keys.shard_move], arguments):
            raise RequestRefused("another family is being moved: wait until that is done")

    async def fail(self, move: FamilyMove, error: str) -> bool:
        """Give up a move that is under way; return whether it was."""
        ended = json.dumps(asdict(replace(move, state=FAILED, error=error)))
        arguments = [move.token, ended, KEPT_MS]
        return bool(await self._main.client.call("end_family", [self._main.keys.shard_move], arguments))

    async def copy(self, move: FamilyMove, logs: Collection[str], session: str) -> int:
        """Copy logs to the target and its replicas, and return how many messages they hold."""
        source, target = self._shards.stores[move.source], self._shards.stores[move.target]
        last = int(await source.client.execute("HGET", source.keys.state, "seq") or 0)
        begin = ("begin_move", [target.keys.state, target.keys.moving], [session, move.token, last])
        await target.client.call(*begin)
        count = 0
        for log in sorted(logs):
            await target.logs.drop(log, session)  # what a move that was given up left there
            if await self._take_log(move, log, session):
                count += await self._copy_entries(move, log, session)
        await self._copy_audit(move, logs, session)
        await target.client.call_confirmed(*begin)  # replicas that have this have all that was copied before it
        return count

    async def _take_log(self, move: FamilyMove, log: str, session: str) -> bool:
        """Let the target have a log, still empty; return whether there is one."""
        source, target = self._shards.stores[move.source], self._shards.stores[move.target]
        keys = source.keys
        found, mark, prioritized, returned = await source.client.execute_many(
            [
                ("HGET", keys.logs, log),
                ("HGET", keys.marks, log),
                ("SISMEMBER", keys.prioritized, log),
                ("HGETALL", keys.returned_prefix + log),
            ]
        )
        if not found:
            return False
        attributes = json.loads(found)
        if attributes.get("kind") == DISCARDED:
            raise RequestRefused(f"{log} is being deleted: try again")
        attributes.pop("shard", None)
        if move.target:
            attributes["shard"] = move.target
        keys = target.keys
        places = [
            keys.state, keys.moving, keys.logs, keys.marks, keys.log(log), keys.expiring_prefix + log,
            keys.returned_prefix + log, keys.prioritized, keys.urgent_prefix + log, keys.used,
        ]  # fmt: skip
        came_back = [each for row in pairs(returned) for each in row]
        arguments = [session, move.token, log, json.dumps(attributes), mark or "", int(prioritized), *came_back]
        await target.client.call("take_log", places, arguments)
        return True

    async def _copy_entries(self, move: FamilyMove, log: str, session: str) -> int:
        source, target = self._shards.stores[move.source], self._shards.stores[move.target]
        keys, after, count = target.keys, 0, 0
        places = [
            keys.state, keys.moving, keys.log(log), keys.used, keys.expiring, keys.expiring_prefix + log,
            keys.prioritized, keys.urgent_prefix + log,
        ]  # fmt: skip
        while True:
            rows = await source.client.call(
                "read", [source.keys.log(log)], [source.keys.payload_prefix, after, ENTRIES_AT_ONCE, BYTES_AT_ONCE]
            )
            if not rows:
                return count
            arguments: list[Any] = [session, move.token, log, keys.payload_prefix]
            for row in rows:
                arguments += row
            await target.client.call("take_entries", places, arguments)
            after, count = int(rows[-1][0]), count + len(rows)

    async def _copy_audit(self, move: FamilyMove, logs: Collection[str], session: str) -> None:
        """Copy what is kept of messages that others may hand over again: each names its log first.

        Parts of writes to several shards are left out: none of this family is under way, nor left by a node that died.
        """
        source, target = self._shards.stores[move.source], self._shards.stores[move.target]
        for suffix in ("", ":clients"):
            cursor: bytes | int = 0
            while True:
                cursor, rows = await source.client.execute(
                    "ZSCAN", source.keys.audit + suffix, cursor, "COUNT", SCANNED_AT_ONCE
                )
                wanted = [each for each, _ in pairs(rows) if _concerns(each, logs)]
                if wanted:
                    places = [target.keys.state, target.keys.moving, target.keys.audit + suffix]
                    await target.client.call("take_audit", places, [session, move.token, *wanted])
                if int(cursor) == 0:
                    break

    async def switch(self, move: FamilyMove, logs: Sequence[str], epoch: int) -> bool:
        """Say that a family is in its new shard; return False where that can't be, as the move was given up."""
        keys = self._main.keys
        places = [keys.shard_move, keys.state, keys.shard_logs, keys.shard_families, keys.definitions]
        arguments = [
            move.token, json.dumps(asdict(replace(move, state=MOVED))), KEPT_MS, epoch, move.family, move.target,
            move.version, *logs,
        ]  # fmt: skip
        return bool(await self._main.client.call_confirmed("switch_family", places, arguments))

    async def remove_leftovers(self, session: str) -> None:
        """Remove logs from shards that they have left, as a move was given up, or its node ended.

        A log goes only where shard 0 says that it is in another shard, and it is there: what shard 0 does not know, as
        it was rolled back, is the only copy, and shard 0 is told of it.
        """
        if not self._shards.others():
            return
        stores, record = self._shards.stores, self._shards.record_store
        logs = {}
        for number, store in stores.items():
            await store.client.execute("DEL", store.keys.moving)  # who brings more here finds that it was given up
            logs[number] = set(await store.logs.all_attributes())
        for number, store in stores.items():
            known = await record.known_shards_of(sorted(logs[number]))
            for log, shard in known.items():
                if shard not in (None, number) and log in logs.get(shard, ()):
                    await self.remove(store, log, session)
                elif shard != number and number:
                    elsewhere = [each for each, there in logs.items() if each != number and log in there]
                    if elsewhere:
                        logger.error("%s is in the shards %s: remove one of them", log, [number, *elsewhere])
                        continue
                    logger.warning("%s was not known to be in shard %d, as the record of shards lacks it", log, number)
                    await record.put_log(log, number)

    async def remove(self, store: RedisStore, log: str, session: str) -> None:
        """Remove a log from a shard that it has left."""
        removed = await store.logs.drop(log, session)
        logger.info(
            "%s was removed with %d entries from shard %d: it is in another one", log, removed, store.keys.shard
        )


def _concerns(kept: bytes, logs: Collection[str]) -> bool:
    """Return whether what is kept of a hand-over is about one of these logs, whose names may have spaces."""
    words = kept.decode(errors="replace").split(" ")
    return any(" ".join(words[:count]) in logs for count in range(1, len(words)))
