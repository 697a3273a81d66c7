"""Records changes of destinations and durable subscriptions in the cluster of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from brokerapp.cluster.record import ClusterChange
from brokerapp.core.destinations.auto_creation import AutoCreation
from brokerapp.core.ports import ClusterPort
from brokerapp.errors import RequestRefused
from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination


class ClusterChanges:
    """Has changes recorded by the cluster before they are made at this broker; records none without a cluster."""

    def __init__(self, *, cluster: Callable[[], ClusterPort | None], creation: AutoCreation) -> None:
        self._cluster, self._creation = cluster, creation

    async def status(self) -> JsonObject | None:
        """Return ClusterStatus as this broker sees its cluster, as JSON; None without a cluster."""
        cluster = self._cluster()
        return cluster.status().to_json() if cluster is not None else None

    async def record(self, change: ClusterChange) -> None:
        """Record a change. Raises RequestRefused when the cluster does not accept it."""
        if (cluster := self._cluster()) is None:
            return
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def reply(refusal: str) -> None:
            if not done.done():
                done.set_result(refusal)

        cluster.change(change, reply)
        if refusal := await done:
            raise RequestRefused(refusal)

    async def record_removal(self, destination: Destination) -> None:
        """Record that a destination is deleted, or notify the other brokers if it was created automatically."""
        cluster = self._cluster()
        if cluster is not None and not self._creation.is_declared(destination):
            cluster.on_destroyed(destination)
            return
        await self.record(ClusterChange.of_destination(destination, False))
