"""ConnectorStore: the network connectors of a broker."""

from __future__ import annotations

from brokerapp.store.client.client import StorePart


class ConnectorStore(StorePart):
    """Reads and replaces the network connectors, as JSON."""

    async def read(self) -> str:
        """Return the connectors as JSON; "" when none were saved yet."""
        return (await self._client.execute("GET", self._keys.connectors) or b"").decode()

    async def replace(self, former: str, text: str) -> bool:
        """Replace `former` by `text` and signal all nodes; False when something else was saved meanwhile."""
        keys = self._keys
        return bool(
            await self._client.call_confirmed("connectors", [keys.connectors, keys.state], [former, text, keys.signals])
        )
