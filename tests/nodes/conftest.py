"""Fixtures: brokers of several nodes on one store, which tests crash, freeze, stop and restart.

Most nodes run in threads of the test's process, which costs a tenth of a process of their own; see `processes.py` for
those that are killed for real.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from brokerapp.admin import BrokerAdmin
from brokerapp.config import default_config
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.runtime.bootstrap import authenticator, node_config
from brokerapp.runtime.node import Node
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.broker_store import BrokerStore
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import PATIENCE

#: Milliseconds without a beat after which a node is dead: short, but a busy machine may keep one from beating.
TIMEOUT_MS = 2_500

_numbers = itertools.count(1)


class OneNode(RunningNode):
    """One node of several."""

    def __init__(self, broker: str, name: str, redis_url: str, **told: Any) -> None:
        self._node_name = name
        super().__init__(replace(default_config(broker, 0), **told), redis_url)

    async def _start(self) -> Node:
        wanted = node_config(self._config, self.redis_url)
        named = replace(wanted, node=self._node_name, node_timeout_ms=TIMEOUT_MS)
        node = Node(named, authenticator(self._config.authentication))
        await node.start()
        return node

    def client(self, **options) -> StompClient:
        """A client of this node."""
        return StompClient(self.port, **options)

    def crash(self) -> None:
        """End as a process does that is killed: connections break, nothing more is said or written."""

        async def crash() -> None:
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
            for client in self.node.broker.clients.values():
                client.sink.abort()
            self.node._parts.listeners.close()
            self.node.membership._links.close()

        self.do(crash)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def stall(self) -> Callable[[], None]:
        """Stand still from now on: nothing is read, written or noticed until the answer is called."""
        stands, goes_on = threading.Event(), threading.Event()

        def stand() -> None:
            stands.set()
            goes_on.wait(PATIENCE)

        self._loop.call_soon_threadsafe(stand)
        assert stands.wait(PATIENCE)
        return goes_on.set


class SeveralNodes:
    """The nodes of one broker, whose configuration says this."""

    def __init__(self, redis_url: str, **told: Any) -> None:
        self.name, self.redis_url, self._told = f"several-{uuid4().hex[:8]}", redis_url, told  # no other one's
        self.nodes: dict[str, OneNode] = {}

    def __getitem__(self, name: str) -> OneNode:
        return self.nodes[name]

    def start(self, *names: str) -> None:
        """Run these nodes until they take clients."""
        for name in names:
            self.nodes[name] = OneNode(self.name, name, self.redis_url, **self._told)

    def stop(self, name: str) -> None:
        """Stop a node cleanly."""
        self.nodes.pop(name).stop()

    def crash(self, name: str) -> None:
        """End a node without a word."""
        self.nodes.pop(name).crash()

    def ask(self, question: Callable):
        """The answer to a question to the store."""

        async def once():
            store = BrokerStore(self.redis_url, self.name)
            try:
                return await question(store)
            finally:
                await store.close()

        return asyncio.run(once())

    def admin(self, question: Callable):
        """The same of the operators' door."""

        async def once():
            admin = BrokerAdmin(self.redis_url, self.name)
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(once())

    def members(self) -> set[str]:
        """The names of those that are."""
        return set(self.ask(lambda store: store.nodes.members())[1])

    def queue_at(self, node: str, prefix: str) -> str:
        """A queue that is at home there now: its name begins so, or has a number in place of `{}`."""
        epoch, found = self.ask(lambda store: store.nodes.members())
        members = NodeMembers(epoch, [NodeMember.from_record(*each) for each in found.items()], "")
        session = found[node]["session"]
        pattern = prefix if "{}" in prefix else f"{prefix}.{{}}"
        names = (pattern.format(number) for number in itertools.count())
        return next(each for each in names if members.owner_of(str(Destination.queue(each))) == session)

    def depth(self, queue: str) -> int:
        """Messages that the store holds of a queue."""
        log = str(Destination.queue(queue))
        return self.ask(lambda store: store.logs.depths([log]))[log]

    def end(self) -> None:
        """Stop all."""
        for name in list(self.nodes):
            self.stop(name)


@contextmanager
def several_nodes(redis_url: str, *names: str, **told: Any) -> Iterator[SeveralNodes]:
    """A broker of these nodes, whose configuration says this."""
    several = SeveralNodes(redis_url, **told)
    try:
        several.start(*names)
        yield several
    finally:
        several.end()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory) -> Iterator[str]:
    """A store for all brokers of the run."""
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running.url


@pytest.fixture(scope="module")
def broker(redis_url) -> Iterator[SeveralNodes]:
    """A broker of two nodes, `a` and `b`."""
    with several_nodes(redis_url, "a", "b") as several:
        yield several


@pytest.fixture
def name(request) -> str:
    """A name for destinations of this test alone."""
    return f"{request.node.originalname}.{next(_numbers)}".removeprefix("test_")


@pytest.fixture
def client(broker) -> Iterator[Callable[..., StompClient]]:
    """Makes clients of nodes; they leave at the end."""
    clients: list[StompClient] = []

    def make(node: str, **options) -> StompClient:
        clients.append(broker[node].client(**options))
        return clients[-1]

    yield make
    for each in clients:
        if each.connection.is_connected():
            each.connection.disconnect()
