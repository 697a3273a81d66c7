"""Run the network connectors of a broker, which can be changed while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.errors import ConfigurationRefused, RequestRefused
from brokerapp.network.bridge.connection import BridgeAdvisories, BridgeConnection
from brokerapp.network.links.sockets import TlsContextFactory
from brokerapp.network.options.address import BrokerAddress, address_of
from brokerapp.network.options.client_ids import is_of_removed_connector
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.discovery import Discovery
from brokerapp.network.options.multicast import parse_group
from brokerapp.network.options.options import ConnectorOptions, options_of

logger = logging.getLogger(__name__)

#: Brokers that one connector leads to by announcements: anybody may send those.
MAX_FOUND = 200


class BridgeSubscriptions(Protocol):
    """Durable subscriptions of the broker, those that bridges left among them."""

    def __iter__(self) -> Iterator[DurableSubscription]: ...

    def remove_unused_of_bridge(self, client_id: str, names: Collection[str]) -> None: ...


@dataclass(slots=True, eq=False)
class RunningConnector:
    """One network connector as it runs."""

    definition: NetworkConnector
    options: ConnectorOptions
    is_running: bool  #: it is to have its bridges
    connections: list[BridgeConnection] = field(default_factory=list)
    discovery: Discovery | None = None  #: of the brokers it leads to
    announced: dict[str, str] = field(default_factory=dict)  #: URI -> broker, of those that are there now

    def leads_to(self, uri: str) -> bool:
        """Return whether one of its connections leads to this address."""
        return any(address_of(uri) in way.addresses for way in self.connections)


class ConnectorManager:
    """Runs the network connectors of a node. `endpoint` is where bridges consume from their own broker.

    Unless they start `at_once` each waits for the first attempts of the one before it. `trust` makes what TLS is spoken
    with.
    """

    def __init__(
        self,
        endpoint: ConnectorState,
        definitions: Sequence[NetworkConnector],
        trust: TlsContextFactory,
        *,
        durables: BridgeSubscriptions,
        advisories: BridgeAdvisories,
        at_once: bool = False,
    ) -> None:
        self._name, self._endpoint, self._make_tls = endpoint.services.name, endpoint, trust
        self._durables, self._advisories, self._starts_concurrently = durables, advisories, at_once
        self._connectors = {each.name: self._make(each) for each in definitions}
        self._start_task: asyncio.Task[None] | None = None
        self._announcements: list[Discovery] = []
        self._stopping: set[asyncio.Task[None]] = set()  # ways to brokers that are not announced any more

    def __iter__(self) -> Iterator[RunningConnector]:
        return iter(self._connectors.values())

    @property
    def connections(self) -> list[BridgeConnection]:
        """Return the connections of all connectors."""
        return [way for each in self for way in each.connections]

    def _make(self, definition: NetworkConnector) -> RunningConnector:
        terms, _ = options_of(definition)
        connector = RunningConnector(definition, terms, terms.auto_start)
        groups = (terms.addresses,) if terms.in_turn else [(each,) for each in terms.addresses]
        connector.connections = [
            BridgeConnection(self._endpoint, terms, each, self._advisories, self._make_tls) for each in groups
        ]
        return connector

    # -- life

    async def announce(self, addresses: Mapping[str, Sequence[str]]) -> None:
        """Announce this broker at these addresses to groups, named by uris. Raises ConfigurationRefused."""
        for uri, announced in addresses.items():
            discovery = Discovery(parse_group(uri)[0], self._name, tuple(announced))
            try:
                await discovery.start()
            except OSError as error:
                raise ConfigurationRefused(f"discoveryUri {uri}: cannot announce brokers there: {error}") from error
            self._announcements.append(discovery)

    async def replace_all(self, definitions: Sequence[NetworkConnector], running: Mapping[str, bool]) -> None:
        """Run these connectors and no others; `running` overrides of some whether they start."""
        begins, names = not self._connectors, {each.name for each in definitions}
        if not definitions:
            await self._cancel_start()
        for name in [name for name in self._connectors if name not in names]:
            await self._remove(name)
        for each in definitions:
            former = self._connectors.get(each.name)
            if former is not None and former.definition.to_json(secrets=True) == each.to_json(secrets=True):
                continue
            if not begins:
                await self.put(each)
                continue
            connector = self._connectors[each.name] = self._make(each)
            connector.is_running = running.get(each.name, connector.is_running)
        if begins and definitions:
            self.start()

    @property
    def overridden_states(self) -> dict[str, bool]:
        """Return whether connectors run, of those where that differs from their definition."""
        return {
            each.definition.name: each.is_running for each in self if each.is_running is not each.options.auto_start
        }

    def start(self) -> None:
        """Start the connectors that start by themselves."""
        self._start_task = asyncio.create_task(self._start(), name="network connectors")

    async def _start(self) -> None:
        for each in list(self):  # operators make and remove some meanwhile
            if each.is_running and self._connectors.get(each.definition.name) is each:
                await self._start_one(each)

    async def _start_one(self, connector: RunningConnector) -> None:
        await self._start_connections(connector)
        if not self._starts_concurrently:
            for way in connector.connections:
                await way.first_attempt_done.wait()

    async def stop(self) -> None:
        """Stop all bridges; what they held goes back."""
        await self._cancel_start()
        for each in list(self):
            await self._stop_connections(each)
        for discovery in self._announcements:
            await discovery.stop()

    async def _cancel_start(self) -> None:
        if self._start_task is not None:
            self._start_task.cancel()
            try:
                await self._start_task
            except asyncio.CancelledError:
                pass
            except Exception:
                logger.exception("the network connectors could not all be started")

    async def _start_connections(self, connector: RunningConnector) -> None:
        for way in connector.connections:
            way.start()
        if connector.options.group is not None and connector.discovery is None:
            connector.discovery = Discovery(
                connector.options.group, self._name,
                found=partial(self._on_broker_found, connector), lost=partial(self._on_broker_lost, connector),
            )  # fmt: skip
            try:
                await connector.discovery.start()
            except OSError as error:
                connector.discovery = None
                logger.error("network connector %s cannot discover brokers: %s", connector.options.name, error)

    async def _stop_connections(self, connector: RunningConnector, *, for_good: bool = False) -> None:
        discovery, connector.discovery = connector.discovery, None
        if discovery is not None:
            await discovery.stop()
        for each in connector.connections:
            await each.stop(for_good=for_good)
        if connector.options.group is not None:  # who is there then is found then
            connector.connections.clear()
            connector.announced.clear()

    def _on_broker_found(self, connector: RunningConnector, uri: str, broker: str) -> None:
        """Connect to a broker that announces itself; of several addresses one is used at a time."""
        address = address_of(uri)
        if address is None or len(connector.announced) >= MAX_FOUND:
            return
        if connector.options.login is not None and connector.options.login[1] and not address.tls:
            logger.warning(
                "network connector %s: %s announces %s: no password is sent to a discovered broker without TLS",
                connector.options.name, broker, address,
            )  # fmt: skip
            return
        others = [each for each, name in connector.announced.items() if name == broker]
        connector.announced[uri] = broker
        if not any(map(connector.leads_to, others)):
            self._add_connection(connector, address)

    def _add_connection(self, connector: RunningConnector, address: BrokerAddress) -> None:
        logger.info("network connector %s: found %s", connector.options.name, address)
        way = BridgeConnection(self._endpoint, connector.options, (address,), self._advisories, self._make_tls)
        connector.connections.append(way)
        way.start()

    def _on_broker_lost(self, connector: RunningConnector, uri: str) -> None:
        """Disconnect from a broker that announces itself no more."""
        address, broker = address_of(uri), connector.announced.pop(uri, None)
        for way in [way for way in connector.connections if address in way.addresses]:
            connector.connections.remove(way)
            task = asyncio.create_task(way.stop(), name=f"end of {connector.options.name}")
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)
        others = [each for each, name in connector.announced.items() if name == broker]
        if not any(map(connector.leads_to, others)):
            for next_address in filter(None, map(address_of, others[:1])):
                self._add_connection(connector, next_address)

    # -- while it runs

    def find(self, name: str) -> RunningConnector:
        """Return the connector of this name. Raises RequestRefused."""
        try:
            return self._connectors[name]
        except KeyError:
            raise RequestRefused(f"network connector {name!r} not found") from None

    async def start_connector(self, name: str) -> None:
        """Start the bridges of a connector."""
        connector = self.find(name)
        connector.is_running = True
        await self._start_connections(connector)

    async def stop_connector(self, name: str) -> None:
        """Stop the bridges of a connector until it is started."""
        connector = self.find(name)
        connector.is_running = False
        await self._stop_connections(connector)

    async def put(self, definition: NetworkConnector) -> None:
        """Create this connector, or replace the one of its name, which keeps running if it did.

        Raises ConfigurationRefused.
        """
        former = self._connectors.get(definition.name)
        connector = self._make(definition)
        if former is not None:
            connector.is_running = former.is_running
            await self._stop_connections(former)
        self._connectors[definition.name] = connector
        if connector.is_running:
            await self.start_connector(definition.name)

    async def remove(self, name: str) -> None:
        """Remove a connector, with what this broker kept for its bridges.

        The durable subscriptions that a duplex one left at a broker that is away stay there.
        """
        await self._remove(name, for_good=True)
        self.remove_durables((name,))

    def remove_durables(self, names: Iterable[str]) -> None:
        """Remove the durable subscriptions of bridges of connectors that had these names."""
        clients = {each.identity.client_id for each in self._durables}
        for client in clients:
            if any(is_of_removed_connector(client, name, self._name, self._connectors) for name in names):
                self._durables.remove_unused_of_bridge(client, ())

    async def _remove(self, name: str, *, for_good: bool = False) -> None:
        """Stop running a connector. Unless it is `for_good` another node may run it."""
        connector = self.find(name)
        connector.is_running = False
        await self._stop_connections(connector, for_good=for_good)
        del self._connectors[name]
