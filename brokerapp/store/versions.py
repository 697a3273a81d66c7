"""Versions: the definitions in force, and as they were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from brokerapp.errors import DefinitionConflict
from brokerapp.store.client.client import StoreClient


class DefinitionStore(StoreClient):
    """See brokerapp.store and versions.lua."""

    async def definitions(self, version: int | None = None) -> tuple[int, str | None]:
        """The current version, and the JSON of `version` (the current one when None)."""
        current = int(await self._do("HGET", self.keys.definitions, "current") or 0)
        wanted = current if version is None else version
        text = await self._do("HGET", self.keys.definitions, wanted)
        return current, text.decode() if text else None

    async def definitions_version(self) -> int:
        """The current version alone."""
        return int(await self._do("HGET", self.keys.definitions, "current") or 0)

    async def define(self, expected: int, text: str, about: Mapping[str, Any], imported: bool = False) -> int:
        """Make `text` the definitions if `expected` is still their version; returns the new one.

        `imported`: remember that they were taken from a file.
        """
        arguments = [expected, text, json.dumps(about), self.keys.signals, int(imported)]
        new = await self._call("define", [self.keys.definitions, self.keys.state], arguments)
        if new < 0:
            raise DefinitionConflict(expected, -new)
        return new

    async def imported(self) -> str | None:
        """The definitions last taken from a file, as JSON."""
        text = await self._do("HGET", self.keys.definitions, "imported")
        return text.decode() if text else None

    async def definition_history(self, limit: int) -> list[dict[str, Any]]:
        """What is known about the last changes, newest first."""
        current = int(await self._do("HGET", self.keys.definitions, "current") or 0)
        versions = range(current, max(0, current - limit), -1)
        if not versions:
            return []
        metas = await self._do("HMGET", self.keys.definitions, *(f"meta:{version}" for version in versions))
        return [
            {"version": version, **json.loads(meta or b"{}")} for version, meta in zip(versions, metas, strict=True)
        ]
