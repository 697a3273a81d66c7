"""Move families of logs between the shards of a broker, as operators ask or as a shard is drained.

The node that is asked leads the move: it copies most of the logs while clients go on, all nodes hold what is asked of
the family, it copies the rest, says in shard 0 where they are now, and all go on. Where the rest takes too long, or a
node joins, leaves or fails meanwhile, the family stays where it was. A node that hears nothing of the end finds out by
itself (store/shards/family_moves.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

from brokerapp.core.shards.shard_placement import ShardPlacement
from brokerapp.core.shards.sharded_commits import ShardedCommits
from brokerapp.errors import BrokerError, Fenced, RequestRefused, StoreUnavailable
from brokerapp.model import JsonObject
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.family_copy import FamilyCopy
from brokerapp.store.shards.family_moves import MOVE_MS, MOVED, FamilyMove
from brokerapp.store.shards.router import answered
from brokerapp.system.supervised_tasks import STORE_RETRY_SECONDS

logger = logging.getLogger(__name__)

#: Seconds that nodes have to hold a family.
HOLD_SECONDS = 15.0
#: Seconds that shards have to answer before a move begins.
PING_SECONDS = 2.0
#: Seconds after which a node that hears nothing of the end of a move finds out: no move counts after MOVE_MS.
SILENCE_SECONDS = MOVE_MS / 1000 + 5
#: Seconds that a node which leads a move holds the family at most until the move counts.
LEAD_SECONDS = MOVE_MS / 1000 - 10
#: Seconds between two times that it says that a move goes on which copies while clients go on, too.
EXTEND_SECONDS = 5.0


class FamilyMover:
    """Leads moves, and takes part in those that other nodes lead. `verbs` are what nodes and operators ask of it."""

    def __init__(self, store: BrokerStore, commits: ShardedCommits, placement: ShardPlacement, session: str) -> None:
        self._store, self._commits, self._placement, self._session = store, commits, placement, session
        self._held: dict[str, FamilyMove] = {}  # by token
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._leading: asyncio.Task[None] | None = None
        self.verbs: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "move_family": self.move_family,
            "hold_family": self.hold_family,
            "release_family": self.release_family,
        }

    async def move_family(self, family: str, shard: int) -> JsonObject:
        """Begin to move a family to a shard, and return the move. Raises RequestRefused."""
        if shard not in self._store.shards.stores:
            known = ", ".join(map(str, sorted(self._store.shards.stores)))
            raise RequestRefused(f"shard {shard} does not exist: the shards are {known}")
        places = set(self._commits.of_family(family).values())
        if not places:
            raise RequestRefused(f"no destination is of the family {family!r}")
        if places == {shard}:
            raise RequestRefused(f"the family {family!r} is in shard {shard} already")
        # Definitions may have joined what is in several shards: each move brings together what is in one of them.
        await self._check_answers()
        move = FamilyMove(family, min(places - {shard}), shard, uuid.uuid4().hex, version=self._placement.version)
        move = await self._store.moves.begin(move)
        self._leading = asyncio.create_task(self._lead(move), name=f"move of {family}")
        return asdict(move)

    def _extending(self, move: FamilyMove) -> Callable[[], Awaitable[None]]:
        """Return a function that says in shard 0 that a move goes on, where it is time to."""
        next_at = time.monotonic() + EXTEND_SECONDS

        async def extend() -> None:
            nonlocal next_at
            if time.monotonic() >= next_at:
                await self._store.moves.extend(move)
                next_at = time.monotonic() + EXTEND_SECONDS

        return extend

    async def _check_answers(self) -> None:
        """Raise RequestRefused while a shard does not answer: a family would be held until it does, and in vain."""
        stores = self._store.shards.stores.values()
        try:
            await asyncio.gather(*(answered(each, each.client.execute("PING"), PING_SECONDS) for each in stores))
        except StoreUnavailable as error:
            raise RequestRefused(f"{error}: families are moved only while all shards answer") from error

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until no move is led from here, at most for so long."""
        if self._leading is not None:
            await asyncio.wait({self._leading}, timeout=seconds)

    # -- the node that leads

    async def _lead(self, move: FamilyMove) -> None:
        error = ""
        names: list[str] = []
        logs: list[str] = []
        try:
            copy = FamilyCopy(self._store.shards, move, self._session)
            await copy.begin()
            logs = self._logs_of(move)
            await copy.copy_ahead(logs, self._extending(move))
            await self._store.moves.extend(move)
            began = time.monotonic()
            async with asyncio.timeout(LEAD_SECONDS):
                epoch, members = await self._store.nodes.members()
                names = [name for name, about in members.items() if about["session"] != self._session]
                told = {"move": asdict(move)}
                held = await asyncio.gather(
                    self._hold_here(move),
                    *(self._ask("hold_family", name, told, HOLD_SECONDS) for name in names),
                )
                # Another node may have created a log that this one has not heard of yet: it moves, too.
                logs = sorted(set().union(*held))
                messages = await copy.finish(logs)
                held_ms = int(1000 * (time.monotonic() - began))
                move = replace(move, messages=messages, milliseconds=held_ms)
                if not await self._store.moves.switch(move, logs, epoch):
                    error = "a node joined, left or failed, or the definitions changed meanwhile, or it took too long"
        except (BrokerError, TimeoutError) as problem:
            error = str(problem) or f"it took more than {LEAD_SECONDS:g} s"
        except Exception:
            logger.exception("the family %s could not be moved", move.family)
            error = "internal error: see the log of the node"
        is_moved = await self._until_known(move, error, logs)
        await self.release_family(move.token)
        answers = await asyncio.gather(
            *(self._ask("release_family", name, {"token": move.token}, HOLD_SECONDS) for name in names),
            return_exceptions=True,
        )
        if not is_moved:
            logger.warning("the family %s stays in shard %d: %s", move.family, move.source, error)
            with contextlib.suppress(BrokerError):  # the next node that starts, or the next move, removes it
                await self._store.moves.remove_copied(move, logs, self._session)
            return
        if any(isinstance(answer, BaseException) for answer in answers):
            logger.warning("the family %s stays in shard %d, too, until a node starts", move.family, move.source)
            return  # a node that did not answer may still read there
        try:
            await self._store.moves.remove_moved(move, logs, self._session)
        except BrokerError as problem:  # the next node that starts removes it
            logger.warning("the family %s is still in shard %d, too: %s", move.family, move.source, problem)
        logger.info(
            "the family %s moved from shard %d to %d with %d messages within %d ms",
            move.family, move.source, move.target, move.messages, move.milliseconds,
        )  # fmt: skip

    async def _hold_here(self, move: FamilyMove) -> list[str]:
        async with asyncio.timeout(HOLD_SECONDS):
            return await self.hold_family(asdict(move))

    async def _ask(self, verb: str, node: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        answer = await self._store.requests.send(verb, arguments, seconds, node)
        if "error" in answer:
            raise StoreUnavailable(f"node {node}: {answer['error']}")
        return answer["result"]

    async def _until_known(self, move: FamilyMove, error: str, logs: Collection[str]) -> bool:
        """Return whether a move counts, of which something may have failed; from here on it does not if it did not.

        One that counts is noted in the target, before anything is written there.
        """
        while True:
            try:
                if error and await self._store.moves.fail(move, error):
                    return False
                last = await self._store.moves.last()
                if last is None or last.token != move.token or last.state != MOVED:
                    return False
                await self._store.moves.accept(move, logs, self._session)
                return True
            except Fenced:
                return False
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_SECONDS)

    # -- every node

    async def hold_family(self, move: JsonObject) -> list[str]:
        """Let all wait that is asked of a family; return its logs when nothing of them is under way."""
        moving = FamilyMove(**move)
        if moving.version != self._placement.version:
            raise RequestRefused(f"this node routes by definitions {self._placement.version}, not by {moving.version}")
        self._held[moving.token] = moving
        self._watches[moving.token] = asyncio.create_task(self._watch(moving), name=f"move of {moving.family}")
        located = await self._commits.hold(moving.family)
        return [log for log, shard in located.items() if shard == moving.source]

    async def release_family(self, token: str) -> None:
        """Go on with a family that was held, where it is now."""
        moving = self._held.pop(token, None)
        if moving is None:
            return
        watch = self._watches.pop(token)
        if watch is not asyncio.current_task():
            watch.cancel()
        last = await self._until_read(moving)
        if last:
            self._placement.assign(moving.family, moving.target)
        self._commits.release(moving.family, moving.source, moving.target if last else moving.source)

    async def _until_read(self, move: FamilyMove) -> bool:
        """Return whether shard 0 says that logs which were to move are in the other shard."""
        logs = self._logs_of(move)
        while True:
            try:
                if not logs:  # this node knows none of them
                    return (await self._store.shard_record.read()).families.get(move.family) == move.target
                return await self._store.shard_record.shards_of(logs[:1]) == [move.target]
            except Fenced:
                raise
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_SECONDS)

    def _logs_of(self, move: FamilyMove) -> list[str]:
        located = self._commits.of_family(move.family)
        return [log for log, shard in located.items() if shard == move.source]

    async def _watch(self, move: FamilyMove) -> None:
        await asyncio.sleep(SILENCE_SECONDS)
        logger.warning("nothing was heard of the end of the move of the family %s", move.family)
        await self._until_known(move, "the node that led it did not end it", self._logs_of(move))
        await self.release_family(move.token)

    def cancel(self) -> None:
        """Stop to take part in moves."""
        for task in (*self._watches.values(), *([self._leading] if self._leading else ())):
            task.cancel()
