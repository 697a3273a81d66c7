"""Run a broker node in a thread of the test process, on a free port."""

from __future__ import annotations

import asyncio
import glob
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import uvloop

from brokerapp.admin import BrokerAdmin
from brokerapp.config import BrokerConfig
from brokerapp.config.reader import parse_config
from brokerapp.model.definitions import Definitions, VirtualDestination
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage, DestinationStats
from brokerapp.runtime.bootstrap import authenticator, node_config
from brokerapp.runtime.node import Node
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.embedded import EmbeddedStore
from tests.waiting import PATIENCE, wait_until

BROWSE_LIMIT = 10_000

T = TypeVar("T")


class RunningNode:
    """Runs from construction until `stop`. What it is asked is done on its own event loop."""

    def __init__(self, config: BrokerConfig, redis_url: str) -> None:
        self._config, self.redis_url, self.name = config, redis_url, config.name
        self._imposes = False
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"node {config.name}", daemon=True)
        self._thread.start()
        self.node: Node = self.do(self._start)
        self.port = int(self.node.addresses[0].rpartition(":")[2])

    @property
    def ports(self) -> list[int]:
        """The ports of its connectors, in their order."""
        return [int(each.rpartition(":")[2]) for each in self.node.addresses]

    async def _start(self) -> Node:
        wanted = node_config(self._config, self.redis_url, alone=True, impose=self._imposes)
        node = Node(wanted, authenticator(self._config.authentication))
        await node.start()
        return node

    def stop(self) -> None:
        """End it cleanly."""
        self.do(self.node.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def restart(self, **changed: object) -> None:
        """End it cleanly and begin again, on another port, perhaps with a changed file."""
        self._config, self._imposes = replace(self._config, **changed), bool(changed)
        self.do(self.node.stop)
        self.node = self.do(self._start)
        self.port = int(self.node.addresses[0].rpartition(":")[2])

    def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run this on the node's loop."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE)

    def look(self, question: Callable[[], T]) -> T:
        """The answer to a question about the node's inner state, asked on its loop."""

        async def ask() -> T:
            return question()

        return self.do(ask)

    # -- as operators see it

    def ask(self, question: Callable[[BrokerAdmin], Awaitable[T]]) -> T:
        """Ask through the operators' door, from outside the node."""

        async def once() -> T:
            admin = BrokerAdmin(self.redis_url, self.name)
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(once())

    def define(self, *virtual_destinations: VirtualDestination) -> None:
        """Put these virtual destinations in force and wait until the node routes by them."""

        async def change(admin: BrokerAdmin) -> Definitions:
            current = await admin.definitions()
            return await admin.define(replace(current, virtual_destinations=virtual_destinations), "test")

        self.wait_for_definitions(self.ask(change).version)

    def wait_for_definitions(self, version: int) -> None:
        """Wait until the node routes by them: it is told of them, and fetches them, a moment after they are stored."""
        wait_until(
            lambda: self.look(lambda: self.node.broker.routing.table.definitions.version) >= version, "the new routing"
        )

    def write_acks(self) -> None:
        """Let the store know what was acknowledged until now; it is told a moment later otherwise."""
        self.do(lambda: self.node.broker.commits.barrier())

    def browse(self, queue: str) -> list[BrowsedMessage]:
        """What the store holds of a queue."""
        self.write_acks()
        return self.ask(lambda admin: admin.browse(Destination.queue(queue), limit=BROWSE_LIMIT)).messages

    def bodies(self, queue: str) -> list[str]:
        """The bodies of what the store holds of a queue."""
        return [message.body.decode() for message in self.browse(queue)]

    def stored_payloads(self) -> int:
        """Messages the store keeps once for several queues."""

        async def count() -> int:
            store = RedisStore(self.redis_url, self.name)
            try:
                return len(await store.client.execute("KEYS", glob.escape(store.keys.payload_prefix) + "*"))
            finally:
                await store.close()

        self.write_acks()
        return asyncio.run(count())

    def numbers(self, destination: Destination) -> DestinationStats:
        """The numbers of a destination, as they are now."""

        def measured() -> DestinationStats:
            numbers = self.node.broker.counters.of(destination)
            self.node.broker.gauges.update(numbers)
            return replace(numbers)

        return self.look(measured)

    def depth(self, queue: str) -> int:
        """Messages in a queue, in flight included."""
        return self.numbers(Destination.queue(queue)).QueueSize


@contextmanager
def node_of(xml: str, store: EmbeddedStore) -> Iterator[RunningNode]:
    """A node of the broker that this configuration file describes."""
    node = RunningNode(parse_config(xml, {}), store.url)
    yield node
    node.stop()


def named(messages: Iterable) -> list[str]:
    """The bodies of messages."""
    return [message.body for message in messages]
