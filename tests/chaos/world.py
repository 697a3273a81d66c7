"""Run three brokers of two nodes each as processes joined by bridges, and inject faults."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from brokerapp.store.server.embedded import EmbeddedStore
from tests.chaos.patience import crowd, scaled
from tests.chaos.plan import Fault, Kind, Shape
from tests.chaos.serving import ASK, LISTENS, prepare
from tests.interop.proxy import Proxy
from tests.ports import KeptPort
from tests.runbroker import Run
from tests.waiting import wait_until

#: Seconds in which a node takes clients, and between two looks whether it does.
PATIENCE, LOOK = 60.0, 0.1
#: Seconds without a beat after which a node is dead: short, but a busy machine may keep one from beating.
NODE_TIMEOUT = 2.0
#: Brokers with their nodes, and which of them has a duplex bridge to which.
BROKERS: Mapping[str, tuple[str, ...]] = {"a": ("a1", "a2"), "b": ("b1", "b2"), "c": ("c1", "c2")}
BRIDGES: Mapping[str, tuple[str, str]] = {"a-b": ("a", "b"), "b-c": ("b", "c")}
SHAPE = Shape(BROKERS, tuple(BRIDGES), NODE_TIMEOUT)

CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{broker}">
  <networkConnectors>{connectors}</networkConnectors>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
#: A message may cross both bridges.
CONNECTOR = (
    '<networkConnector name="{name}" uri="masterslave:({addresses})?initialReconnectDelay=100'
    '&amp;useExponentialBackOff=false" duplex="true" networkTTL="2" decreaseNetworkConsumerPriority="false"/>'
)


class NodeProcess:
    """One node: its place in a broker, and the processes that are it, one after the other."""

    def __init__(self, folder: Path, name: str, broker: str, port: int, connectors: str) -> None:
        self.name, self.port = name, port
        self.link = Proxy(0)
        self._folder = folder
        self.config, self.log = folder / f"{name}.xml", folder / f"{name}.log"
        self.config.write_text(CONFIG.format(broker=broker, port=port, connectors=connectors))
        self._run: Run | None = None
        self._ready = threading.Event()
        self._changing = threading.RLock()  # held by whoever starts or ends it
        self._is_wanted = False  # to run

    def launch(self, redis_url: str) -> None:
        """Run it; `ready` waits for it."""
        with self._changing:
            self._ready.clear()
            self._run = Run(
                "--config", self.config, "--data", self._folder / self.name, "--redis", redis_url,
                "--node", self.name, "--node-timeout", str(NODE_TIMEOUT), "--no-trace",
                log=self.log, first=partial(prepare, self.link.port), told=self._heard,
            )  # fmt: skip
            self._is_wanted = True

    def revive(self, redis_url: str) -> str | None:
        """Run it again if it has ended by itself: its last words, if so."""
        with self._changing:
            if not self._is_wanted or self._run.is_alive:
                return None
            last_words = self._last_words()
            self.launch(redis_url)
            return last_words

    def _heard(self, line: str) -> None:
        word, _, port = line.partition(" ")
        if word == LISTENS:
            self.link.target = int(port)
        elif word == "ready":
            self._ready.set()

    def ready(self, *, is_revived: bool) -> None:
        """Wait until it takes clients; fail at once when it ends, unless somebody starts it again then."""
        began = time.monotonic()
        while not self._ready.wait(LOOK):
            if not is_revived and not self._run.is_alive:
                raise AssertionError(f"{self.name} ended as it started:\n{self._last_words()}")
            if (waited := time.monotonic() - began) > scaled(PATIENCE):
                raise AssertionError(
                    f"{self.name} does not start within {waited:.0f} s; {crowd()}:\n{self.what_waits()}"
                )

    def _last_words(self) -> str:
        return "\n".join(self._run.errors().splitlines()[-5:])

    def what_waits(self) -> str:
        """What its tasks wait for, behind what its log says already."""
        before = len(self._run.errors())
        self.signal(ASK)
        time.sleep(1)
        return self._run.errors()[max(0, before - 500) :]

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        self._run.signal(number)

    def kill(self) -> None:
        """kill -9."""
        with self._changing:
            self._is_wanted = False
            self._run.kill()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        with self._changing:
            self._is_wanted = False
            assert self._run.stop() is not None, f"{self.name} does not stop:\n{self.what_waits()}"

    def end(self) -> None:
        """Leave nothing behind."""
        if self._run is not None:
            self.kill()
        self.link.close()


class World:
    """All of it. Faults are begun and ended by `begin` and `end`, which block."""

    def __init__(self, folder: Path) -> None:
        self._ports = {node: KeptPort() for nodes in BROKERS.values() for node in nodes}
        self.ports = {node: port.number for node, port in self._ports.items()}
        self.stores = {broker: EmbeddedStore(folder / f"{broker}.store") for broker in BROKERS}
        #: Of each bridge the proxies through which it reaches the nodes of the other broker.
        self.bridges = {
            name: [Proxy(self.ports[node]) for node in BROKERS[there]] for name, (_, there) in BRIDGES.items()
        }
        self.nodes = {
            node: NodeProcess(folder, node, broker, self.ports[node], self._connectors(broker))
            for broker, nodes in BROKERS.items()
            for node in nodes
        }
        self.restarts: list[str] = []  #: of nodes that ended by themselves: their last words

    def _connectors(self, broker: str) -> str:
        return "".join(
            CONNECTOR.format(
                name=name, addresses=",".join(f"tcp://127.0.0.1:{each.port}" for each in self.bridges[name])
            )
            for name, (here, _) in BRIDGES.items()
            if here == broker
        )

    def broker_of(self, node: str) -> str:
        """Whose node it is."""
        return SHAPE.domain(node)

    def _launch(self, node: str) -> None:
        self.nodes[node].launch(self.stores[self.broker_of(node)].url)

    def start(self) -> None:
        """Run all."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda each: each.start(), self.stores.values()))
        for node in self.nodes:
            self._launch(node)
        for each in self.nodes.values():
            each.ready(is_revived=False)

    def close(self) -> None:
        """Leave nothing behind."""
        for each in self.nodes.values():
            each.end()
        for each in self.stores.values():
            each.stop()
        for each in (proxy for proxies in self.bridges.values() for proxy in proxies):
            each.close()
        for each in self._ports.values():
            each.close()

    def addresses(self, broker: str) -> list[int]:
        """The ports of a broker's nodes."""
        return [self.ports[node] for node in BROKERS[broker]]

    # -- what goes wrong

    def begin(self, fault: Fault) -> None:
        """From now on this is wrong."""
        match fault.kind:
            case Kind.KILL:
                self.nodes[fault.target].kill()
            case Kind.STOP:
                self.nodes[fault.target].stop()
            case Kind.STALL | Kind.FREEZE:
                self.nodes[fault.target].signal(signal.SIGSTOP)
            case Kind.KILL_STORE:
                if (store := self.stores[fault.target].pid) is not None:  # else it is not back from the last time
                    os.kill(store, signal.SIGKILL)
                    wait_until(
                        lambda: not self.stores[fault.target].is_alive, "the store is dead"
                    )  # else none starts it again
            case Kind.DEAFEN_BRIDGE:
                for each in self._proxies(fault):
                    each.answers_are_lost = True
            case Kind.CUT_LINK | Kind.CUT_BRIDGE:
                for each in self._proxies(fault):
                    each.refusing = True
                    each.cut()

    def end(self, fault: Fault) -> None:
        """It is mended."""
        match fault.kind:
            case Kind.KILL | Kind.STOP:
                self._launch(fault.target)
            case Kind.STALL | Kind.FREEZE:
                self.nodes[fault.target].signal(signal.SIGCONT)
            case Kind.KILL_STORE:
                self.stores[fault.target].restart_if_dead()
            case Kind.DEAFEN_BRIDGE:
                for each in self._proxies(fault):
                    each.cut()
            case Kind.CUT_LINK | Kind.CUT_BRIDGE:
                for each in self._proxies(fault):
                    each.refusing = False

    def _proxies(self, fault: Fault) -> list[Proxy]:
        if fault.kind is Kind.CUT_LINK:
            return [self.nodes[node].link for node in BROKERS[fault.target]]
        return self.bridges[fault.target]

    def revive(self) -> None:
        """Start again what ended by itself, as a supervisor does."""
        for name, node in self.nodes.items():
            if (last_words := node.revive(self.stores[self.broker_of(name)].url)) is not None:
                self.restarts.append(f"{name}: {last_words}")

    def ready(self) -> None:
        """Wait until all nodes take clients, while `revive` is called again and again."""
        for each in self.nodes.values():
            each.ready(is_revived=True)


@contextmanager
def running(folder: Path) -> Iterator[World]:
    """A world, as long as it is wanted."""
    world = World(folder)
    try:
        world.start()
        yield world
    finally:
        world.close()
