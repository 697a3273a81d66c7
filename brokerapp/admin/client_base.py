"""Connects operators with a broker: through its store, and through requests to running nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from brokerapp.engine.routing.bindings import Binding, is_at
from brokerapp.errors import (
    BrokerError,
    DefinitionRefused,
    DestinationNotFound,
    InvalidDestination,
    LimitExceeded,
    RequestRefused,
    StoreUnavailable,
    TransactionNotFound,
)
from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.destination import Destination
from brokerapp.store import DISCARDED
from brokerapp.store.shards.broker_store import BrokerStore

logger = logging.getLogger(__name__)

#: Seconds a node may take over a request; a purge of a million messages takes some ten.
REQUEST_SECONDS = 60.0
#: Seconds a node may take to tell what it knows: longer than a node that died is taken for living.
REFRESH_TIMEOUT_SECONDS = 8.0

_ERRORS: dict[str, Callable[[str], BrokerError]] = {
    each.code: each
    for each in (
        DestinationNotFound,
        LimitExceeded,
        RequestRefused,
        DefinitionRefused,
        StoreUnavailable,
        TransactionNotFound,
    )
} | {InvalidDestination.code: InvalidDestination.from_message}


class AdminClientBase:
    """Sends requests to nodes and reads the store. Belongs to one event loop; raises subclasses of BrokerError only."""

    def __init__(self, redis_url: str, broker: str) -> None:
        self.redis_url, self.broker = redis_url, broker
        self._store = BrokerStore(redis_url, broker)
        self._opened = False

    async def _require_replicas(self) -> None:
        """Have replicas of the store confirm a change, as many as the broker's nodes want."""
        statuses = (await self._store.nodes.statuses()).values()
        wanted = [status.get("store", {}).get("replicas_wanted", 0) for status in statuses]
        self._store.client.require_replicas(max(wanted, default=0))

    async def close(self) -> None:
        """Close the connections to the store."""
        await self._store.close()

    async def _open(self) -> None:
        """Load the functions for writes into the store, if no node has done so."""
        if not self._opened:
            await self._store.open()
            self._opened = True

    async def _ask(self, verb: str, **arguments: JsonValue) -> JsonValue:
        if not await self._store.nodes.has_live_node():
            raise StoreUnavailable(f"broker {self.broker!r} has no running node")
        return _result(await self._store.requests.send(verb, arguments, REQUEST_SECONDS))

    async def _ask_each(self, verb: str, **arguments: JsonValue) -> list[JsonValue]:
        """Return the results of all nodes that have one. A node that stops meanwhile is skipped."""
        names = list(await self._store.nodes.statuses())
        if not names:
            raise StoreUnavailable(f"broker {self.broker!r} has no running node")
        told = await asyncio.gather(*(self._ask_one(name, verb, arguments) for name in names))
        return [result for results in told for result in results]

    async def _ask_one(self, node: str, verb: str, arguments: Mapping[str, JsonValue]) -> list[JsonValue]:
        """Return the result of one node; nothing if it stopped meanwhile."""
        try:
            return [_result(await self._store.requests.send(verb, arguments, REFRESH_TIMEOUT_SECONDS, node))]
        except StoreUnavailable:
            if node in await self._store.nodes.statuses():
                raise
            return []

    async def _tell_each(self, verb: str, seconds: float) -> None:
        """Send a request to each running node; log those that do not reply in time."""
        names = list(await self._store.nodes.statuses())
        answers = (self._store.requests.send(verb, {}, seconds, name) for name in names)
        for name, answer in zip(names, await asyncio.gather(*answers, return_exceptions=True), strict=True):
            if isinstance(answer, StoreUnavailable):
                logger.warning("node %s did not confirm %s: %s", name, verb, answer)
            elif isinstance(answer, BaseException):
                raise answer

    async def _logs(self) -> dict[str, JsonObject]:
        """Return the logs that exist, with their attributes."""
        return {
            name: each
            for name, each in (await self._store.logs.all_attributes()).items()
            if each.get("kind") != DISCARDED
        }

    async def _log(self, destination: Destination) -> str:
        """Return the log of a queue or subscription. Raises DestinationNotFound."""
        if not destination.is_queue:
            raise DestinationNotFound(f"{destination} is a topic: it stores no messages")
        queue = destination.physical
        attributes = await self._store.logs.attributes(str(queue))
        is_there = attributes and attributes.get("kind") != DISCARDED
        if not is_there or not is_at(destination, Binding.from_json(queue.name, attributes)):
            raise DestinationNotFound(f"{destination} not found")
        return str(queue)


def _result(reply: Mapping[str, JsonValue]) -> JsonValue:
    """Return the result of a reply, or raise its error."""
    if "error" in reply:
        raise _ERRORS.get(reply["code"], BrokerError)(reply["error"])
    return reply["result"]
