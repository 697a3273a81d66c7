"""Run three brokers of two nodes each as processes joined by bridges, and inject faults."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.record import SERVING
from tests.chaos.node_hooks import DUMP_SIGNAL, LISTENING, install_hooks
from tests.chaos.plan import Fault, FaultKind, Topology
from tests.chaos.timeouts import describe_load, scaled_timeout
from tests.interop.proxy import Proxy
from tests.ports import KeptPort
from tests.runbroker import Run
from tests.waiting import wait_until

#: Seconds in which a node must accept clients, and between two checks.
START_SECONDS, POLL_SECONDS = 60.0, 0.1
#: Seconds without a heartbeat after which a node counts as dead: short, yet a busy machine may delay heartbeats.
NODE_TIMEOUT = 2.0
#: Brokers with their nodes, and which of them has a duplex bridge to which.
BROKERS: Mapping[str, tuple[str, ...]] = {"a": ("a1", "a2"), "b": ("b1", "b2"), "c": ("c1", "c2")}
BRIDGES: Mapping[str, tuple[str, str]] = {"a-b": ("a", "b"), "b-c": ("b", "c")}
TOPOLOGY = Topology(BROKERS, tuple(BRIDGES), NODE_TIMEOUT)

CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{broker}">
  <networkConnectors>{connectors}</networkConnectors>
  <transportConnectors><transportConnector name="clients" uri="auto://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
#: A message may cross both bridges.
CONNECTOR = (
    '<networkConnector name="{name}" uri="masterslave:({addresses})?initialReconnectDelay=100'
    '&amp;useExponentialBackOff=false" duplex="true" networkTTL="2" decreaseNetworkConsumerPriority="false"/>'
)


class NodeProcess:
    """One node of a broker, and the processes that run it, one after the other."""

    def __init__(self, folder: Path, name: str, broker: str, port: int, connectors: str) -> None:
        self.name, self.port = name, port
        self.link = Proxy(0)
        self._folder = folder
        self.config, self.log = folder / f"{name}.xml", folder / f"{name}.log"
        self.config.write_text(CONFIG.format(broker=broker, port=port, connectors=connectors))
        self._run: Run | None = None
        self._ready = threading.Event()
        self._lock = threading.RLock()  # held by whoever starts or ends it
        self._is_wanted = False  # to run

    def launch(self, redis_url: str) -> None:
        """Start its process; `wait_until_ready` waits for it."""
        with self._lock:
            self._ready.clear()
            self._run = Run(
                "--config", self.config, "--data", self._folder / self.name, "--redis", redis_url,
                "--node", self.name, "--node-timeout", str(NODE_TIMEOUT), "--no-trace",
                log=self.log, first=partial(install_hooks, self.link.port), told=self._on_output_line,
            )  # fmt: skip
            self._is_wanted = True

    def restart_if_ended(self, redis_url: str) -> str | None:
        """Start it again if it has ended by itself, and return the end of its log if so."""
        with self._lock:
            if not self._is_wanted or self._run.is_alive:
                return None
            last_output = self._last_output()
            self.launch(redis_url)
            return last_output

    def _on_output_line(self, line: str) -> None:
        word, _, port = line.partition(" ")
        if word == LISTENING:
            self.link.target = int(port)
        elif word == "ready":
            self._ready.set()

    def wait_until_ready(self, *, is_revived: bool) -> None:
        """Wait until it accepts clients; fail at once when it ends, unless `restart_if_ended` is called meanwhile."""
        began = time.monotonic()
        while not self._ready.wait(POLL_SECONDS):
            if not is_revived and not self._run.is_alive:
                raise AssertionError(f"{self.name} ended as it started:\n{self._last_output()}")
            if (waited := time.monotonic() - began) > scaled_timeout(START_SECONDS):
                raise AssertionError(
                    f"{self.name} does not start within {waited:.0f} s; {describe_load()}:\n{self.dump_tasks()}"
                )

    def _last_output(self) -> str:
        return "\n".join(self._run.errors().splitlines()[-5:])

    def dump_tasks(self) -> str:
        """Return what its tasks wait for, after the end of its log."""
        before = len(self._run.errors())
        self.signal(DUMP_SIGNAL)
        time.sleep(1)
        return self._run.errors()[max(0, before - 500) :]

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        self._run.signal(number)

    def kill(self) -> None:
        """Kill its process with SIGKILL."""
        with self._lock:
            self._is_wanted = False
            self._run.kill()

    def stop(self) -> None:
        """Stop it with SIGTERM and wait for its end."""
        with self._lock:
            self._is_wanted = False
            assert self._run.stop() is not None, f"{self.name} does not stop:\n{self.dump_tasks()}"

    def end(self) -> None:
        """End all processes and proxies."""
        if self._run is not None:
            self.kill()
        self.link.close()


class Environment:
    """All brokers with their nodes, bridges and stores, as many each as `shards` says. `begin` and `end` block."""

    def __init__(self, folder: Path, shards: int = 1) -> None:
        self.topology = replace(TOPOLOGY, shards=shards)
        self._ports = {node: KeptPort() for nodes in BROKERS.values() for node in nodes}
        self.ports = {node: port.number for node, port in self._ports.items()}
        self.stores = {
            store: EmbeddedStore(folder / f"{store.replace('/', '-')}.store")
            for broker in BROKERS
            for store in self.topology.stores(broker)
        }
        #: Of each bridge the proxies through which it reaches the nodes of the other broker.
        self.bridges = {
            name: [Proxy(self.ports[node]) for node in BROKERS[there]] for name, (_, there) in BRIDGES.items()
        }
        self.nodes = {
            node: NodeProcess(folder, node, broker, self.ports[node], self._connectors(broker))
            for broker, nodes in BROKERS.items()
            for node in nodes
        }
        self.restarts: list[str] = []  #: of nodes that ended by themselves: the end of their logs

    def _connectors(self, broker: str) -> str:
        return "".join(
            CONNECTOR.format(
                name=name, addresses=",".join(f"tcp://127.0.0.1:{each.port}" for each in self.bridges[name])
            )
            for name, (here, _) in BRIDGES.items()
            if here == broker
        )

    def broker_of(self, node: str) -> str:
        """Return the broker of a node."""
        return TOPOLOGY.domain(node)

    def _launch(self, node: str) -> None:
        self.nodes[node].launch(self.stores[self.broker_of(node)].url)

    async def _add_shards(self, broker: str) -> None:
        first, *others = self.topology.stores(broker)
        store = BrokerStore(self.stores[first].url, broker)
        await store.open()
        for each in others:
            await store.shard_record.add(self.stores[each].url, SERVING)
        await store.close()

    def start(self) -> None:
        """Start all stores and nodes, and wait until they are ready."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda each: each.start(), self.stores.values()))
        for broker in BROKERS:
            asyncio.run(self._add_shards(broker))
        for node in self.nodes:
            self._launch(node)
        for each in self.nodes.values():
            each.wait_until_ready(is_revived=False)

    def close(self) -> None:
        """End all processes and proxies."""
        for each in self.nodes.values():
            each.end()
        for each in self.stores.values():
            each.stop()
        for each in (proxy for proxies in self.bridges.values() for proxy in proxies):
            each.close()
        for each in self._ports.values():
            each.close()

    def addresses(self, broker: str) -> list[int]:
        """Return the ports of a broker's nodes."""
        return [self.ports[node] for node in BROKERS[broker]]

    # -- faults

    def begin(self, fault: Fault) -> None:
        """Cause the fault."""
        match fault.kind:
            case FaultKind.KILL:
                self.nodes[fault.target].kill()
            case FaultKind.STOP:
                self.nodes[fault.target].stop()
            case FaultKind.PAUSE | FaultKind.PAUSE_PAST_TIMEOUT:
                self.nodes[fault.target].signal(signal.SIGSTOP)
            case FaultKind.KILL_STORE:
                self._signal_store(fault.target, signal.SIGKILL)
                wait_until(lambda: not self.stores[fault.target].is_alive, "it is dead")  # else none starts it again
            case FaultKind.FREEZE_STORE:
                self._signal_store(fault.target, signal.SIGSTOP)
            case FaultKind.LOSE_BRIDGE_ANSWERS | FaultKind.CUT_LINK | FaultKind.CUT_BRIDGE:
                self._disturb(fault)

    def end(self, fault: Fault) -> None:
        """Repair what the fault broke."""
        match fault.kind:
            case FaultKind.KILL | FaultKind.STOP:
                self._launch(fault.target)
            case FaultKind.PAUSE | FaultKind.PAUSE_PAST_TIMEOUT:
                self.nodes[fault.target].signal(signal.SIGCONT)
            case FaultKind.KILL_STORE:
                self.stores[fault.target].restart_if_dead()
            case FaultKind.FREEZE_STORE:
                self._signal_store(fault.target, signal.SIGCONT)
            case FaultKind.LOSE_BRIDGE_ANSWERS:
                for each in self._proxies(fault):
                    each.cut()
            case FaultKind.CUT_LINK | FaultKind.CUT_BRIDGE:
                for each in self._proxies(fault):
                    each.refusing = False

    def _disturb(self, fault: Fault) -> None:
        for each in self._proxies(fault):
            if fault.kind is FaultKind.LOSE_BRIDGE_ANSWERS:
                each.answers_are_lost = True
            else:
                each.refusing = True
                each.cut()

    def _signal_store(self, name: str, number: signal.Signals) -> None:
        if (store := self.stores[name].pid) is not None:  # else it is not back from the last time it was killed
            os.kill(store, number)

    def _proxies(self, fault: Fault) -> list[Proxy]:
        if fault.kind is FaultKind.CUT_LINK:
            return [self.nodes[node].link for node in BROKERS[fault.target]]
        return self.bridges[fault.target]

    def revive(self) -> None:
        """Start nodes again that ended by themselves, as a supervisor does."""
        for name, node in self.nodes.items():
            if (last_output := node.restart_if_ended(self.stores[self.broker_of(name)].url)) is not None:
                self.restarts.append(f"{name}: {last_output}")

    def ready(self) -> None:
        """Wait until all nodes accept clients, while `restart_ended_nodes` is called repeatedly."""
        for each in self.nodes.values():
            each.wait_until_ready(is_revived=True)


@contextmanager
def running(folder: Path, shards: int = 1) -> Iterator[Environment]:
    """Run an environment for the time of the context."""
    environment = Environment(folder, shards)
    try:
        environment.start()
        yield environment
    finally:
        environment.close()
