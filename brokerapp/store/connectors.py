"""Connectors: which network connectors a broker has."""

from __future__ import annotations

from brokerapp.store.client.client import StorePart


class ConnectorStore(StorePart):
    """See brokerapp.store."""

    async def read(self) -> str:
        """What was kept last; "": nothing yet."""
        return (await self._client.execute("GET", self._keys.connectors) or b"").decode()

    async def replace(self, former: str, text: str) -> bool:
        """Keep this in place of what was kept, and say so to all nodes; False: something else is kept by now."""
        keys = self._keys
        return bool(await self._client.call("connectors", [keys.connectors, keys.state], [former, text, keys.signals]))
