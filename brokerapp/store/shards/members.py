"""Membership of a broker with shards: a node is a member in each of them, and who is fenced is fenced in each.

Others read of the members in shard 0. What a fenced node has left half done between shards is finished before they hear
that it is gone, and so before anybody takes over its logs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any

from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.model import JsonObject
from brokerapp.store.nodes import NODE_TIMEOUT_MS, ONLY_NODE, MemberChange
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.leftovers import Leftovers
from brokerapp.store.shards.recovery import FindGone, IntentRecovery
from brokerapp.store.shards.router import ShardRouter, answered

logger = logging.getLogger(__name__)

#: Seconds that a shard has to take a member, and to let one go or fence it: whoever waits for it can do nothing else.
JOIN_SECONDS, LEAVE_SECONDS = 10.0, 2.0


def _always(session: str) -> FindGone:
    """Return what says that this session is gone, whatever is asked."""

    async def find_gone(_owners: Collection[str]) -> set[str]:
        return {session}

    return find_gone


class ShardedMembers:
    """Stores the members of a broker and their heartbeats in all shards; see NodeStore."""

    def __init__(self, shards: ShardRouter) -> None:
        self._shards, self._main = shards, shards.main.nodes
        self._joined: list[RedisStore] = []
        self._join_shard: Callable[[RedisStore], Awaitable[int]]
        self._leave_shard: Callable[[RedisStore], Awaitable[None]]
        self._heartbeats: dict[int, asyncio.Task[None]] = {}  # by shard, of the last one sent to each

    async def join(
        self,
        session: str,
        name: str = ONLY_NODE,
        about: Mapping[str, Any] | None = None,
        timeout_ms: int = NODE_TIMEOUT_MS,
    ) -> int:
        """Register the member in all shards, and finish what former ones left half done. See NodeStore."""
        self._join_shard = lambda store: store.nodes.join(session, name, about, timeout_ms)
        self._leave_shard = lambda store: store.nodes.leave(session, name)
        self._joined = []
        others = list(self._shards.others())
        for store in others:
            await self.join_shard(store)
        if others:
            _, members = await self._main.members()
            if name in members:
                await self._main.revoke("", members[name]["session"])
            await self._finish(partial(self._gone_beside, name))
        last = await self._main.join(session, name, about, timeout_ms)
        if others:
            await Leftovers(self._shards, session).remove()
        return last

    async def join_shard(self, store: RedisStore) -> None:
        """Register the member in a shard beside the first. Raises StoreUnavailable where it does not answer in time."""

        async def join() -> None:
            await store.open()
            await self._join_shard(store)

        await answered(store, join(), JOIN_SECONDS)
        if store not in self._joined:
            self._joined.append(store)

    async def leave_shard(self, store: RedisStore) -> None:
        """Leave a shard that is removed from the broker, so that its store can be added again at once."""
        self._joined.remove(store)
        await self._end_heartbeats(store.keys.shard)
        with contextlib.suppress(StoreUnavailable, Fenced):
            await answered(store, self._leave_shard(store), LEAVE_SECONDS)

    @property
    def _others(self) -> list[RedisStore]:
        """Return the stores beside the first that the member has joined: one that was just added may lack it."""
        return [store for store in self._shards.others() if store in self._joined]

    async def send_heartbeat(
        self, session: str, status: Mapping[str, Any], name: str = ONLY_NODE, timeout_ms: int = NODE_TIMEOUT_MS
    ) -> None:
        """Store the node's status in shard 0 and prove to all that it lives; raises Fenced.

        A shard that does not answer keeps the others waiting for nothing.
        """
        for store in self._others:
            number = store.keys.shard
            last = self._heartbeats.get(number)
            if last is not None and last.done():
                with contextlib.suppress(StoreUnavailable):
                    last.result()
            if last is None or last.done():
                self._heartbeats[number] = asyncio.ensure_future(
                    store.nodes.send_heartbeat(session, {}, name, timeout_ms)
                )
        await self._main.send_heartbeat(session, status, name, timeout_ms)

    async def leave(self, session: str, name: str = ONLY_NODE) -> None:
        """Remove the session's node from the members of all shards.

        Raises StoreUnavailable where one does not answer: the node is a member still then, and taken for dead soon.
        """
        await self._end_heartbeats(*self._heartbeats)
        others = self._others
        await asyncio.gather(*(answered(each, self._leave_shard(each), LEAVE_SECONDS) for each in others))
        if self._shards.others():
            await self._main.revoke("", session)
            await self._finish(_always(session))
        await self._main.leave(session, name)

    async def _end_heartbeats(self, *shards: int) -> None:
        heartbeats = [self._heartbeats.pop(shard) for shard in shards if shard in self._heartbeats]
        for each in heartbeats:
            each.cancel()
        await asyncio.gather(*heartbeats, return_exceptions=True)

    async def fence(self, session: str, name: str, its_session: str) -> bool:
        """Fence a member without heartbeats in all shards; return whether it was one. See NodeStore."""
        if self._shards.others():
            if name in await self._main.live_names():
                return False
            for store in (*self._shards.others(), self._shards.main):
                is_ours = store is self._shards.main or store in self._joined
                await answered(store, store.nodes.revoke(session if is_ours else "", its_session), LEAVE_SECONDS)
            await self._finish(_always(its_session))
        return await self._main.fence(session, name, its_session)

    async def _finish(self, find_gone: FindGone) -> None:
        """Finish what nodes that are gone have left half done between shards."""
        await IntentRecovery(self._shards, f"recovery-{uuid.uuid4().hex[:8]}").finish(find_gone)

    async def _gone_beside(self, name: str, owners: Collection[str]) -> set[str]:
        """Return which of these sessions are those of no members, beside the former one of this name."""
        _, members = await self._main.members()
        return set(owners) - {about["session"] for member, about in members.items() if member != name}

    # -- what is in shard 0

    async def members(self) -> tuple[int, dict[str, JsonObject]]:
        """See NodeStore; so for all below."""
        return await self._main.members()

    async def change(self, decide: MemberChange) -> dict[str, JsonObject]:
        return await self._main.change(decide)

    async def statuses(self) -> dict[str, JsonObject]:
        return await self._main.statuses()

    async def live_names(self) -> set[str]:
        return await self._main.live_names()

    async def shared_secret(self) -> bytes:
        return await self._main.shared_secret()

    async def has_live_node(self) -> bool:
        return await self._main.has_live_node()
