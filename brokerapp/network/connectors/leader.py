"""Seat: of the nodes of a broker one has its network connectors; this one takes them, and lets go of them.

Which one is a choice from the live members of the epoch, as with homes (decision 14): when it goes another takes them,
as the store has them. Bridges of a node that does not know yet that it is another's turn are replaced at both ends, as
those of a connection that broke.
"""

from __future__ import annotations

import asyncio

from brokerapp.network.connectors.connector_store import Registry
from brokerapp.network.connectors.connectors import Connections
from brokerapp.nodes.membership.ownership import NETWORK
from brokerapp.nodes.ownership.coordinator import Homes


class Seat:
    """Of one node. `changing` is held by whoever changes the connectors."""

    def __init__(self, homes: Homes, connections: Connections, registry: Registry) -> None:
        self._homes, self.connections, self._registry = homes, connections, registry
        self.changing = asyncio.Lock()
        self._look = asyncio.Event()
        self._left = False

    @property
    def is_here(self) -> bool:
        """Whether it is the turn of this node."""
        return not self._left and self._homes.members.keeper(NETWORK) == self._homes.me

    def look(self) -> None:
        """The members, or the connectors in the store, are said to be others."""
        self._look.set()

    async def settle(self) -> None:
        """Have the connectors of the store, or none, as it is this node's turn or not. Raises StoreUnavailable."""
        async with self.changing:
            wanted = await self._registry.found() if self.is_here else ([], {})
            if not self._left:
                await self.connections.become(*wanted)
                if self.is_here and (gone := await self._registry.gone()):
                    self.connections.forget(gone)
                    await self._registry.forget_gone(gone)

    async def run(self) -> None:
        """Settle whenever something changed, until cancelled. Raises StoreUnavailable."""
        while True:
            await self.settle()
            await self._look.wait()
            self._look.clear()

    async def leave(self) -> None:
        """Take all bridges down, for good."""
        self._left = True
        async with self.changing:
            await self.connections.stop()
