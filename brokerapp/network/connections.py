"""Connections: the network connectors of a broker, each with its ways to others, which can be changed while it runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from brokerapp.errors import RequestRefused
from brokerapp.network.definition import NetworkConnector
from brokerapp.network.terms import Terms, terms_of
from brokerapp.network.way import Way
from brokerapp.stomp.endpoint import Endpoint


@dataclass(slots=True, eq=False)
class Connector:
    """One network connector as it runs."""

    definition: NetworkConnector
    terms: Terms
    running: bool  #: it is to have its bridges
    ways: list[Way] = field(default_factory=list)


class Connections:
    """All of one node. `endpoint` is where bridges consume from their own broker.

    Unless they start `at_once` each waits for the first attempts of the one before it.
    """

    def __init__(self, endpoint: Endpoint, definitions: Sequence[NetworkConnector], *, at_once: bool = False) -> None:
        self.broker, self._endpoint, self._at_once = endpoint.broker, endpoint, at_once
        self._connectors = {each.name: self._make(each) for each in definitions}
        self._starting: asyncio.Task | None = None

    def __iter__(self) -> Iterator[Connector]:
        return iter(self._connectors.values())

    @property
    def all(self) -> list[Way]:
        """The ways of all connectors."""
        return [way for each in self for way in each.ways]

    def _make(self, definition: NetworkConnector) -> Connector:
        terms, _ = terms_of(definition)
        connector = Connector(definition, terms, terms.auto_start)
        groups = (terms.addresses,) if terms.in_turn else [(each,) for each in terms.addresses]
        connector.ways = [Way(self._endpoint, terms, each, self._told) for each in groups]
        return connector

    # -- life

    def start(self) -> None:
        """Build the bridges of those connectors that start by themselves."""
        self._starting = asyncio.create_task(self._start(), name="network connectors")

    async def _start(self) -> None:
        for each in self:
            if each.running:
                await self._start_one(each)

    async def _start_one(self, connector: Connector) -> None:
        for way in connector.ways:
            way.start()
        if not self._at_once:
            for way in connector.ways:
                await way.tried.wait()

    async def stop(self) -> None:
        """Take all bridges down; what they held goes back."""
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._starting
        await _stop(self.all)

    # -- while it runs

    def find(self, name: str) -> Connector:
        """The connector of this name. Raises RequestRefused."""
        try:
            return self._connectors[name]
        except KeyError:
            raise RequestRefused(f"there is no network connector {name!r}") from None

    def resume(self, name: str) -> None:
        """Let a connector have its bridges again."""
        connector = self.find(name)
        connector.running = True
        for way in connector.ways:
            way.start()

    async def halt(self, name: str) -> None:
        """Take the bridges of a connector down until it is resumed."""
        connector = self.find(name)
        connector.running = False
        await _stop(connector.ways)

    async def put(self, definition: NetworkConnector) -> None:
        """Have this connector, in place of the one of its name, if there is one, and running if that was.

        Raises ConfigurationRefused.
        """
        former = self._connectors.get(definition.name)
        connector = self._make(definition)
        if former is not None:
            connector.running = former.running
            await _stop(former.ways)
        self._connectors[definition.name] = connector
        if connector.running:
            self.resume(definition.name)

    async def remove(self, name: str) -> None:
        """Have no such connector any more."""
        await self.halt(name)
        del self._connectors[name]

    def _told(self, way: Way, begins: bool) -> None:
        """The bridges of a way begin, or end."""
        advisories, key = self.broker.advisories, f"{way.terms.name} {way.addresses[0]}"
        if begins:
            advisories.bridge_started(key, way.remote, str(way.connected_to), by_duplex=False)
        else:
            advisories.bridge_stopped(key)


async def _stop(ways: Iterable[Way]) -> None:
    for each in ways:
        await each.stop()
