"""Keep a node at the definitions of the store, or store those of its configuration, and route by them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from brokerapp.core.ports import RoutingPort
from brokerapp.errors import DefinitionConflict
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import Definitions
from brokerapp.store.versions import DefinitionStore
from brokerapp.system.clock import now_ms

logger = logging.getLogger(__name__)


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


class RoutingUpdates:
    """Keeps the broker of a node routing by the active definitions; `apply` gives it others."""

    def __init__(self, sync: DefinitionSync, routing: RoutingPort, apply: Callable[[Definitions], None]) -> None:
        self._sync, self._routing, self._apply = sync, routing, apply

    async def refresh(self) -> None:
        """Route by the definitions that are in force. Raises StoreUnavailable."""
        definitions = await self._sync.newer_than(self._routing.table.definitions.version)
        if definitions is not None:
            self._apply(definitions)
            logger.info("routing by definitions version %d", definitions.version)

    async def impose(self, definitions: Definitions, source: str) -> int:
        """Store these definitions if the source changed since last time, and route by them; return the version.

        Raises DefinitionConflict, StoreUnavailable.
        """
        version, is_new = await self._sync.impose(definitions, source)
        if is_new:
            await self.refresh()
        return version


def _dump(definitions: Definitions) -> str:
    return json.dumps(to_json(replace(definitions, version=0)), sort_keys=True)


def _load(version: int, text: str) -> Definitions:
    return from_json({**json.loads(text), "version": version})
