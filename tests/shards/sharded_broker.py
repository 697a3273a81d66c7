"""Run a broker of several shards: nodes as processes, on Valkey servers that tests kill and freeze."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from brokerapp.admin import BrokerAdmin
from brokerapp.engine.sharding.families import Families
from brokerapp.engine.sharding.placement import place
from brokerapp.errors import DestinationNotFound
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.record import SERVING
from tests.faults.servers import Server
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run
from tests.waiting import wait_until

#: Seconds without a heartbeat after which a node counts as dead.
NODE_TIMEOUT = 2.5
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="sharded"
  schedulerSupport="true">
  {more}
  <transportConnectors><transportConnector name="clients" uri="auto://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
T = TypeVar("T")


class ShardedNode:
    """One node, and the processes that run it, one after the other."""

    def __init__(self, folder: Path, name: str, url: str, more: str, *options: str) -> None:
        self.name, self.port, self._log = name, free_port(), folder / f"{name}.log"
        config = folder / f"{name}.xml"
        config.write_text(CONFIG.format(port=self.port, more=more))
        self._arguments = (
            "--config", config, "--data", folder / name, "--redis", url, "--node", name,
            "--node-timeout", str(NODE_TIMEOUT), "--no-trace", *options,
        )  # fmt: skip
        self.run: Run | None = None

    def launch(self) -> None:
        """Start its process."""
        self.run = Run(*self._arguments, log=self._log)

    def start(self) -> None:
        """Start its process and wait until it accepts clients."""
        self.launch()
        self.run.ready()

    def restart(self) -> None:
        """Stop it cleanly, and start it again."""
        assert self.run.stop() == 0, self.run.errors()
        self.start()

    def kill(self) -> None:
        """kill -9."""
        self.run.kill()

    def client(self, **headers: str) -> StompClient:
        """Connect a client."""
        return StompClient(self.port, **headers)


class ShardedBroker:
    """The shards of a broker and its nodes."""

    name = "sharded"

    def __init__(self, folder: Path, shards: int, nodes: str, more: str, *options: str) -> None:
        self.shards = [Server(folder / f"shard-{number}") for number in range(shards)]
        self.url = self._url(0)
        self.nodes = {name: ShardedNode(folder, name, self.url, more, *options) for name in nodes}

    def _url(self, shard: int) -> str:
        return f"redis://127.0.0.1:{self.shards[shard].port}"

    def __getitem__(self, node: str) -> ShardedNode:
        return self.nodes[node]

    def start(self) -> None:
        """Let the first shard know the others, and start all nodes."""

        async def add(store: BrokerStore) -> None:
            for number in range(1, len(self.shards)):
                assert await store.shard_record.add(self._url(number), SERVING) == number

        self.ask(add)
        for each in self.nodes.values():
            each.launch()
        for each in self.nodes.values():
            each.run.ready()

    def end(self) -> None:
        """End all processes."""
        for node in self.nodes.values():
            if node.run is not None:
                node.kill()
        for shard in self.shards:
            shard.end()

    def unexpected_errors(self) -> list[str]:
        """Return what the nodes logged of faults of their own."""
        lines = [line for node in self.nodes.values() for line in node.run.errors().splitlines()]
        return [
            line for line in lines if "Traceback" in line or "internal error" in line or "could not be done" in line
        ]

    # -- what it holds

    def ask(self, question: Callable[[BrokerStore], Awaitable[T]]) -> T:
        """Ask its store."""

        async def once() -> T:
            store = BrokerStore(self.url, self.name)
            try:
                await store.open()
                return await question(store)
            finally:
                await store.close()

        return asyncio.run(once())

    def admin(self, question: Callable[[BrokerAdmin], Awaitable[T]]) -> T:
        """Ask as an operator."""

        async def once() -> T:
            admin = BrokerAdmin(self.url, self.name)
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(once())

    def depths(self, *logs: str) -> dict[str, int]:
        """Return how many messages the shards hold of these logs, or of all."""

        async def depths(store: BrokerStore) -> dict[str, int]:
            return await store.logs.depths(list(logs) or list(await store.logs.all_attributes()))

        return self.ask(depths)

    def intents(self) -> list[str]:
        """Return the ids of writes to several shards that are not known to be done."""

        async def intents(store: BrokerStore) -> list[str]:
            found = [await IntentStore(each.client).read_all() for each in store.shards.stores.values()]
            return [id for each in found for id in each]

        return self.ask(intents)

    def shards_of(self, *queues: str) -> list[int]:
        """Return the shards in which queues are."""
        logs = [str(Destination.queue(each)) for each in queues]
        return self.ask(lambda store: store.shard_record.shards_of(logs))

    def members(self) -> set[str]:
        """Return the names of its live nodes."""
        return set(self.ask(lambda store: store.nodes.members())[1])

    def wait_until_quiet(self, *empty: str) -> None:
        """Wait until no write to several shards is under way and these logs are empty."""
        wait_until(lambda: not self.intents() and not any(self.depths(*empty).values() if empty else ()), "all is done")

    def content(self, queues: list[str]) -> dict[str, list[str]]:
        """Return the bodies in each of these queues as the store has them, in order."""

        async def read(store: BrokerStore) -> dict[str, list[str]]:
            found = {each: await store.entries.read(str(Destination.queue(each)), 0, 1_000_000) for each in queues}
            return {queue: [entry.message.body.decode() for entry in entries] for queue, entries in found.items()}

        return self.ask(read)

    def bodies(self, queue: str) -> list[str]:
        """Return the bodies that an operator finds in a queue, in order; none when there is no such queue."""
        try:
            page = self.admin(lambda admin: admin.browse(Destination.queue(queue), limit=10_000))
        except DestinationNotFound:
            return []
        return [each.body.decode() for each in page.messages]


def queue_in(shard: int, prefix: str, shards: int | Collection[int] = 3) -> str:
    """Return a queue that belongs in this shard of so many, or of these, whose name begins so."""
    families = Families(Definitions())
    serving = range(shards) if isinstance(shards, int) else shards
    names = (f"{prefix}.{number}" for number in itertools.count())
    return next(name for name in names if place(families.family_of(str(Destination.queue(name))), serving, {}) == shard)


@contextmanager
def sharded_broker(
    folder: Path, *options: str, shards: int = 3, nodes: str = "a", more: str = ""
) -> Iterator[ShardedBroker]:
    """Run a broker of so many shards with these nodes, whose configuration contains `more`."""
    broker = ShardedBroker(folder, shards, nodes, more, *options)
    try:
        broker.start()
        yield broker
        assert broker.unexpected_errors() == []
    finally:
        broker.end()
