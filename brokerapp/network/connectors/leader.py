"""Run the network connectors on one node of a broker, chosen among its nodes.

Which one is a choice from the live members of the epoch, as with homes (decision 14): when it goes another takes them,
as the store has them. Bridges of a node that does not know yet that it is another's turn are replaced at both ends, as
those of a connection that broke.
"""

from __future__ import annotations

import asyncio

from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.connectors.connectors import ConnectorManager
from brokerapp.nodes.links.members import NETWORK
from brokerapp.nodes.links.peers import Peers


class ConnectorLeader:
    """Runs the connectors while this node is the one that has them. Whoever changes them holds `lock`."""

    def __init__(self, peers: Peers, connections: ConnectorManager, registry: NetworkConnectorStore) -> None:
        self._peers, self.connections, self._registry = peers, connections, registry
        self.lock = asyncio.Lock()
        self._refresh_requested = asyncio.Event()
        self._has_left = False

    @property
    def is_here(self) -> bool:
        """Return whether this node is the one that runs the connectors."""
        return not self._has_left and self._peers.members.leader_of(NETWORK) == self._peers.session

    def request_refresh(self) -> None:
        """Ask for a refresh: the members, or the connectors in the store, may have changed."""
        self._refresh_requested.set()

    async def refresh(self) -> None:
        """Run the connectors of the store, or none on a node that is not the leader. Raises StoreUnavailable."""
        async with self.lock:
            wanted = await self._registry.load() if self.is_here else ([], {})
            if not self._has_left:
                await self.connections.replace_all(*wanted)
                if self.is_here and (gone := await self._registry.removed_names()):
                    self.connections.remove_durables(gone)
                    await self._registry.clear_removed(gone)

    async def run(self) -> None:
        """Refresh whenever something changed, until cancelled. Raises StoreUnavailable."""
        while True:
            await self.refresh()
            await self._refresh_requested.wait()
            self._refresh_requested.clear()

    async def leave(self) -> None:
        """Stop all bridges for good."""
        self._has_left = True
        async with self.lock:
            await self.connections.stop()
