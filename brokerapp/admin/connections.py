"""Reads connections and subscriptions, and closes connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from brokerapp.model import JsonValue
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import ConnectionDetails
from brokerapp.model.subscription_identity import SUBSCRIPTION, SubscriptionIdentity
from brokerapp.store.shards.broker_store import BrokerStore


class ConnectionAdmin:
    """Connections of clients. `ask` requests from the owner, `ask_each` from all nodes: each knows its own clients."""

    def __init__(
        self,
        store: BrokerStore,
        ask: Callable[..., Awaitable[JsonValue]],
        ask_each: Callable[..., Awaitable[list[JsonValue]]],
    ) -> None:
        self._store, self._ask, self._ask_each = store, ask, ask_each

    async def all(self, ids: Sequence[str] | None = None) -> list[ConnectionDetails]:
        """Return the full form of open connections: of those with these ids, or of all, up to a limit per node."""
        found = await self._ask_each("peers", ids=None if ids is None else list(ids))
        return [ConnectionDetails(**each) for told in found for each in told]

    async def offline(self) -> dict[str, int]:
        """Return since when durable subscriptions are offline (milliseconds since the epoch), by log name."""
        since: dict[str, int] = {}
        for told in await self._ask_each("offline"):
            since |= told
        return since

    async def close(self, id: str) -> None:
        """Close a connection. Raises RequestRefused if it is not open."""
        await self._ask("close_connection", id=id)

    async def named(self, logs: Sequence[Destination]) -> dict[Destination, SubscriptionIdentity]:
        """Return the subscriptions with these logs."""
        found = await self._store.logs.attributes_of(list(map(str, logs)))
        return {
            log: SubscriptionIdentity.from_attributes(each)
            for log, each in zip(logs, found, strict=True)
            if each.get("kind") == SUBSCRIPTION
        }

    async def oldest(self, logs: Sequence[Destination]) -> dict[Destination, int]:
        """Return when the first message of each log arrived (ms since the epoch); empty logs are left out."""
        found = await self._store.entries.first_arrivals_ms(list(map(str, logs)))
        return {log: sent for log, sent in zip(logs, found, strict=True) if sent}
