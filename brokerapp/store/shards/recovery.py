"""Finish writes to several shards whose nodes are gone: each intent that is left is carried out, and removed."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable

from brokerapp.store import CommitBatch, IntentChange, PendingWrite, StoreLimits
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.intent_codec import INTENT_KEY, ShardPart, decode_parts, number_of, owner_of
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.router import ShardRouter

logger = logging.getLogger(__name__)


class _RecoveryWrite(PendingWrite):
    """A part of a write, or the end of an intent."""

    __slots__ = ("dedup_key", "intent")


class IntentRecovery:
    """Carries out intents, as a session of its own that each shard admits for it.

    Two nodes may do so at the same time: what is done is recognised by the intent's id.
    """

    def __init__(self, shards: ShardRouter, session: str) -> None:
        self._shards, self._session = shards, session
        self._numbers = {number: itertools.count(1) for number in shards.stores}

    async def finish(self, is_gone: Callable[[str], bool]) -> None:
        """Carry out all intents of nodes, by their sessions, that are gone. Raises StoreUnavailable."""
        left = [
            (number, id, content)
            for number, store in self._shards.stores.items()
            for id, content in (await IntentStore(store.client).read_all()).items()
            if is_gone(owner_of(id))
        ]
        left.sort(key=lambda each: number_of(each[1]))  # in the order in which each node made them
        if not left:
            return
        for store in self._shards.stores.values():
            await store.nodes.admit(self._session)
        try:
            for number, id, content in left:
                for part in decode_parts(content):
                    await self._do(id, part)
                await self._commit(number, self._write(IntentChange(id)))
        finally:
            for store in self._shards.stores.values():
                await store.nodes.revoke("", self._session)
        logger.warning("%d writes to several shards were finished that a node left half done", len(left))

    async def _do(self, id: str, part: ShardPart) -> None:
        store = self._shards.stores[part.shard]
        logs = list({log for _, rows in part.appends for log, _, _ in rows})
        missing = [log for log, each in zip(logs, await store.logs.attributes_of(logs), strict=True) if not each]
        write = _RecoveryWrite(part.appends, part.settles, ignores_limits=True)
        write.dedup_key, write.intent = INTENT_KEY + id, None
        attributes = json.dumps({"shard": part.shard} if part.shard else {})
        await self._commit(part.shard, write, [(log, attributes) for log in missing])

    @staticmethod
    def _write(intent: IntentChange) -> PendingWrite:
        write = _RecoveryWrite(ignores_limits=True)
        write.dedup_key, write.intent = "", intent
        return write

    async def _commit(
        self, number: int, write: PendingWrite, declarations: list[tuple[str, str | None]] | None = None
    ) -> None:
        store: RedisStore = self._shards.stores[number]
        batch = CommitBatch(next(self._numbers[number]), [write], declarations or [])
        result = await store.commit(self._session, batch, StoreLimits())
        if result.confirmation is not None:
            await result.confirmation
