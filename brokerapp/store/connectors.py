"""Connectors: which network connectors a broker has."""

from __future__ import annotations

from brokerapp.store.client.client import StoreClient


class ConnectorStore(StoreClient):
    """See brokerapp.store."""

    async def connectors(self) -> str:
        """What was kept last; "": nothing yet."""
        return (await self._do("GET", self.keys.connectors) or b"").decode()

    async def keep_connectors(self, former: str, text: str) -> bool:
        """Keep this in place of what was kept, and say so to all nodes; False: something else is kept by now."""
        keys = self.keys
        return bool(await self._call("connectors", [keys.connectors, keys.state], [former, text, keys.signals]))
