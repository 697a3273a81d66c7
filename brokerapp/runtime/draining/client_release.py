"""Let the clients of a node go, each once it holds nothing, so that they go on at other nodes."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from brokerapp.connections.connector_state import ConnectorState, OpenConnection
from brokerapp.errors import StoreUnavailable

logger = logging.getLogger(__name__)

#: Seconds a client has to acknowledge what it was delivered and to end its transactions. It gets no more messages
#: meanwhile: a consumer that works longer on a message gets it again, flagged as redelivered, at another node.
SETTLE_SECONDS = 2.0
#: Seconds between two looks at which clients hold nothing any more.
LOOK_SECONDS = 0.02
#: Seconds for the store to take what clients asked last, and then for clients to close their connections.
COMMIT_SECONDS, GOODBYE_SECONDS = 2.0, 1.5


class ClientRelease:
    """Lets clients go. `other_addresses` are those of other nodes that serve what a connector serves."""

    def __init__(
        self,
        *,
        connectors: Callable[[], Iterable[ConnectorState]],
        commit: Callable[[], Awaitable[None]],
        other_addresses: Callable[[ConnectorState], Awaitable[Sequence[str]]],
    ) -> None:
        self._connectors, self._commit, self._other_addresses = connectors, commit, other_addresses

    async def run(self) -> int:
        """Let all clients go; nothing must be dispatched any more. Return how many there were."""
        loop = asyncio.get_running_loop()
        addresses = {each.name: await self._addresses_of(each) for each in self._connectors()}
        deadline = loop.time() + SETTLE_SECONDS
        count = len(self._open())
        turns = itertools.count()  # each connector's clients spread over the other nodes
        while waiting := self._open():
            is_late = loop.time() >= deadline
            settled = [(name, each) for name, each in waiting if is_late or each.is_settled]
            if settled:
                await self._release(settled, addresses, turns, is_late=is_late)
            if is_late:
                break
            await asyncio.sleep(LOOK_SECONDS)
        deadline = loop.time() + GOODBYE_SECONDS
        while self._connections() and loop.time() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
        for _, each in self._connections():
            each.close()
        return count

    async def _addresses_of(self, connector: ConnectorState) -> Sequence[str]:
        try:
            return await self._other_addresses(connector)
        except StoreUnavailable:
            return ()  # clients know others themselves, or the first node again

    def _connections(self) -> list[tuple[str, OpenConnection]]:
        return [(connector.name, each) for connector in self._connectors() for each in connector.open_connections]

    def _open(self) -> list[tuple[str, OpenConnection]]:
        """Return the connections that were not let go of yet, with the names of their connectors."""
        return [(name, each) for name, each in self._connections() if not each.is_closing]

    async def _release(
        self,
        settled: Sequence[tuple[str, OpenConnection]],
        addresses: dict[str, Sequence[str]],
        turns: Iterable[int],
        *,
        is_late: bool,
    ) -> None:
        """Take no more commands of these, answer those that came, and let go of those that still hold nothing."""
        for _, each in settled:
            each.stop()
        try:
            await asyncio.wait_for(self._commit(), COMMIT_SECONDS)
        except TimeoutError:
            logger.warning("the store takes long: clients leave without answers to what they asked last")
        for (name, each), turn in zip(settled, turns, strict=False):
            if each.is_closing:
                continue
            if not is_late and not each.is_settled:
                each.resume()
                continue
            others = addresses[name]
            first = turn % len(others) if others else 0
            each.send_away([*others[first:], *others[:first]])
