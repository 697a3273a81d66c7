"""Move the logs of a family from one shard to another.

Entries keep their numbers, and payloads theirs, so that what nodes and consumers know of them stays true. First the
target gets all (family_copy.py), at last while all nodes hold what is asked of the family. Then shard 0 says that the
family is there, which is the moment that counts, then the source removes what it has. A move that is given up before
that moment leaves the logs where they were. Of what is left over in two shards only that goes which is certain to be
older (copies.py).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace

from brokerapp.errors import RequestRefused
from brokerapp.store.shards.copies import LogCopy
from brokerapp.store.shards.router import ShardRouter

#: States of a move: under way; done; it ended without a change.
MOVING, MOVED, FAILED = "moving", "moved", "failed"
#: Milliseconds in which a family is held at most, or after which the node that leads a move has to say that it goes on.
MOVE_MS = 60_000
#: Milliseconds for which one can read how a move ended.
KEPT_MS = 24 * 3600 * 1000


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
    number: int = 0  #: higher than those of all moves before


class FamilyMoves:
    """Keeps in shard 0 how far a move is, and removes what it leaves. `session` is that of the node which does so."""

    def __init__(self, shards: ShardRouter) -> None:
        self._shards, self._main = shards, shards.main

    async def last(self) -> FamilyMove | None:
        """Return the last move, which may be under way."""
        found = await self._main.client.execute("GET", self._main.keys.shard_move)
        return FamilyMove(**json.loads(found)) if found else None

    async def begin(self, move: FamilyMove) -> FamilyMove:
        """Begin a move, and return it with its number. Raises RequestRefused while another one is under way."""
        keys, arguments = self._main.keys, [move.token, json.dumps(asdict(move)), MOVE_MS]
        number = await self._main.client.call_confirmed("begin_family", [keys.shard_move, keys.state], arguments)
        if not number:
            raise RequestRefused("another family is being moved: wait until that is done")
        return replace(move, number=number)

    async def fail(self, move: FamilyMove, error: str) -> bool:
        """Give up a move that is under way; return whether it was."""
        ended = json.dumps(asdict(replace(move, state=FAILED, error=error)))
        arguments = [move.token, ended, KEPT_MS]
        return bool(await self._main.client.call("end_family", [self._main.keys.shard_move], arguments))

    async def extend(self, move: FamilyMove) -> None:
        """Give a move that is under way its whole time again. Raises RequestRefused where it was given up."""
        arguments = [move.token, MOVE_MS]
        if not await self._main.client.call("extend_family", [self._main.keys.shard_move], arguments):
            last = await self.last()
            raise RequestRefused(last.error if last is not None and last.token == move.token else "it was given up")

    async def switch(self, move: FamilyMove, logs: Sequence[str], epoch: int) -> bool:
        """Say that a family is in its new shard; return False where that can't be, as the move was given up."""
        keys = self._main.keys
        places = [keys.shard_move, keys.state, keys.shard_logs, keys.shard_families, keys.definitions]
        arguments = [
            move.token, json.dumps(asdict(replace(move, state=MOVED))), KEPT_MS, epoch, move.family, move.target,
            move.version, *logs,
        ]  # fmt: skip
        return bool(await self._main.client.call_confirmed("switch_family", places, arguments))

    async def accept(self, move: FamilyMove, logs: Collection[str], session: str) -> None:
        """Note in the target that a move is done. Nodes write there only afterwards, so that what was only copied is
        told from what was written to since, even if shard 0 is restored to a state before the move.
        """
        target = self._shards.stores[move.target]
        places = [target.keys.state, target.keys.logs]
        await target.client.call("accept_copies", places, [session, move.number, *logs])

    async def remove_moved(self, move: FamilyMove, logs: Collection[str], session: str) -> None:
        """Remove from the source what is in the target, unless it came back meanwhile."""
        source = self._shards.stores[move.source]
        found = await source.client.execute("HMGET", source.keys.copies, *logs) if logs else []
        for log, text in zip(logs, found, strict=True):
            copy = LogCopy.parse(text.decode()) if text else LogCopy(0)
            if copy.number < move.number:
                await source.logs.drop_copy(log, str(copy), session)

    async def remove_copied(self, move: FamilyMove, logs: Collection[str], session: str) -> None:
        """Remove from the target what was copied by a move that was given up."""
        copy = LogCopy(move.number, is_arriving=True)
        for log in logs:
            await self._shards.stores[move.target].logs.drop_copy(log, str(copy), session, move.token)
