"""DefinitionStore: the active definitions and their history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from brokerapp.errors import DefinitionConflict
from brokerapp.model import JsonObject
from brokerapp.store.client.client import StorePart


class DefinitionStore(StorePart):
    """Stores the definitions and their history; the Lua side is versions.lua."""

    async def read(self, version: int | None = None) -> tuple[int, str | None]:
        """Return the current version, and the JSON of `version` (the current one when None)."""
        current = int(await self._client.execute("HGET", self._keys.definitions, "current") or 0)
        wanted = current if version is None else version
        text = await self._client.execute("HGET", self._keys.definitions, wanted)
        return current, text.decode() if text else None

    async def current_version(self) -> int:
        """Return the current version."""
        return int(await self._client.execute("HGET", self._keys.definitions, "current") or 0)

    async def replace(self, expected: int, text: str, about: Mapping[str, Any], imported: bool = False) -> int:
        """Replace the definitions if `expected` is still their version, and return the new version.

        `imported`: remember that they were taken from a file.
        """
        arguments = [expected, text, json.dumps(about), self._keys.signals, int(imported)]
        new: int = await self._client.call_confirmed("define", [self._keys.definitions, self._keys.state], arguments)
        if new < 0:
            raise DefinitionConflict(expected, -new)
        return new

    async def last_imported(self) -> str | None:
        """Return the definitions last taken from a file, as JSON; None when none were."""
        text = await self._client.execute("HGET", self._keys.definitions, "imported")
        return text.decode() if text else None

    async def history(self, limit: int) -> list[JsonObject]:
        """Return what is known of the last changes, newest first."""
        current = int(await self._client.execute("HGET", self._keys.definitions, "current") or 0)
        versions = range(current, max(0, current - limit), -1)
        if not versions:
            return []
        metas = await self._client.execute(
            "HMGET", self._keys.definitions, *(f"meta:{version}" for version in versions)
        )
        return [
            {"version": version, **json.loads(meta or b"{}")} for version, meta in zip(versions, metas, strict=True)
        ]
