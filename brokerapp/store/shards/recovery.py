"""Finish writes to several shards whose nodes are gone: each intent that is left is carried out, and removed."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from brokerapp.errors import Fenced, StoreRolledBack, StoreUnavailable
from brokerapp.store import CommitBatch, IntentChange, PendingWrite, StoreLimits
from brokerapp.store.shards.intent_codec import ShardPart, decode_parts, number_of, owner_of
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.part_write import PartWrite
from brokerapp.store.shards.router import ShardRouter

logger = logging.getLogger(__name__)

#: Intents, and bytes of them, that are carried out at once: some milliseconds of a store.
INTENTS_AT_ONCE, BYTES_AT_ONCE = 200, 4 * 1024 * 1024
#: Finds out which of these sessions of nodes write no more.
FindGone = Callable[[Collection[str]], Awaitable[Collection[str]]]


class _LeftIntent(NamedTuple):
    coordinator: int  #: the shard that keeps it
    id: str
    content: bytes


class IntentRecovery:
    """Carries out intents, as a session of its own that each shard admits for it.

    Two nodes may do so at the same time: what is done is recognised by the intent's id.
    """

    def __init__(self, shards: ShardRouter, session: str) -> None:
        self._shards, self._session = shards, session
        self._numbers = {number: itertools.count(1) for number in shards.stores}

    async def finish(self, find_gone: FindGone) -> None:
        """Carry out all intents of nodes that are gone. Raises StoreUnavailable."""
        if not await self._left(find_gone):
            return
        for store in self._shards.stores.values():
            await store.nodes.admit(self._session)
        try:
            # Replicas that know the session have what stood there before: none takes over that lacks one of these.
            left = await self._left(find_gone)
            for some in _portions(left):
                await self._finish(some)
        finally:
            for store in self._shards.stores.values():
                await store.nodes.revoke("", self._session)
        if left:
            logger.warning("%d writes to several shards were finished that a node left half done", len(left))

    async def _left(self, find_gone: FindGone) -> list[_LeftIntent]:
        """Return the intents of nodes that are gone, in the order in which each node made them.

        Which are gone is found out when their intents are known: a node that has joined since then has made none of
        them.
        """
        found = [
            _LeftIntent(number, id, content)
            for number, store in self._shards.stores.items()
            for id, content in (await IntentStore(store.client).read_all()).items()
        ]
        owners = {owner_of(each.id) for each in found}
        gone = await find_gone(owners) if owners else ()
        return sorted((each for each in found if owner_of(each.id) in gone), key=lambda each: number_of(each.id))

    async def _finish(self, intents: Sequence[_LeftIntent]) -> None:
        """Have all shards do their parts of these, then remove them."""
        parts: dict[int, list[tuple[str, ShardPart]]] = {}
        ended: dict[int, list[str]] = {}
        for coordinator, id, content in intents:
            ended.setdefault(coordinator, []).append(id)
            for part in decode_parts(content):
                parts.setdefault(part.shard, []).append((id, part))
        for shard, of_shard in parts.items():
            await self._do(shard, of_shard)
        for coordinator, ids in ended.items():
            await self._commit(coordinator, [PartWrite(intent=IntentChange(" ".join(ids)))])

    async def _do(self, shard: int, parts: Sequence[tuple[str, ShardPart]]) -> None:
        logs = list({log for _, part in parts for _, rows in part.appends for log, _, _ in rows})
        known = await self._shards.stores[shard].logs.attributes_of(logs) if logs else []
        attributes = json.dumps({"shard": shard} if shard else {})
        missing = [(log, attributes) for log, each in zip(logs, known, strict=True) if not each]
        writes = [PartWrite(part.appends, part.settles, part_of=id, dedup_key=part.dedup_key) for id, part in parts]
        await self._commit(shard, writes, missing)

    async def _commit(
        self,
        shard: int,
        writes: Sequence[PendingWrite],
        declarations: Sequence[tuple[str, str | None]] = (),
    ) -> None:
        batch = CommitBatch(next(self._numbers[shard]), list(writes), list(declarations))
        try:
            result = await self._shards.stores[shard].commit(self._session, batch, StoreLimits())
        except StoreRolledBack:
            raise
        except Fenced as error:  # by a replica that took over and had not heard of it; nobody fenced this node
            raise StoreUnavailable(
                f"shard {shard} was taken over while writes were finished that a node left"
            ) from error
        if result.confirmation is not None:
            await result.confirmation


def _portions(left: Sequence[_LeftIntent]) -> Iterator[list[_LeftIntent]]:
    """Yield the intents, in order, as many as may be carried out at once."""
    some: list[_LeftIntent] = []
    size = 0
    for each in left:
        if some and (len(some) == INTENTS_AT_ONCE or size + len(each.content) > BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(each)
        size += len(each.content)
    if some:
        yield some
