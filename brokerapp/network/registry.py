"""Registry: the connectors a broker has, in its store: those of its file until an operator changes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from brokerapp.network.definition import NetworkConnector
from brokerapp.store.redis import RedisStore


class Registry:
    """Of one broker, for each of its nodes. With each connector it has whether an operator started or stopped it."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def begin(self, configured: Sequence[NetworkConnector], *, impose: bool, first: bool) -> None:
        """A node begins: its connectors come into a store that has none, or if it is to `impose` what a file says anew.

        With the `first` node of a broker what operators started and stopped is forgotten.
        """
        wanted, stored = _dump(configured), await self._read()
        if not stored or (impose and stored["imported"] != wanted):
            await self._write(wanted, configured, {})
        elif first:
            await self._write(stored["imported"], _connectors(stored), {})

    async def found(self) -> tuple[list[NetworkConnector], dict[str, bool]]:
        """The connectors in force, and of those that an operator started or stopped which, by name."""
        stored = await self._read()
        return _connectors(stored), stored.get("running", {})

    async def keep(self, connectors: Sequence[NetworkConnector], running: Mapping[str, bool]) -> None:
        """These are in force from now on, also after a restart."""
        await self._write((await self._read()).get("imported", ""), connectors, running)

    async def _read(self) -> dict:
        text = await self._store.connectors()
        return json.loads(text) if text is not None else {}

    async def _write(self, imported: str, connectors: Sequence[NetworkConnector], running: Mapping[str, bool]) -> None:
        kept = [each.to_json(secrets=True) for each in connectors]
        await self._store.keep_connectors(json.dumps({"imported": imported, "connectors": kept, "running": running}))


def _connectors(stored: Mapping) -> list[NetworkConnector]:
    return [NetworkConnector.from_json(each) for each in stored.get("connectors", ())]


def _dump(connectors: Sequence[NetworkConnector]) -> str:
    return json.dumps([each.to_json(secrets=True) for each in connectors], sort_keys=True)
