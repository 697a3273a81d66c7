"""`python -m benchmarks.replicas`: what a broker delivers when receipts wait for a replica of the store, and when not.

One node, a queue, a producer and a consumer; messages are those of the row `queue`. The store is a server of its own;
with a replica, both are on this machine and share its processors and its disk. So what a message costs in CPU is told
for each of them, too: where the replica has a machine of its own, that is what bounds the rate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import redis

from benchmarks.brokers.process import free_port
from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.report import table
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.rows import QUEUE_SCENARIO
from brokerapp.store.server.embedded import OPTIONS, binary_path

HEAD = ("replicas", "messages/s", "of that without", "CPU of the node", "of the primary", "of the replica")
MESSAGES, ROUNDS = 20_000, 3
#: Seconds for a server to answer, and to follow its primary.
PATIENCE = 15.0


class OnServers(Sluice):
    """One node on a store with so many replicas."""

    def __init__(self, url: str, replicas: int) -> None:
        self.options = ("--redis", url, "--replicas", str(replicas))


@contextmanager
def server(folder: Path, primary: int | None = None) -> Iterator[tuple[int, int]]:
    """A server that syncs each write to disk; its port and process id. It follows the primary on this port, if any."""
    port = free_port()
    folder.mkdir()
    options = {**OPTIONS, "port": str(port), "bind": "127.0.0.1", "dir": str(folder), "repl-diskless-sync-delay": "0"}
    del options["unixsocketperm"]
    if primary is not None:
        options["replicaof"] = f"127.0.0.1 {primary}"
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([binary_path(), *words], stdout=log, stderr=log)
    try:
        _wait_until_ready(port, primary is not None)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(port: int, follows: bool) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with redis.Redis(port=port) as client:
                if not follows or client.info("replication")["master_link_status"] == "up":
                    return
        except redis.RedisError:
            pass
        time.sleep(0.05)
    raise TimeoutError(f"the server on port {port} is not ready within {PATIENCE:g} s")


@dataclass(frozen=True, slots=True)
class Measured:
    """Messages a second, and the CPU that one costs the node and each server of the store, in microseconds."""

    rate: float
    node: float
    servers: tuple[float, ...]


def measure(replicas: int, messages: int) -> Measured:
    """Send and consume so many messages through a node whose store has so many replicas."""
    with tempfile.TemporaryDirectory(prefix="bench-replicas-") as place, ExitStack() as stack:
        folder = Path(place)
        primary = stack.enter_context(server(folder / "primary"))
        followers = [stack.enter_context(server(folder / f"replica-{n}", primary[0])) for n in range(replicas)]
        node = OnServers(f"redis://127.0.0.1:{primary[0]}/0", replicas)
        own = folder / "node"
        own.mkdir()
        try:
            address, traffic = node.start(QUEUE_SCENARIO, own), Traffic(QUEUE_SCENARIO)
            run(traffic, address, ActiveMQDialect(), QUEUE_SCENARIO.block * 10)
            processes = [psutil.Process(pid) for _, pid in (primary, *followers)]
            assert node.process is not None
            before = [node.process.usage().cpu_seconds, *map(_cpu_seconds, processes)]
            began = time.monotonic()
            run(traffic, address, ActiveMQDialect(), messages)
            seconds = time.monotonic() - began
            after = [node.process.usage().cpu_seconds, *map(_cpu_seconds, processes)]
        finally:
            node.stop()
    of_node, *of_servers = [(now - then) / messages * 1e6 for now, then in zip(after, before, strict=True)]
    return Measured(messages / seconds, of_node, tuple(of_servers))


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def main() -> int:
    """Print a table; medians of all rounds, which alternate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    found: dict[int, list[Measured]] = {0: [], 1: []}
    load = os.getloadavg()[0]
    for _ in range(args.rounds):
        for replicas, all_of_it in found.items():
            all_of_it.append(measure(replicas, args.messages))
    rates = {replicas: statistics.median(each.rate for each in rounds) for replicas, rounds in found.items()}
    rows = []
    for replicas, rounds in found.items():
        servers = [statistics.median(of_one) for of_one in zip(*(each.servers for each in rounds), strict=True)]
        costs = [statistics.median(each.node for each in rounds), *servers]
        shown = [f"{each:.1f} us" for each in costs] + ["-"] * (len(HEAD) - 3 - len(costs))
        rows.append((str(replicas), f"{rates[replicas]:,.0f}", f"{rates[replicas] / rates[0]:.2f}", *shown))
    print(f"{args.messages:,} messages, medians of {args.rounds} rounds, load before: {load:.1f}")
    print(table(HEAD, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
