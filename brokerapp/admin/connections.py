"""Peers: what operators ask about connections and subscriptions. A part of BrokerAdmin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import ConnectionDetails
from brokerapp.model.subscription_identity import SUBSCRIPTION, SubscriptionIdentity
from brokerapp.store.redis import RedisStore


class ConnectionAdmin:
    """`ask` asks the node that something is about; `ask_each` all of them: each knows its own clients."""

    def __init__(
        self,
        store: RedisStore,
        ask: Callable[..., Awaitable[Any]],
        ask_each: Callable[..., Awaitable[list[Any]]],
    ) -> None:
        self._store, self._ask, self._ask_each = store, ask, ask_each

    async def all(self, ids: Sequence[str] | None = None) -> list[ConnectionDetails]:
        """Connections in full: those of these ids that are open, or all of them, up to what each node tells."""
        found = await self._ask_each("peers", ids=None if ids is None else list(ids))
        return [ConnectionDetails(**each) for told in found for each in told]

    async def offline(self) -> dict[str, int]:
        """Since when nobody consumes a durable subscription, by the name of its log; milliseconds since the epoch."""
        since: dict[str, int] = {}
        for told in await self._ask_each("offline"):
            since |= told
        return since

    async def close(self, id: str) -> None:
        """End a connection. RequestRefused when it is not open any more."""
        await self._ask("close_connection", id=id)

    async def named(self, logs: Sequence[Destination]) -> dict[Destination, SubscriptionIdentity]:
        """What is kept in these logs of subscriptions, and for whom."""
        found = await self._store.logs.attributes_of(list(map(str, logs)))
        return {
            log: SubscriptionIdentity.from_attributes(each)
            for log, each in zip(logs, found, strict=True)
            if each.get("kind") == SUBSCRIPTION
        }

    async def oldest(self, logs: Sequence[Destination]) -> dict[Destination, int]:
        """When the first message of each log came (ms since the epoch); none of those that are empty."""
        found = await self._store.entries.first_arrivals_ms(list(map(str, logs)))
        return {log: sent for log, sent in zip(logs, found, strict=True) if sent}
