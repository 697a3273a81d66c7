"""Load and save the connectors of a broker: those of its file until an operator changes them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from brokerapp.errors import ConfigurationRefused, DefinitionRefused, InvalidDestination
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of
from brokerapp.store.connectors import ConnectorStore

logger = logging.getLogger(__name__)

#: All that is kept, as JSON has it.
StoredConnectors = dict[str, Any]


class NetworkConnectorStore:
    """Of one broker, for each of its nodes. With each connector it has whether an operator started or stopped it.

    Also which a file does not have any more, until what was kept for their bridges is removed.
    """

    def __init__(self, store: ConnectorStore) -> None:
        self._store = store

    async def initialize(
        self, configured: Sequence[NetworkConnector], *, impose: bool, first: bool, starts: bool = True
    ) -> None:
        """Store the connectors of a node that starts, unless there are some, or it is to `impose` those of its file.

        With the `first` node of a broker what operators started and stopped is forgotten. Unless it `starts` them, all
        are stopped then until an operator starts them.
        """
        wanted = _dump(configured)

        def running(connectors: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
            return {} if starts else {str(each.get("name")): False for each in connectors}

        def begun(stored: StoredConnectors) -> StoredConnectors | None:
            if not stored or (impose and stored["imported"] != wanted):
                former = {each.get("name") for each in stored.get("connectors", ())}.union(stored.get("gone", ()))
                gone = sorted(former.difference(each.name for each in configured))
                imported = json.loads(wanted)
                return {"imported": wanted, "connectors": imported, "running": running(imported), "gone": gone}
            return {**stored, "running": running(stored.get("connectors", ()))} if first else None

        await self._change(begun)

    async def load(self) -> tuple[list[NetworkConnector], dict[str, bool]]:
        """Return the connectors in force, and which of them an operator started or stopped.

        One that another version of this program stored, and this one would refuse, is reported and left out.
        """
        stored, found = await self._read(), []
        for each in stored.get("connectors", ()):
            if why := _refusal_reason(each):
                logger.error("the stored network connector %s is invalid and ignored: %s", each.get("name"), why)
            else:
                found.append(NetworkConnector.from_json(each))
        return found, stored.get("running", {})

    async def save(self, connectors: Sequence[NetworkConnector], running: Mapping[str, bool], changed: str) -> None:
        """Store these connectors; the one of the name `changed` is new, changed or removed.

        What was left out stays in the store until it is changed.
        """

        def changed_to(stored: StoredConnectors) -> StoredConnectors:
            left_out = [
                each for each in stored.get("connectors", ()) if each.get("name") != changed and _refusal_reason(each)
            ]
            kept = [*json.loads(_dump(connectors)), *left_out]
            gone = [each for each in stored.get("gone", ()) if each != changed]
            return {**stored, "connectors": kept, "running": dict(running), "gone": gone}

        await self._change(changed_to)

    async def removed_names(self) -> list[str]:
        """Return the names of connectors that a file has no more, of which something may be left."""
        return list((await self._read()).get("gone", ()))

    async def clear_removed(self, names: Collection[str]) -> None:
        """Forget these names: nothing is left of their connectors."""
        await self._change(lambda stored: {**stored, "gone": [n for n in stored.get("gone", ()) if n not in names]})

    async def _read(self) -> StoredConnectors:
        text = await self._store.read()
        return json.loads(text) if text else {}

    async def _change(self, changed: Callable[[StoredConnectors], StoredConnectors | None]) -> None:
        """Keep what follows from what is kept, whatever others make of it meanwhile; None: it stays."""
        while True:
            text = await self._store.read()
            kept = changed(json.loads(text) if text else {})
            if kept is None or await self._store.replace(text, json.dumps({"imported": "", **kept})):
                return


def _refusal_reason(stored: Mapping[str, Any]) -> str:
    """Why a stored connector cannot be had; "": it can."""
    try:
        options_of(NetworkConnector.from_json(stored))
    except (ConfigurationRefused, DefinitionRefused, InvalidDestination) as error:
        return str(error)
    return ""


def _dump(connectors: Sequence[NetworkConnector]) -> str:
    return json.dumps([each.to_json(secrets=True) for each in connectors], sort_keys=True)
