"""Keep a node at the definitions of the store, or store those of its configuration."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from brokerapp.errors import DefinitionConflict
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import Definitions
from brokerapp.store.versions import DefinitionStore
from brokerapp.system.clock import now_ms


class DefinitionSync:
    """Keeps a node at the definitions of the store."""

    def __init__(self, store: DefinitionStore) -> None:
        self._store = store

    async def load_or_define(self, configured: Definitions, impose: bool) -> Definitions:
        """Return the active definitions; store the configured ones first if there are none, or if `impose` is set.

        Another node may begin in the same moment: whoever comes second takes what the first put there.
        """
        wanted = _dump(configured)
        while True:
            version, text = await self._store.read()
            if text is not None and not (impose and await self._store.last_imported() != wanted):
                return _load(version, text)
            with suppress(DefinitionConflict):
                return _load(await self._define(version, wanted, "as configured"), wanted)

    async def impose(self, definitions: Definitions, source: str) -> tuple[int, bool]:
        """Store these definitions if the source changed since last time; return the version, and whether it did."""
        wanted = _dump(definitions)
        while True:
            version, _ = await self._store.read()
            if await self._store.last_imported() == wanted:
                return version, False
            with suppress(DefinitionConflict):
                return await self._define(version, wanted, f"{source} changed"), True

    async def newer_than(self, version: int) -> Definitions | None:
        """Return the active definitions if they are not of this version."""
        current, text = await self._store.read()
        return _load(current, text) if text is not None and current != version else None

    async def _define(self, version: int, wanted: str, comment: str) -> int:
        about = {"author": "node", "comment": comment, "time_ms": now_ms()}
        return await self._store.replace(version, wanted, about, imported=True)


def _dump(definitions: Definitions) -> str:
    return json.dumps(to_json(replace(definitions, version=0)), sort_keys=True)


def _load(version: int, text: str) -> Definitions:
    return from_json({**json.loads(text), "version": version})
