"""Brokers of several nodes: processes on one store, which tests kill, stop and start again."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokerapp.admin import BrokerAdmin
from brokerapp.destination import Destination
from brokerapp.nodes.members import Member, Members
from brokerapp.store.embedded import EmbeddedStore
from brokerapp.store.redis import RedisStore
from tests.faults.processes import PROJECT, free_port
from tests.protocol.clients import StompClient
from tests.protocol.running_node import until

#: Seconds without a beat after which a node is dead: short, but a busy machine may keep one from beating for a while.
TIMEOUT = 2.0
PATIENCE = 60.0

CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{broker}">
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
_numbers = itertools.count(1)


class NodeProcess:
    """One node, and its runs one after the other."""

    def __init__(self, folder: Path, broker: str, name: str, redis_url: str) -> None:
        self.name, self.broker, self.redis_url = name, broker, redis_url
        self.port = free_port()
        self._folder = folder / name
        self._folder.mkdir()
        (self._folder / "activemq.xml").write_text(CONFIG.format(broker=broker, port=self.port))
        self.process: subprocess.Popen[str] | None = None
        self.said: list[str] = []

    def begin(self) -> None:
        """Run it, without waiting."""
        command = [
            sys.executable, "manage.py", "runbroker", "--config", self._folder / "activemq.xml", "--data",
            self._folder / "data", "--redis", self.redis_url, "--node", self.name, "--node-timeout", str(TIMEOUT),
        ]  # fmt: skip
        self.process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True).start()

    def _listen(self, stream) -> None:
        for line in stream:
            self.said.append(line.rstrip())
            sys.stderr.write(f"{self.name}: {line}")

    def wait(self) -> None:
        """Until it takes clients."""
        line = self.process.stdout.readline().strip()
        assert line == "ready", f"{self.name} said {line!r} and {self.said}"

    def start(self) -> None:
        """Run it until it takes clients."""
        self.begin()
        self.wait()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def pause(self) -> None:
        """It stands still."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on, as if nothing had been."""
        os.kill(self.process.pid, signal.SIGCONT)

    def terminate(self) -> int:
        """SIGTERM; its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        """Leave nothing behind."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if self.process is not None:
            self.process.stdout.close()

    def client(self, **options) -> StompClient:
        """A client of this node."""
        return StompClient(self.port, **options)


class SeveralNodes:
    """The nodes of one broker."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.name, self.redis_url, self._folder = f"several-{next(_numbers)}", redis_url, folder
        self.nodes: dict[str, NodeProcess] = {}

    def __getitem__(self, name: str) -> NodeProcess:
        if name not in self.nodes:
            self.nodes[name] = NodeProcess(self._folder, self.name, name, self.redis_url)
        return self.nodes[name]

    def start(self, *names: str) -> None:
        """Run these nodes until they take clients and are members."""
        for name in names:
            self[name].begin()
        for name in names:
            self[name].wait()

    def ask(self, question: Callable):
        """The answer to a question to the store."""

        async def once():
            store = RedisStore(self.redis_url, self.name)
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
        return set(self.ask(lambda store: store.members())[1])

    def queue_at(self, node: str, prefix: str) -> str:
        """A queue that is at home there now."""
        epoch, found = self.ask(lambda store: store.members())
        members = Members(epoch, [Member.from_record(*each) for each in found.items()], "")
        session = found[node]["session"]
        names = (f"{prefix}.{number}" for number in itertools.count())
        return next(each for each in names if members.home(str(Destination.queue(each))) == session)

    def depth(self, queue: str) -> int:
        """Messages that the store holds of a queue."""
        log = str(Destination.queue(queue))
        return self.ask(lambda store: store.depths([log]))[log]

    def end(self) -> None:
        """Leave nothing behind."""
        for each in self.nodes.values():
            each.end()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory) -> Iterator[str]:
    """A store for all brokers of the run."""
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running.url


@pytest.fixture(scope="module")
def broker(tmp_path_factory, redis_url) -> Iterator[SeveralNodes]:
    """A broker of two nodes, `a` and `b`."""
    several = SeveralNodes(tmp_path_factory.mktemp("nodes"), redis_url)
    try:
        several.start("a", "b")
        yield several
    finally:
        several.end()


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


__all__ = ["SeveralNodes", "until"]
