"""Copy the logs of a family from one shard to another: most of it while clients go on, the rest while it is held.

Entries of a log have growing numbers, so what is new since it was copied stands behind that. What was consumed
meanwhile is removed from the copy, as a comparison of the numbers finds it, from the oldest on: where all that is
missing is among the first thousands, as queues are consumed, nothing more is compared.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from brokerapp.errors import RequestRefused
from brokerapp.store import DISCARDED
from brokerapp.store.client.client import pairs
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.copies import LogCopy
from brokerapp.store.shards.family_moves import FamilyMove
from brokerapp.store.shards.router import ShardRouter

#: Entries, and bytes of them, that are copied in one call: some milliseconds of either store.
ENTRIES_AT_ONCE, BYTES_AT_ONCE = 1_000, 4 * 1024 * 1024
#: Entries compared in one call, for the same reason.
COMPARED_AT_ONCE = 5_000
#: Kept hand-overs looked at in one call.
SCANNED_AT_ONCE = 1_000
#: Entries that are left for the time in which a family is held, some tenths of a second; and how often logs are gone
#: through before, as a family that gets more than can be copied never comes to its end.
LEFT_FOR_HOLD, MOST_ROUNDS = 5_000, 5
#: A number that no entry has.
BEYOND_ALL = 2**53


@dataclass(slots=True)
class _Progress:
    """How far a log is copied."""

    after: int  #: number of the last entry
    is_prioritized: bool


class FamilyCopy:
    """Copies logs for one move. `session` is that of the node which leads it."""

    def __init__(self, shards: ShardRouter, move: FamilyMove, session: str) -> None:
        self._source, self._target = shards.stores[move.source], shards.stores[move.target]
        self._move, self._session = move, session
        self._arriving = LogCopy(move.number, is_arriving=True)
        self._progress: dict[str, _Progress] = {}

    async def begin(self) -> None:
        """Let the target take logs of this move, and of no other one."""
        source, keys = self._source, self._target.keys
        await source.client.call("know_moves", [source.keys.state], [self._session, self._move.number])
        arguments = [self._session, self._move.token, self._move.number]
        await self._target.client.call("begin_move", [keys.state, keys.moving], arguments)

    async def copy_ahead(self, logs: Collection[str], go_on: Callable[[], Awaitable[None]]) -> None:
        """Copy most of these logs while nodes write to them. `go_on` is called now and then, and may raise an error."""
        for _ in range(MOST_ROUNDS):
            count = 0
            for log in sorted(logs):
                if await self._open(log):
                    count += await self._copy_entries(log, go_on)
                    await self._remove_consumed(log, go_on)
            if count <= LEFT_FOR_HOLD:
                return

    async def finish(self, logs: Collection[str]) -> int:
        """Copy what is left while nobody writes; return how many messages the target and its replicas have then."""
        for log in self._progress.keys() - set(logs):
            await self._drop(log)
        count = 0
        for log in sorted(logs):
            if await self._open(log, is_held=True):
                await self._copy_entries(log)
                await self._remove_consumed(log)
                if await self._has_more(log):
                    raise RequestRefused(f"the copy of {log} differs from it")
                count += int(await self._target.client.execute("XLEN", self._target.keys.log(log)))
        await self._copy_audit(logs)
        last = int(await self._source.client.execute("HGET", self._source.keys.state, "seq") or 0)
        # Replicas that have this have all that was copied before it.
        keys, arguments = self._target.keys, [self._session, self._move.token, last]
        await self._target.client.call_confirmed("confirm_move", [keys.state, keys.moving], arguments)
        return count

    async def _open(self, log: str, *, is_held: bool = False) -> bool:
        """Let the target have a log, at first empty; return whether there is one.

        What changes without new entries is copied while it is held.
        """
        keys = self._source.keys
        found, own, mark, prioritized, returned = await self._source.client.execute_many(
            [
                ("HGET", keys.logs, log),
                ("HGET", keys.copies, log),
                ("HGET", keys.marks, log),
                ("SISMEMBER", keys.prioritized, log),
                ("HGETALL", keys.returned_prefix + log),
            ]
        )
        known = self._progress.get(log)
        if not found:
            if known is not None:
                await self._drop(log)
            return False
        attributes = json.loads(found)
        if attributes.get("kind") == DISCARDED:
            raise RequestRefused(f"{log} is being deleted: try again")
        if known is None or known.is_prioritized != bool(prioritized):
            await self._open_copy(log, LogCopy.parse(own.decode()) if own else LogCopy(0))
        elif not is_held:
            return True
        await self._take_log(log, attributes, bool(prioritized), (mark or b"", returned) if is_held else (b"", ()))
        return True

    async def _open_copy(self, log: str, own: LogCopy) -> None:
        """Let the target have nothing of a log, as a move that was given up may have left some there."""
        keys, move = self._target.keys, self._move
        arguments = [self._session, move.token, log, move.number, own.number]
        if not await self._target.client.call("open_copy", [keys.state, keys.moving, keys.logs], arguments):
            raise RequestRefused(f"shard {move.target} has another copy of {log}, which is not certain to be older")
        await self._drop(log)

    async def _drop(self, log: str) -> None:
        self._progress.pop(log, None)
        await self._target.logs.drop_copy(log, str(self._arriving), self._session, self._move.token)

    async def _take_log(
        self, log: str, attributes: dict[str, Any], is_prioritized: bool, changing: tuple[bytes, Any]
    ) -> None:
        keys, move = self._target.keys, self._move
        attributes.pop("shard", None)
        if move.target:
            attributes["shard"] = move.target
        places = [
            keys.state, keys.moving, keys.logs, keys.marks, keys.log(log), keys.expiring_prefix + log,
            keys.returned_prefix + log, keys.prioritized, keys.urgent_prefix + log, keys.used,
        ]  # fmt: skip
        mark, returned = changing
        came_back = [each for row in pairs(returned) for each in row]
        arguments = [
            self._session, move.token, move.number, log, json.dumps(attributes), mark, int(is_prioritized), *came_back,
        ]  # fmt: skip
        await self._target.client.call("take_log", places, arguments)
        self._progress.setdefault(log, _Progress(0, is_prioritized))

    async def _copy_entries(self, log: str, go_on: Callable[[], Awaitable[None]] | None = None) -> int:
        """Copy what stands behind what was copied of a log, and return how many entries those are."""
        source, keys, progress, count = self._source, self._target.keys, self._progress[log], 0
        while True:
            wanted = [source.keys.payload_prefix, progress.after, ENTRIES_AT_ONCE, BYTES_AT_ONCE]
            rows = await source.client.call("read", [source.keys.log(log)], wanted)
            if not rows:
                return count
            arguments: list[Any] = [self._session, self._move.token, log, keys.payload_prefix]
            for row in rows:
                arguments += row
            await self._target.client.call("take_entries", _places(self._target, log), arguments)
            progress.after, count = int(rows[-1][0]), count + len(rows)
            if go_on is not None:
                await go_on()

    async def _remove_consumed(self, log: str, go_on: Callable[[], Awaitable[None]] | None = None) -> None:
        """Remove from the copy what was removed from the log since it was copied: mostly the oldest entries."""
        source = self._source
        first = await source.client.execute("XRANGE", source.keys.log(log), "-", "+", "COUNT", 1)
        await self._keep_only(log, 0, (int(first[0][0].partition(b"-")[0]) if first else BEYOND_ALL) - 1, [])
        after = 0
        while after < BEYOND_ALL and await self._has_more(log):
            numbers = await source.client.call("entry_numbers", [source.keys.log(log)], [after, COMPARED_AT_ONCE])
            last = int(numbers[-1]) if len(numbers) == COMPARED_AT_ONCE else BEYOND_ALL
            await self._keep_only(log, after + 1, last, numbers)
            after = last
            if go_on is not None:
                await go_on()

    async def _has_more(self, log: str) -> bool:
        """Return whether the copy has entries that the log has not, or lacks some that came since."""
        there, copied = [
            await store.client.execute("XLEN", store.keys.log(log)) for store in (self._source, self._target)
        ]
        return bool(there != copied)

    async def _keep_only(self, log: str, first: int, last: int, numbers: list[bytes]) -> None:
        """Keep of the entries of the copy from `first` to `last` only those with these numbers."""
        keys, at = self._target.keys, first
        while at <= last:
            arguments = [
                self._session,
                self._move.token,
                log,
                keys.payload_prefix,
                at,
                last,
                COMPARED_AT_ONCE,
                *numbers,
            ]
            at = int(await self._target.client.call("keep_only", _places(self._target, log), arguments)) + 1

    async def _copy_audit(self, logs: Collection[str]) -> None:
        """Copy what is kept of messages that others may hand over again: each names its log first.

        Parts of writes to several shards are left out: none of this family is under way, nor left by a node that died.
        """
        source, keys = self._source, self._target.keys
        for suffix in ("", ":clients"):
            cursor: bytes | int = 0
            while True:
                cursor, rows = await source.client.execute(
                    "ZSCAN", source.keys.audit + suffix, cursor, "COUNT", SCANNED_AT_ONCE
                )
                wanted = [each for each, _ in pairs(rows) if _concerns(each, logs)]
                if wanted:
                    places = [keys.state, keys.moving, keys.audit + suffix]
                    await self._target.client.call("take_audit", places, [self._session, self._move.token, *wanted])
                if int(cursor) == 0:
                    break


def _places(store: RedisStore, log: str) -> list[str]:
    """Return the keys of what a call about entries of an arriving log touches."""
    keys = store.keys
    return [
        keys.state, keys.moving, keys.log(log), keys.used, keys.expiring, keys.expiring_prefix + log, keys.prioritized,
        keys.urgent_prefix + log, keys.returned_prefix + log,
    ]  # fmt: skip


def _concerns(kept: bytes, logs: Collection[str]) -> bool:
    """Return whether what is kept of a hand-over is about one of these logs, whose names may have spaces."""
    words = kept.decode(errors="replace").split(" ")
    return any(" ".join(words[:count]) in logs for count in range(1, len(words)))
