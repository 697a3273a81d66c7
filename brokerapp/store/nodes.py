"""Nodes: who may write, whether they live, and what the server they write to says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from brokerapp.errors import StoreUnavailable
from brokerapp.store.server import Server

#: A node is taken for dead when it has not beaten for this long.
NODE_TIMEOUT_MS = 5_000


class Nodes(Server):
    """See brokerapp.store and nodes.lua."""

    async def claim(self, session: str) -> int:
        """Become the one who may write; returns the last message's number."""
        return await self._call("claim", [self.keys.state], [session])

    async def beat(self, session: str, status: Mapping[str, Any]) -> None:
        """Say that the session's node lives; raises Fenced when another one took over."""
        await self._call("beat", [self.keys.state, self.keys.node], [session, json.dumps(status), NODE_TIMEOUT_MS])

    async def leave(self, session: str) -> None:
        """Say that the session's node is gone."""
        await self._call("leave", [self.keys.state, self.keys.node], [session])

    async def node(self) -> dict[str, Any] | None:
        """The live node's status."""
        status = await self._do("GET", self.keys.node)
        return json.loads(status) if status else None

    async def memory(self) -> dict[str, Any]:
        """Bytes the server uses, its limit (0: none), those of its machine, whether it gives up keys when they are used
        up, and its durability.
        """
        info = await self._do("INFO", "memory", "persistence")
        facts = dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)
        try:
            fsync = (await self._do("CONFIG", "GET", "appendfsync"))[1].decode()
        except (StoreUnavailable, IndexError):  # hosted servers refuse CONFIG
            fsync = "unknown"
        on = facts.get("aof_enabled") == "1"
        return {
            "used": int(facts.get("used_memory", 0)),
            "limit": int(facts.get("maxmemory", 0)),
            "machine": int(facts.get("total_system_memory", 0)),
            "evicts": facts.get("maxmemory_policy", "").startswith("allkeys"),
            "fsync": fsync if on else "off",
        }
