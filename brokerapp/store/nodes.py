"""NodeStore: the members of a broker, their sessions and heartbeats."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.model import JsonObject
from brokerapp.store.client.client import StorePart, pairs
from brokerapp.store.client.continuity import FORMAT_OF_ONE_STORE

#: A node is taken for dead when it has not beaten for this long, unless it is told another time.
NODE_TIMEOUT_MS = 5_000
#: The name under which sessions are admitted that are no members'.
RECOVERY = "(recovery)"
#: Decides from the records of the live members, by name, which of them change and how.
MemberChange = Callable[[Mapping[str, JsonObject]], Mapping[str, JsonObject]]
#: The name of the only node of a broker.
ONLY_NODE = "main"


class NodeStore(StorePart):
    """Stores the members of a broker and their heartbeats; the Lua side is nodes.lua."""

    async def join(
        self,
        session: str,
        name: str = ONLY_NODE,
        about: Mapping[str, Any] | None = None,
        timeout_ms: int = NODE_TIMEOUT_MS,
    ) -> int:
        """Register the member of this name, of which others read `about`; return the last sequence number.

        Its former session may write no more.
        """
        keys, record = self._keys, json.dumps({**(about or {}), "session": session})
        arguments = [session, name, record, keys.signals, timeout_ms, FORMAT_OF_ONE_STORE]
        last: int = await self._client.call("claim", [keys.state, keys.nodes, keys.node(name), keys.lives], arguments)
        await self._client.begin_session(session, last)
        return last

    async def send_heartbeat(
        self, session: str, status: Mapping[str, Any], name: str = ONLY_NODE, timeout_ms: int = NODE_TIMEOUT_MS
    ) -> None:
        """Store the node's status and prove that it lives; raises Fenced when it was expelled or replaced."""
        made = await self._client.call_heartbeat(
            [self._keys.state, self._keys.node(name)], [session, json.dumps(status), timeout_ms]
        )
        self._client.continuity.observe(changes=made)

    async def leave(self, session: str, name: str = ONLY_NODE) -> None:
        """Remove the session's node from the members."""
        keys = self._keys
        await self._client.call("leave", [keys.state, keys.nodes, keys.node(name)], [session, name, keys.signals])

    async def fence(self, session: str, name: str, its_session: str) -> bool:
        """Fence a member without heartbeats and return whether it was one. Raises Fenced when `session` is itself."""
        keys = self._keys
        arguments = [session, name, its_session, keys.signals]
        return bool(await self._client.call("expel", [keys.state, keys.nodes, keys.node(name)], arguments))

    async def revoke(self, session: str, its_session: str) -> None:
        """Let another session write no more. `session` is one that may, or "". Raises Fenced when it may not."""
        await self._client.call("revoke", [self._keys.state], [session, its_session])

    async def admit(self, session: str) -> None:
        """Let a session write that is no member's, to finish what a member left; until it is revoked.

        Replicas have it then as they have commits, and all that was written before.
        """
        await self._client.call_confirmed("admit", [self._keys.state], [session, RECOVERY])

    async def members(self) -> tuple[int, dict[str, JsonObject]]:
        """Return the epoch of the membership, and each member's record by name; some may be dead already."""
        epoch, found = await self._client.call("members", [self._keys.state, self._keys.nodes], [])
        return epoch, {name.decode(): json.loads(about) for name, about in pairs(found)}

    async def change(self, decide: MemberChange) -> dict[str, JsonObject]:
        """Change the records of members as `decide` says, which is asked again if the members changed meanwhile.

        Return the changed records by name; none: nothing is to be changed.
        """
        keys = self._keys
        while True:
            (epoch, records), living = await self.members(), await self.live_names()
            changed = decide({name: about for name, about in records.items() if name in living})
            rows = [text for name, about in changed.items() for text in (name, json.dumps(about))]
            if not rows:
                return {}
            if await self._client.call("describe", [keys.state, keys.nodes], [epoch, keys.signals, *rows]):
                return dict(changed)

    async def statuses(self) -> dict[str, JsonObject]:
        """Return the status of each live node by name."""
        names = sorted(name.decode() for name in await self._client.execute("HKEYS", self._keys.nodes))
        found = await self._client.execute("MGET", *map(self._keys.node, names)) if names else []
        return {name: json.loads(status) for name, status in zip(names, found, strict=True) if status}

    async def live_names(self) -> set[str]:
        """Return the names of live nodes, those without a status yet included."""
        names = [name.decode() for name in await self._client.execute("HKEYS", self._keys.nodes)]
        found = await self._client.execute("MGET", *map(self._keys.node, names)) if names else []
        return {name for name, status in zip(names, found, strict=True) if status is not None}

    async def shared_secret(self) -> bytes:
        """Return the secret by which nodes of the broker authenticate each other."""
        await self._client.execute("SET", self._keys.secret, secrets.token_hex(32), "NX")
        secret: bytes = await self._client.execute("GET", self._keys.secret)
        return secret

    async def has_live_node(self) -> bool:
        """Return whether any node is alive."""
        return bool(await self.statuses())
