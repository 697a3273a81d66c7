"""Networks: what operators ask about a broker's network connectors, and do to them. A part of BrokerAdmin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

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
        ask: Callable[..., Awaitable[Any]],
        ask_each: Callable[..., Awaitable[list[Any]]],
        store: ConnectorStore,
    ) -> None:
        self._ask, self._ask_each, self._registry = ask, ask_each, NetworkConnectorStore(store)

    async def connectors(self) -> list[NetworkConnector]:
        """Those in force, with their passwords, also when no node runs."""
        return (await self._registry.load())[0]

    async def stats(self) -> NetworkStats:
        """The connectors and their bridges, and the bridges of other brokers to this one, as they are now."""
        stats = NetworkStats.from_json(await self._ask("network"))
        told = await self._ask_each("incoming")  # another broker's bridge may come to any node
        return replace(stats, incoming=[InboundBridgeStats(**each) for incoming in told for each in incoming])

    async def demand(self, name: str) -> dict[tuple[str, str], list[DemandStats]]:
        """What the bridges of a connector consume, by remote broker and direction, with the consumers it is for."""
        found = await self._ask("network_demand", name=name)
        return {(each["remote"], each["direction"]): [DemandStats(**one) for one in each["demand"]] for each in found}

    async def why(self, destination: Destination, seq: int | None = None) -> list[dict[str, Any]]:
        """What the ways of each connector do about a destination, or the message of this number in a queue.

        A dict each: `connector`, `remote`, `crosses`, and the `reason` (a sentence) where it does not. Raises
        RequestRefused for a message that is not there.
        """
        return await self._ask("network_why", destination=str(destination), seq=seq)

    async def put(self, definition: Mapping[str, Any], outbound: str | None = None) -> None:
        """Have a connector, in place of the one of its name: see NetworkConnector.to_json for the form.

        A password that is None stays as it is. `outbound`, a rule as SLUICE_OUTBOUND states it, is kept with the
        connector and checked whenever it connects. Raises DefinitionRefused, which names what is wrong.
        """
        rule = {"outbound": outbound} if outbound is not None else {}
        await self._ask("network_put", definition=dict(definition), **rule)

    async def remove(self, name: str) -> None:
        """Have no connector of this name any more, also after a restart. Raises RequestRefused for no such one."""
        await self._ask("network_remove", name=name)

    async def start(self, name: str) -> None:
        """Let a connector have its bridges. Raises RequestRefused."""
        await self._ask("network_start", name=name)

    async def stop(self, name: str) -> None:
        """Take its bridges down, until it is started, or its broker is. Raises RequestRefused."""
        await self._ask("network_stop", name=name)
