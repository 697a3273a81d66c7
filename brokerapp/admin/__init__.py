"""BrokerAdmin: the operator's API, used by brokerctl and the console.

It needs the store only. Operations on messages that a node may hold (purge) are requested from the owner node, and
done in the store itself when no node is running.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from brokerapp.admin.browsing import BrowsingAdmin
from brokerapp.admin.connections import ConnectionAdmin
from brokerapp.admin.operations import OperationsAdmin
from brokerapp.admin.routing import RoutingAdmin
from brokerapp.admin.statistics import StatisticsAdmin
from brokerapp.admin.transactions import TransactionAdmin

if TYPE_CHECKING:
    from brokerapp.admin.networks import NetworkAdmin
    from brokerapp.admin.nodes import NodeAdmin
    from brokerapp.admin.shards import ShardAdmin


class BrokerAdmin(BrowsingAdmin, StatisticsAdmin, OperationsAdmin, RoutingAdmin):
    """Access to one broker; each group of methods has its own module. Raises subclasses of BrokerError only."""

    def __init__(self, redis_url: str, broker: str) -> None:
        super().__init__(redis_url, broker)
        self.rings = self._store.rings  #: the history: see brokerapp.model.time_series
        self.peers = ConnectionAdmin(
            self._store, self._ask, self._ask_each
        )  #: who is connected, and what subscriptions keep
        self.transactions = TransactionAdmin(self._store, self._ask)  #: prepared ones

    @cached_property
    def networks(self) -> NetworkAdmin:
        """Connectors to other brokers, and bridges from them."""
        from brokerapp.admin.networks import NetworkAdmin  # here: few verbs of brokerctl need it, and all would wait

        return NetworkAdmin(self._ask, self._ask_each, self._store.connectors)

    @cached_property
    def membership(self) -> NodeAdmin:
        """Which nodes own queues and take clients."""
        from brokerapp.admin.nodes import NodeAdmin  # here: few verbs of brokerctl need it

        return NodeAdmin(self._store, self._open)

    @cached_property
    def shards(self) -> ShardAdmin:
        """The shards of the store."""
        from brokerapp.admin.shards import ShardAdmin  # here: few verbs of brokerctl need it, and all would wait

        return ShardAdmin(self._store, self._ask, self._require_replicas, self.stats, self.definitions)

    async def acquire_lease(self, name: str, holder: str, milliseconds: int) -> bool:
        """Acquire or renew the lease on a task that one process may do; return False while another process holds it."""
        await self._open()
        return await self.rings.acquire_lease(name, holder, milliseconds)
