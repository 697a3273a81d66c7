"""Reads, changes and explains the definitions of routing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from brokerapp.admin.client_base import AdminClientBase
from brokerapp.engine.routing.routing_context import RoutingContext
from brokerapp.engine.routing.validation import check_definitions
from brokerapp.errors import DefinitionRefused
from brokerapp.model import JsonObject
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.system.clock import now_ms

#: Seconds a node may take to apply definitions: longer than one that died counts as live.
REFRESH_SECONDS = 8.0


class RoutingAdmin(AdminClientBase):
    """Reads, applies and explains definitions."""

    async def definitions(self, version: int | None = None) -> Definitions:
        """Return the active definitions, or those of an earlier version. Raises DefinitionRefused if unknown."""
        current, text = await self._store.definitions.read(version)
        if text is None:
            if version:
                raise DefinitionRefused(f"definitions version {version} not found")
            return Definitions()
        return from_json({**json.loads(text), "version": current if version is None else version})

    async def definitions_version(self) -> int:
        """Return the version of the active definitions."""
        return await self._store.definitions.current_version()

    async def define(self, definitions: Definitions, author: str, comment: str = "") -> Definitions:
        """Store these and have every node apply them; returns them with their new version.

        A node that does not answer in time is logged: it applies them when it reads the store again. What each node
        routes by is in its status, see `nodes`.

        `definitions.version` must be the version they were derived from, else DefinitionConflict. Raises
        DefinitionRefused when they cannot work (selector, loop, duplicate name), naming the definition and the rule.
        """
        check_definitions(definitions)
        await self._open()
        await self._require_replicas()
        about = {"author": author, "comment": comment, "time_ms": now_ms()}
        new = await self._store.definitions.replace(definitions.version, json.dumps(to_json(definitions)), about)
        await self._tell_each("refresh", REFRESH_SECONDS)
        return replace(definitions, version=new)

    async def history(self, limit: int = 50) -> list[JsonObject]:
        """Return the versions, newest first: version, author, comment, time_ms."""
        return await self._store.definitions.history(limit)

    async def explain(
        self, destination: Destination, headers: Mapping[str, str], body: str = "",
        definitions: Definitions | None = None,
    ) -> JsonObject:  # fmt: skip
        """Return where a message would go and why, see RouteExplainer.explain. Needs a live node."""
        proposed = None if definitions is None else to_json(definitions)
        return await self._ask(
            "explain", destination=str(destination), headers=dict(headers), body=body, definitions=proposed
        )

    async def routing_context(self, definitions: Definitions | None = None) -> RoutingContext:
        """Return what routing depends on besides the active and these proposed definitions. Needs a live node."""
        proposed = None if definitions is None else to_json(definitions)
        return RoutingContext.from_json(await self._ask("circumstances", definitions=proposed))
