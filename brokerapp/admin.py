"""BrokerAdmin: what an operator can ask of a broker. One door for brokerctl and for the console.

It needs the store only. What touches messages a node may hold (purge) is asked of the home node through the store and
done on the store itself when no node is alive.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from brokerapp.definitions import Definitions
from brokerapp.destination import Destination
from brokerapp.snapshot import BrowsePage, DestinationStats, NodeStatus


class BrokerAdmin:
    """Asynchronous; belongs to the event loop it is opened on. Raises BrokerError's branches only."""

    def __init__(self, redis_url: str, broker: str) -> None:
        self.redis_url, self.broker = redis_url, broker

    async def close(self) -> None:
        """Give back the connections."""

    # -- numbers

    async def stats(self, since: int = 0) -> tuple[int, list[DestinationStats], list[Destination]]:
        """The snapshot's version, the destinations changed after version `since`, and those deleted after it.

        With `since=0` all that exist. Nodes write a new version once a second when something changed.
        """
        raise NotImplementedError

    def watch(self) -> AsyncIterator[int]:
        """Version numbers of snapshots as they come; a lost one is of no consequence."""
        raise NotImplementedError

    async def nodes(self) -> list[NodeStatus]:
        """The live nodes."""
        raise NotImplementedError

    # -- messages

    async def browse(
        self, destination: Destination, after: int = 0, limit: int = 50, selector: str | None = None,
        scan: int = 10_000,
    ) -> BrowsePage:
        """Messages of a queue with seq > after, without consuming them; at most `scan` are looked at in one call.

        Raises SelectorSyntaxError, DestinationNotFound.
        """
        raise NotImplementedError

    async def message(self, destination: Destination, seq: int) -> BrowsePage:
        """The one message at seq (a page of one, or of none when it is gone)."""
        raise NotImplementedError

    async def purge(self, destination: Destination) -> int:
        """Remove all messages not in flight; how many."""
        raise NotImplementedError

    async def create(self, destination: Destination) -> None:
        """Make the queue or topic exist."""
        raise NotImplementedError

    async def delete(self, destination: Destination) -> int:
        """Remove the queue or topic with all it holds; how many messages. Refused while it has consumers."""
        raise NotImplementedError

    # -- definitions

    async def definitions(self, version: int | None = None) -> Definitions:
        """The definitions in force, or as they stood at `version`."""
        raise NotImplementedError

    async def define(self, definitions: Definitions, author: str, comment: str = "") -> Definitions:
        """Put these in force at once on all nodes; returns them with their new version.

        `definitions.version` must be the version they were derived from, else DefinitionConflict. Raises
        DefinitionRefused when they cannot work (selector, loop, duplicate name), naming the definition and the rule.
        """
        raise NotImplementedError

    async def history(self, limit: int = 50) -> list[dict]:
        """Versions, newest first: version, author, comment, time_ms."""
        raise NotImplementedError
