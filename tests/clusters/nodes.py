"""Run a cluster of two brokers of two nodes each as processes, which tests kill and start again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.store.server.embedded import EmbeddedStore
from tests.clusters.members import AUTO_DESTROY_MS, CONFIG, RETRY_MS, WINDOW_MS
from tests.faults.nodes_on_store import connected
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run
from tests.waiting import wait_until

#: Seconds until all nodes are linked, or clients get in again, on a busy machine.
PATIENCE = 60.0
#: Seconds without a heartbeat after which a node is dead: short, but a busy machine may keep one from sending it.
NODE_TIMEOUT = 2.5
#: Brokers with their nodes; W is the master.
NODES = ("W/a", "W/b", "X/a", "X/b")

T = TypeVar("T")


class NodeProcess:
    """One node of one of the brokers."""

    def __init__(self, folder: Path, name: str, port: int, members: str, redis: str) -> None:
        self.name, self.port, (broker, node) = name, port, name.split("/")
        folder = folder / f"{broker}-{node}"
        folder.mkdir()
        config = folder / "activemq.xml"
        config.write_text(
            CONFIG.format(
                name=broker, port=port, members=members, master="W", retry=RETRY_MS, auto=AUTO_DESTROY_MS,
                window=WINDOW_MS, more="",
            )
        )  # fmt: skip
        self._arguments = (
            "--config", config, "--data", folder / "data", "--redis", redis, "--node", node, "--no-trace",
            "--node-timeout", str(NODE_TIMEOUT),
        )  # fmt: skip
        self.log = folder / "log"
        self._run: Run | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._run is not None and self._run.is_alive

    def launch(self) -> None:
        """Run it; `ready` waits for it."""
        self._run = Run(*self._arguments, log=self.log)

    def ready(self) -> None:
        """Wait until it says that it is ready."""
        self._run.ready()

    def kill(self) -> None:
        """kill -9."""
        self._run.kill()

    def freeze(self) -> None:
        """Let it stand still, longer than others wait for it."""
        os.kill(self._run.pid, signal.SIGSTOP)
        time.sleep(2 * NODE_TIMEOUT)
        os.kill(self._run.pid, signal.SIGCONT)


class ClusterOfNodes:
    """Brokers W and X on a store each, each with the nodes a and b."""

    def __init__(self, folder: Path) -> None:
        self._stores = {name: EmbeddedStore(folder / f"store-{name}") for name in "WX"}
        ports = {name: free_port() for name in NODES}
        members = ",".join(f"{name}=tcp://127.0.0.1:{port}" for name, port in ports.items())
        self._urls = {name: store.__enter__().url for name, store in self._stores.items()}
        self.nodes = {
            name: NodeProcess(folder, name, port, members, self._urls[name[0]]) for name, port in ports.items()
        }

    def __getitem__(self, name: str) -> NodeProcess:
        return self.nodes[name]

    def __iter__(self) -> Iterator[NodeProcess]:
        return iter(self.nodes.values())

    def revive(self) -> None:
        """Run those that are not there, and wait until all are linked to all."""
        dead = [each for each in self if not each.is_running]
        for each in dead:
            each.launch()
        for each in dead:
            each.ready()
        self.settle()

    def settle(self) -> None:
        """Wait until each running node lets clients in, and has links to and from each other one."""
        running = {each.name for each in self if each.is_running}

        def is_linked() -> bool:
            for name in running:
                status = self.statuses(name[0]).get(name[2], {}).get("cluster")
                if not status or status["suspended"]:
                    return False
                others = [each for each in status["members"] if each["name"] in running - {name}]
                if len(others) != len(running) - 1 or not all(
                    each["state"] == "up" and each["linked_back"] for each in others
                ):
                    return False
            return True

        wait_until(is_linked, "links between all nodes", PATIENCE)

    def end(self) -> None:
        """Leave nothing behind."""
        for each in self:
            if each.is_running:
                each.kill()
        for store in self._stores.values():
            store.__exit__(None, None, None)

    def client(self, name: str, **connect: str) -> StompClient:
        """A client of one of the nodes, once that lets clients in."""
        return connected(self[name].port, **connect)

    # -- as operators see it

    def ask(self, broker: str, question: Callable[[BrokerAdmin], Awaitable[T]]) -> T:
        """Ask one of the brokers through the operators' door."""

        async def once() -> T:
            admin = BrokerAdmin(self._urls[broker], broker)
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(once())

    def statuses(self, broker: str) -> dict:
        """What the nodes of a broker tell of themselves, by their names."""
        return self.ask(broker, lambda admin: admin._store.nodes.statuses())

    def wait_for_subscriptions(self, count: int) -> None:
        """Wait until so many durable subscriptions are known to both brokers."""
        wait_until(
            lambda: all(self._subscriptions(broker) == count for broker in self._urls),
            "durable subscriptions at both brokers",
            PATIENCE,
        )  # fmt: skip

    def wait_for_consumers(self, name: str, text: str) -> None:
        """Wait until a node has consumers of a destination for clients of the other broker."""
        wanted = Destination.parse(text)

        def is_served() -> bool:
            peers = self.ask(name[0], lambda admin: admin.peers.all())
            links = [each for each in peers if each.connection["client_id"].startswith("cluster:")]
            served = [
                each.connection["client_id"].removeprefix("cluster:")[0]
                for each in links
                for one in each.consumers
                if text in one["destinations"] or wanted in map(Destination.parse, one["destinations"])
            ]
            return any(broker != name[0] for broker in served)

        wait_until(is_served, f"consumers of {text} at {name}", PATIENCE)

    def leads(self, name: str) -> bool:
        """Whether a node joined its broker before the others: it keeps the record."""
        members = self.ask(name[0], lambda admin: admin._store.nodes.members())[1]
        return min(members, key=lambda each: members[each]["joined"]) == name[2]

    def change(self, broker: str, question: Callable[[BrokerAdmin], Awaitable[T]]) -> T:
        """Ask one of the brokers for a change, until a node of the master records it."""
        done: list[T] = []

        def ask_once() -> bool:
            try:
                done.append(self.ask(broker, question))
            except RequestRefused as error:
                if not any(why in str(error) for why in ("cannot be reached", "broke before it answered")):
                    raise
            return bool(done)

        wait_until(ask_once, "the change is recorded", PATIENCE)
        return done[0]

    def _subscriptions(self, broker: str) -> int:
        known = self.ask(broker, lambda admin: admin._store.logs.all_attributes())
        return sum(Destination.parse(each).kind is DestinationKind.SUBSCRIPTION for each in known)

    def has(self, broker: str, text: str) -> bool:
        """Whether the store of a broker knows a destination."""
        known = self.ask(broker, lambda admin: admin._store.logs.all_attributes())
        return str(Destination.parse(text)) in known
