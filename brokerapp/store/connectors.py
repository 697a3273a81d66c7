"""Connectors: which network connectors a broker has."""

from __future__ import annotations

from brokerapp.store.server import Server


class Connectors(Server):
    """See brokerapp.store."""

    async def connectors(self) -> str | None:
        """What was kept last; None: nothing yet."""
        text = await self._do("GET", self.keys.connectors)
        return text.decode() if text else None

    async def keep_connectors(self, text: str) -> None:
        """Keep this instead, and say so to all nodes."""
        await self._do("SET", self.keys.connectors, text)
        await self._do("PUBLISH", self.keys.signals, "connectors")
