"""Reads destinations, subscriptions and nodes with their counters from the store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping

from brokerapp.admin.client_base import AdminClientBase
from brokerapp.model import JsonValue
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats, NodeStatus, SubscriptionStats
from brokerapp.model.subscription_identity import SUBSCRIPTION, SubscriptionIdentity


class StatisticsAdmin(AdminClientBase):
    """Reads statistics of destinations, subscriptions and nodes."""

    async def stats(self, since: int = 0) -> tuple[int, list[DestinationStats], list[Destination]]:
        """Return the version of the snapshot, and the destinations that were changed and deleted after version `since`.

        With `since=0` all that exist. Nodes write a new version once a second when something changed. Without a node
        the queues of the store are listed, with their depths.
        """
        version, rows, gone = await self._store.stats.changes_since(since)
        changed = [DestinationStats.from_json(json.loads(row)) for row in rows]
        if since == 0 and not await self._store.nodes.has_live_node():
            changed = await self._stored(await self._logs())
        return version, changed, [Destination.parse(name) for name in gone]

    async def stats_of(self, destination: Destination) -> DestinationStats | None:
        """Find the numbers of a queue or topic as they are now, also before its node has published them.

        Without a node the store is asked for a queue's depth. None: there is no such destination.
        """
        if not await self._store.nodes.has_live_node():
            logs = await self._logs()
            found = await self._stored({name: each for name, each in logs.items() if name == str(destination)})
            return found[0] if found else None
        told = await self._ask_each("numbers", destination=str(destination))
        known = sorted((each for each in told if each is not None), key=lambda each: not each["owner"])
        return DestinationStats.from_json(known[0]["numbers"]) if known else None

    async def _stored(self, logs: Mapping[str, Mapping[str, JsonValue]]) -> list[DestinationStats]:
        depths = await self._store.logs.depths(list(logs))
        return [
            DestinationStats(
                Destination.parse(name),
                QueueSize=depths[name],
                Paused=bool(attributes.get("paused")),
                DLQ=bool(attributes.get("dlq")),
            )
            for name, attributes in logs.items()
        ]

    async def subscriptions(self) -> list[SubscriptionStats]:
        """Return durable and shared subscriptions, online or not."""
        _, stats, _ = await self.stats()
        numbers = {str(each.destination): each for each in stats}
        return [
            SubscriptionStats(
                SubscriptionIdentity.from_attributes(attributes),
                numbers.get(name) or DestinationStats(Destination.parse(name)),
            )
            for name, attributes in (await self._logs()).items()
            if attributes.get("kind") == SUBSCRIPTION
        ]

    async def watch(self) -> AsyncIterator[None]:
        """Yield whenever there may be a new snapshot, the first time once it listens.

        Ends with StoreUnavailable.
        """
        async for signal in self._store.signals():
            if signal.partition(" ")[0] in ("subscribed", "stats"):
                yield

    async def nodes(self) -> list[NodeStatus]:
        """Return the running nodes."""
        known = NodeStatus.__dataclass_fields__
        return [
            NodeStatus(**{field: value for field, value in status.items() if field in known} | {"name": name})
            for name, status in (await self._store.nodes.statuses()).items()
        ]

    async def used_bytes(self) -> tuple[int, dict[str, int]]:
        """Return the bytes of all stored messages, and of each log by its native name."""
        return await self._store.logs.used_bytes()
