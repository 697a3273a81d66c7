"""Nodes: the members of a broker, who of them may write, whether they live, and what the server says of itself."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from brokerapp.errors import StoreUnavailable
from brokerapp.store.client.client import StoreClient, pairs
from brokerapp.store.client.continuity import FORMAT

#: A node is taken for dead when it has not beaten for this long, unless it is told another time.
NODE_TIMEOUT_MS = 5_000
#: The name of the only node of a broker.
ONLY_NODE = "main"


class NodeStore(StoreClient):
    """See brokerapp.store and nodes.lua."""

    async def claim(
        self,
        session: str,
        name: str = ONLY_NODE,
        about: Mapping[str, Any] | None = None,
        timeout_ms: int = NODE_TIMEOUT_MS,
    ) -> int:
        """Become the member of this name, of which others read `about`; returns the last message's number.

        Its former session may write no more.
        """
        keys, record = self.keys, json.dumps({**(about or {}), "session": session})
        arguments = [session, name, record, keys.signals, timeout_ms, FORMAT]
        last = await self._call("claim", [keys.state, keys.nodes, keys.node(name), keys.lives], arguments)
        self._handshake.session = session
        self.continuity.saw(seq=last)
        await self._handshake.greet(self._do)  # from here on it knows in which life of the server it is
        return last

    async def beat(
        self, session: str, status: Mapping[str, Any], name: str = ONLY_NODE, timeout_ms: int = NODE_TIMEOUT_MS
    ) -> None:
        """Say that the session's node lives; raises Fenced when it was taken for dead, or replaced."""
        made = await self._beat([self.keys.state, self.keys.node(name)], [session, json.dumps(status), timeout_ms])
        self.continuity.saw(changes=made)

    async def leave(self, session: str, name: str = ONLY_NODE) -> None:
        """Say that the session's node is gone."""
        keys = self.keys
        await self._call("leave", [keys.state, keys.nodes, keys.node(name)], [session, name, keys.signals])

    async def expel(self, session: str, name: str, its_session: str) -> bool:
        """Fence a member that beats no more; whether that was so. Raises Fenced when `session` is itself."""
        keys = self.keys
        arguments = [session, name, its_session, keys.signals]
        return bool(await self._call("expel", [keys.state, keys.nodes, keys.node(name)], arguments))

    async def members(self) -> tuple[int, dict[str, dict[str, Any]]]:
        """How often the members changed, and what is known of each by its name; some may be dead already."""
        epoch, found = await self._call("members", [self.keys.state, self.keys.nodes], [])
        return epoch, {name.decode(): json.loads(about) for name, about in pairs(found)}

    async def nodes(self) -> dict[str, dict[str, Any]]:
        """The status of each live node, by its name."""
        names = sorted(name.decode() for name in await self._do("HKEYS", self.keys.nodes))
        found = await self._do("MGET", *map(self.keys.node, names)) if names else []
        return {name: json.loads(status) for name, status in zip(names, found, strict=True) if status}

    async def beating(self) -> set[str]:
        """The names of the nodes that live, those included that say nothing of themselves yet."""
        names = [name.decode() for name in await self._do("HKEYS", self.keys.nodes)]
        found = await self._do("MGET", *map(self.keys.node, names)) if names else []
        return {name for name, status in zip(names, found, strict=True) if status is not None}

    async def secret(self) -> bytes:
        """What only who may use the store knows: by it nodes know each other."""
        await self._do("SET", self.keys.secret, secrets.token_hex(32), "NX")
        return await self._do("GET", self.keys.secret)

    async def has_node(self) -> bool:
        """Whether any node lives."""
        return bool(await self.nodes())

    async def rollbacks(self) -> dict[str, int]:
        """How often the store was rolled back, when that happened last, and how many changes that took."""
        names = ("rollbacks", "rollback_ms", "rollback_changes")
        found = await self._do("HMGET", self.keys.state, *names)
        return {name: int(value or 0) for name, value in zip(names, found, strict=True)}

    async def memory(self) -> dict[str, Any]:
        """Bytes the server uses, its limit (0: none), those of its machine, whether it gives up keys when they are used
        up, and its durability.
        """
        facts = _facts(await self._do("INFO", "memory", "persistence"))
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


def _facts(info: bytes) -> dict[str, str]:
    """What INFO says."""
    return dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)
