"""Reads and changes the network connectors of a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import DemandStats, InboundBridgeStats, NetworkStats
from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.store.connectors import ConnectorStore


class NetworkAdmin:
    """`ask` asks the live node that has the connectors, `ask_each` all of them; StoreUnavailable when there is none.

    A node tells NetworkStats once a second, too.
    """

    def __init__(
        self,
        ask: Callable[..., Awaitable[JsonValue]],
        ask_each: Callable[..., Awaitable[list[JsonValue]]],
        store: ConnectorStore,
    ) -> None:
        self._ask, self._ask_each, self._registry = ask, ask_each, NetworkConnectorStore(store)

    async def connectors(self) -> list[NetworkConnector]:
        """Return the stored connectors with their passwords, also without a running node."""
        return (await self._registry.load())[0]

    async def stats(self) -> NetworkStats:
        """Return the present state of connectors, their bridges and inbound bridges."""
        stats = NetworkStats.from_json(await self._ask("network"))
        told = await self._ask_each("incoming")  # another broker's bridge may come to any node
        return replace(stats, incoming=[InboundBridgeStats(**each) for incoming in told for each in incoming])

    async def demand(self, name: str) -> dict[tuple[str, str], list[DemandStats]]:
        """Return the subscriptions of a connector's bridges, by remote broker and direction, with their consumers."""
        found = await self._ask("network_demand", name=name)
        return {(each["remote"], each["direction"]): [DemandStats(**one) for one in each["demand"]] for each in found}

    async def diagnose(self, destination: Destination, seq: int | None = None) -> list[JsonObject]:
        """Return for each connector why a destination, or one message of a queue, is not forwarded.

        A dict each: `connector`, `remote`, `crosses`, and the `reason` (a sentence) where it does not. Raises
        RequestRefused for a message that is not there.
        """
        return await self._ask("network_why", destination=str(destination), seq=seq)

    async def put_connector(self, definition: Mapping[str, JsonValue], outbound: str | None = None) -> None:
        """Create or replace a connector, in the form of NetworkConnector.to_json.

        A password that is None stays as it is. `outbound`, a rule as SLUICE_OUTBOUND states it, is kept with the
        connector and checked whenever it connects. Raises DefinitionRefused, which names what is wrong.
        """
        rule = {"outbound": outbound} if outbound is not None else {}
        await self._ask("network_put", definition=dict(definition), **rule)

    async def remove_connector(self, name: str) -> None:
        """Delete a connector. Raises RequestRefused if there is none of this name."""
        await self._ask("network_remove", name=name)

    async def start(self, name: str) -> None:
        """Start a connector and its bridges. Raises RequestRefused."""
        await self._ask("network_start", name=name)

    async def stop(self, name: str) -> None:
        """Stop a connector until it is started or the broker restarts. Raises RequestRefused."""
        await self._ask("network_stop", name=name)
