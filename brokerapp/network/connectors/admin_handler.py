"""Carry out operators' requests about the network connectors of a broker."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from brokerapp.errors import ConfigurationRefused, DefinitionRefused, StoreUnavailable
from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.connectors.diagnosis import BridgeDiagnosis
from brokerapp.network.connectors.leader import ConnectorLeader
from brokerapp.network.connectors.stats import NetworkStatus, demand_of
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of

logger = logging.getLogger(__name__)


class NetworkRequests:
    """Carries out operators' requests about the network connectors of a broker, on the node that runs them."""

    def __init__(
        self,
        *,
        leader: ConnectorLeader,
        registry: NetworkConnectorStore,
        status: NetworkStatus,
        diagnosis: BridgeDiagnosis,
    ) -> None:
        self._leader, self._connections, self._registry = leader, leader.connections, registry
        self._status = status
        #: Handlers by the names of the requests.
        self.verbs: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "network": self.network,
            "incoming": self.incoming,
            "network_demand": self.demand,
            "network_put": self.put,
            "network_remove": self.remove,
            "network_start": self.start,
            "network_stop": self.stop,
            "network_why": diagnosis.diagnose,
        }

    async def network(self) -> dict[str, Any]:
        """Return the NetworkStats of this node."""
        return self._status.stats().to_json()

    async def incoming(self) -> list[dict[str, Any]]:
        """Return the InboundBridgeStats of the bridges of other brokers to this very node."""
        return [asdict(each) for each in self._status.incoming()]

    async def demand(self, name: str) -> list[dict[str, Any]]:
        """Return what the bridges of a connector consume: {remote, direction, demand: [DemandStats]}."""
        return demand_of(self._connections.find(name))

    async def put(self, definition: dict[str, Any], outbound: str | None = None) -> None:
        """Create this connector, or replace the one of its name. Raises DefinitionRefused.

        `outbound` is the rule for the addresses that it may connect to. A connector that has none keeps its uri so.
        """
        async with self._leader.lock:
            known = {each.definition.name: each.definition for each in self._connections}
            former = known.get(definition.get("name", ""))
            connector = NetworkConnector.from_json(definition, former)
            if outbound is not None and (former is None or former.uri != connector.uri or former.outbound is not None):
                connector = replace(connector, outbound=outbound)
            check_connector(connector)
            await self._connections.put(connector)
            await self._keep(connector.name)

    async def remove(self, name: str) -> None:
        """Remove a connector; what its bridges held goes back. Raises RequestRefused."""
        async with self._leader.lock:
            await self._connections.remove(name)
            await self._keep(name)

    async def start(self, name: str) -> None:
        """Start the bridges of a connector. Raises RequestRefused."""
        async with self._leader.lock:
            await self._connections.start_connector(name)
            await self._keep(name)

    async def stop(self, name: str) -> None:
        """Stop the bridges of a connector until it, or its broker, is started. Raises RequestRefused."""
        async with self._leader.lock:
            await self._connections.stop_connector(name)
            await self._keep(name)

    async def _keep(self, changed: str) -> None:
        connections = self._connections
        try:
            await self._registry.save([each.definition for each in connections], connections.overridden_states, changed)
        except StoreUnavailable:
            logger.error("the change of the network connectors could not be stored; it is lost with the next restart")
            raise


def check_connector(connector: NetworkConnector) -> None:
    """Raise DefinitionRefused for a connector that cannot work, or asks for what there is not."""
    try:
        _, unknown = options_of(connector)
    except ConfigurationRefused as error:
        raise DefinitionRefused(str(error)) from error
    if unknown:
        raise DefinitionRefused(f"networkConnector {connector.name}: unknown options {', '.join(unknown)}")
