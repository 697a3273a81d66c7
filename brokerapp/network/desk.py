"""NetworkDesk: what operators ask of a broker's network connectors while they run, and do to them."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from brokerapp.errors import ConfigurationRefused, DefinitionRefused, StoreUnavailable
from brokerapp.network.connections import Connections
from brokerapp.network.definition import NetworkConnector
from brokerapp.network.inquiry import Inquiry
from brokerapp.network.telling import demand_of, network_stats
from brokerapp.network.terms import terms_of
from brokerapp.store.redis import RedisStore

logger = logging.getLogger(__name__)


class Registry:
    """The connectors a broker has, in its store: those of its file until an operator changes them."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._imported = ""

    async def begin(self, configured: Sequence[NetworkConnector], impose: bool) -> list[NetworkConnector]:
        """Those in force: the store's, unless it has none, or `impose` is set and a file says something new."""
        wanted, text = _dump(configured), await self._store.connectors()
        if text is not None:
            stored = json.loads(text)
            self._imported = stored["imported"]
            if not (impose and self._imported != wanted):
                return [NetworkConnector.from_json(each) for each in stored["connectors"]]
        self._imported = wanted
        await self.keep(configured)
        return list(configured)

    async def keep(self, connectors: Sequence[NetworkConnector]) -> None:
        """These are in force from now on, also after a restart."""
        kept = {"imported": self._imported, "connectors": [each.to_json(secrets=True) for each in connectors]}
        await self._store.keep_connectors(json.dumps(kept))


def _dump(connectors: Sequence[NetworkConnector]) -> str:
    return json.dumps([each.to_json(secrets=True) for each in connectors], sort_keys=True)


class NetworkDesk:
    """Carries out requests about the connectors of one node."""

    def __init__(self, connections: Connections, registry: Registry) -> None:
        self._connections, self._registry = connections, registry

    @property
    def verbs(self) -> Mapping[str, Callable[..., Awaitable[Any]]]:
        """By the names they are asked by."""
        return {
            "network": self.network,
            "network_demand": self.demand,
            "network_put": self.put,
            "network_remove": self.remove,
            "network_start": self.start,
            "network_stop": self.stop,
            "network_why": Inquiry(self._connections).why,
        }

    async def network(self) -> dict[str, Any]:
        """NetworkStats, as they are now."""
        return network_stats(self._connections).to_json()

    async def demand(self, name: str) -> list[dict[str, Any]]:
        """What the bridges of a connector consume: {way, bridge, demand: DemandStats...}."""
        return demand_of(self._connections.find(name))

    async def put(self, definition: dict[str, Any]) -> None:
        """Have this connector, in place of the one of its name. Raises DefinitionRefused."""
        known = {each.definition.name: each.definition for each in self._connections}
        former = known.get(definition.get("name", ""))
        connector = NetworkConnector.from_json(definition, former)
        check(connector)
        await self._connections.put(connector)
        await self._keep()

    async def remove(self, name: str) -> None:
        """Have no connector of this name any more. What its bridges held goes back. Raises RequestRefused."""
        await self._connections.remove(name)
        await self._keep()

    async def start(self, name: str) -> None:
        """Let a connector have its bridges. Raises RequestRefused."""
        await self._connections.resume(name)

    async def stop(self, name: str) -> None:
        """Take the bridges of a connector down, until it is started, or the node is. Raises RequestRefused."""
        await self._connections.halt(name)

    async def _keep(self) -> None:
        try:
            await self._registry.keep([each.definition for each in self._connections])
        except StoreUnavailable:
            logger.error("the change of the network connectors could not be stored: a restart undoes it")
            raise


def check(connector: NetworkConnector) -> None:
    """Raise DefinitionRefused for a connector that cannot work, or asks for what there is not."""
    try:
        _, unknown = terms_of(connector)
    except ConfigurationRefused as error:
        raise DefinitionRefused(str(error)) from error
    if unknown:
        raise DefinitionRefused(f"networkConnector {connector.name}: nothing here has {', '.join(unknown)}")
