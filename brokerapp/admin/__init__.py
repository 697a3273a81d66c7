"""BrokerAdmin: what an operator can ask of a broker. One door for brokerctl and for the console.

It needs the store only. What touches messages a node may hold (purge) is asked of the home node through the store and
done on the store itself when no node is alive.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from brokerapp.admin.browsing import BrowsingAdmin
from brokerapp.admin.connections import ConnectionAdmin
from brokerapp.admin.operations import OperationsAdmin
from brokerapp.admin.routing import RoutingAdmin
from brokerapp.admin.statistics import StatisticsAdmin

if TYPE_CHECKING:
    from brokerapp.admin.networks import NetworkAdmin


class BrokerAdmin(BrowsingAdmin, StatisticsAdmin, OperationsAdmin, RoutingAdmin):
    """Each part in a module of its own. Raises BrokerError's branches only."""

    def __init__(self, redis_url: str, broker: str) -> None:
        super().__init__(redis_url, broker)
        self.rings = self._store.rings  #: the history: see brokerapp.model.time_series
        self.peers = ConnectionAdmin(
            self._store, self._ask, self._ask_each
        )  #: who is connected, and what subscriptions keep

    @cached_property
    def networks(self) -> NetworkAdmin:
        """Connectors to other brokers, and bridges from them."""
        from brokerapp.admin.networks import NetworkAdmin  # here: few verbs of brokerctl need it, and all would wait

        return NetworkAdmin(self._ask, self._ask_each, self._store.connectors)

    async def lease(self, name: str, holder: str, milliseconds: int) -> bool:
        """Be the one process that does something, or stay it; False while another one is."""
        await self._open()
        return await self.rings.acquire_lease(name, holder, milliseconds)
