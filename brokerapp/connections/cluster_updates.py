"""ClusterUpdates: tells OpenWire clients of the nodes and cluster brokers that serve them, as these come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.errors import StoreUnavailable

#: Seconds between two looks at which nodes there are. Clients need to know before their node fails, not at once.
LOOK_SECONDS = 1.0


class ClusterUpdates:
    """Reads the status of the broker's nodes and of its cluster, where a connector tells its clients of them."""

    def __init__(
        self,
        *,
        node: str,
        connectors: Sequence[ConnectorState],
        statuses: Callable[[], Awaitable[Mapping[str, Mapping[str, Any]]]],
    ) -> None:
        self._node, self._statuses = node, statuses
        self._connectors = [each for each in connectors if each.cluster_brokers.is_needed]

    @property
    def is_needed(self) -> bool:
        """Return whether a connector tells its clients of nodes."""
        return bool(self._connectors)

    async def run(self) -> None:
        """Tell clients of nodes until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                statuses = await self._statuses()
            except StoreUnavailable:
                continue  # others report it
            for each in self._connectors:
                self._update(each, statuses)

    def _update(self, connector: ConnectorState, statuses: Mapping[str, Mapping[str, Any]]) -> None:
        addresses = addresses_by_node(connector, statuses)
        own = addresses.pop(self._node, None)
        if own is not None and connector.cluster_brokers.update(own, addresses):
            for connection in list(connector.open_connections):
                connection.tell_cluster_brokers()


def addresses_by_node(connector: ConnectorState, statuses: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return where nodes serve what this connector serves, by their names; nodes that are drained serve nothing."""
    found = {
        name: _address(connector, status)
        for name, status in statuses.items()
        if not status.get("homes", {}).get("draining")
    }
    return {name: address for name, address in found.items() if address is not None}


def _address(connector: ConnectorState, status: Mapping[str, Any]) -> str | None:
    """Return where a node serves what this connector serves: at its connector of the same name, as clients call it."""
    found = [each["address"] for each in status.get("listeners", ()) if each["connector"] == connector.name]
    if not found:
        return None
    scheme, _, rest = found[0].replace("//0.0.0.0:", f"//{status.get('host', '')}:").partition("://")
    transport = scheme.removeprefix("auto").removeprefix("+")  # which clients do not have
    return f"{transport or 'tcp'}://{rest}"
