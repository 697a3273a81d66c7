"""Remove copies of logs from shards that they have left, as a move was given up, or its node ended.

Only what is certain to be older than another copy goes (copies.py). The record of shards is corrected
where a copy is newer than the one it names: shard 0 was restored to an earlier state. Where it is not certain which
copy is the newest, all stay.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from brokerapp.store.client.client import pairs
from brokerapp.store.shards.copies import LogCopy, newest_copy
from brokerapp.store.shards.family_moves import KEPT_MS
from brokerapp.store.shards.router import ShardRouter

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Found:
    """The copies of each log, by shard, and the number of the last move that each shard knows of."""

    copies: dict[str, dict[int, LogCopy]] = field(default_factory=dict)
    last_moves: dict[int, int] = field(default_factory=dict)


class Leftovers:
    """What moves left in shards, as a node finds it that joins. `session` is that of the node."""

    def __init__(self, shards: ShardRouter, session: str) -> None:
        self._shards, self._main, self._session = shards, shards.main, session
        self._token = f"none {session}"

    async def remove(self) -> None:
        """Remove what is left over, and correct the record of shards."""
        if not self._shards.others():
            return
        await self._interrupt_move()
        found = await self._read()
        recorded = await self._shards.record_store.known_shards_of(sorted(found.copies))
        for log, copies in found.copies.items():
            newest = newest_copy(copies, found.last_moves, recorded[log])
            if newest is None:
                logger.error(
                    "%s is in the shards %s, and it is not certain which copy is the newest: all are kept, "
                    "and that of shard %d is used",
                    log, ", ".join(map(str, sorted(copies))), recorded[log] or 0,
                )  # fmt: skip
                continue
            await self._settle(log, copies, newest, recorded[log])
        # A move has a higher number than all that any shard knows of, if shard 0 was restored, too.
        if found.last_moves[0] < (last := max(found.last_moves.values())):
            await self._main.client.call_confirmed("know_moves", [self._main.keys.state], [self._session, last])

    async def _interrupt_move(self) -> None:
        """Give up the move that is under way. From here on nothing is removed from the target of one that begins."""
        for store in self._shards.stores.values():
            await store.client.execute("SET", store.keys.moving, self._token)
        arguments = ["a node joined meanwhile", KEPT_MS]
        await self._main.client.call("interrupt_family", [self._main.keys.shard_move], arguments)

    async def _read(self) -> _Found:
        found = _Found()
        for number, store in self._shards.stores.items():
            keys = store.keys
            logs, copies, last = await store.client.execute_many(
                [("HKEYS", keys.logs), ("HGETALL", keys.copies), ("HGET", keys.state, "moves")]
            )
            known = {log: LogCopy.parse(text.decode()) for log, text in pairs(copies)}
            found.last_moves[number] = int(last or 0)
            for log in logs:
                found.copies.setdefault(log.decode(), {})[number] = known.get(log, LogCopy(0))
        return found

    async def _settle(self, log: str, copies: Mapping[int, LogCopy], newest: int, recorded: int | None) -> None:
        """Let the newest copy of a log be the only one, and recorded."""
        if newest != (recorded or 0):
            logger.warning("%s is in shard %d, not in %d as recorded: corrected", log, newest, recorded or 0)
            await self._shards.record_store.put_log(log, newest)
        if copies[newest].is_arriving:
            store = self._shards.stores[newest]
            arguments = [self._session, copies[newest].number, log]
            await store.client.call("accept_copies", [store.keys.state, store.keys.logs], arguments)
        for number, copy in copies.items():
            if number == newest:
                continue
            store = self._shards.stores[number]
            removed = await store.logs.drop_copy(log, str(copy), self._session, self._token if copy.is_arriving else "")
            if removed is not None:
                logger.info("an older copy of %s was removed from shard %d, with %d messages", log, number, removed)
