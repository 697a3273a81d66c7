"""`python -m benchmarks.nodes`: how much a broker delivers with 1, 2 and 4 nodes on one store.

Each node has a queue, a producer and a consumer, whose load comes from a process of its own. `here`: the queue is at
home at the node of its clients; `away`: at the next one, so that every delivery crosses a link. Nodes share one store,
and all share the processors of this machine: the store and the load take theirs, too. So what a delivery costs in CPU
is told for all nodes together, and for the store: where each has processors of its own that is what bounds them.

`--share 0.1` holds each node to a tenth of a processor, as if it had a small machine of its own, and leaves the rest to
the store and the load: so it is seen what nodes add on a machine that has too few processors for all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks.brokers.cpu_limit import held_to
from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.report import table
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.routes import Queue
from benchmarks.scenarios.rows import QUEUE_SCENARIO
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.record import SERVING

HEAD = ("nodes", "queues", "messages/s", "against one node", "CPU of nodes", "CPU of the store")
MESSAGES = 20_000
HERE, AWAY = "here", "away"


class OneOfSeveral(Sluice):
    """One node of a broker."""

    def __init__(self, name: str, redis_url: str) -> None:
        self.options = ("--redis", redis_url, "--node", name)


@dataclass(frozen=True, slots=True)
class Broker:
    """So many nodes on empty stores, in the order of their names."""

    nodes: list[OneOfSeveral]
    addresses: list[tuple[str, int]]
    stores: list[EmbeddedStore]

    @property
    def pids(self) -> list[int]:
        return [each.process.pid for each in self.nodes if each.process]

    def cpu_seconds(self) -> tuple[float, float]:
        """What the nodes, and the stores, have used."""
        times = [psutil.Process(each.pid).cpu_times() for each in self.stores]
        nodes = sum(each.process.usage().cpu_seconds for each in self.nodes if each.process)
        return nodes, sum(each.user + each.system for each in times)


@contextmanager
def several(count: int, shards: int = 1) -> Iterator[Broker]:
    """So many nodes on so many stores."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-nodes-")))
        stores = [stack.enter_context(EmbeddedStore(folder / f"store{number}")) for number in range(shards)]
        asyncio.run(_add_shards([each.url for each in stores]))
        nodes = [OneOfSeveral(f"n{number}", stores[0].url) for number in range(count)]
        addresses = []
        for number, each in enumerate(nodes):
            own = folder / f"n{number}"
            own.mkdir()
            stack.callback(each.stop)
            addresses.append(each.start(QUEUE_SCENARIO, own))
        yield Broker(nodes, addresses, stores)


async def _add_shards(urls: Sequence[str]) -> None:
    first, *others = urls
    store = BrokerStore(first, Sluice.broker)
    try:
        for url in others:
            await store.shard_record.add(url, SERVING)
    finally:
        await store.close()


def homes_at(redis_url: str) -> tuple[NodeMembers, dict[str, str]]:
    """Who owns which queue, and the sessions of the nodes by name."""

    async def ask() -> tuple[int, dict]:
        store = RedisStore(redis_url, Sluice.broker)
        try:
            return await store.nodes.members()
        finally:
            await store.close()

    epoch, found = asyncio.run(ask())
    members = NodeMembers(epoch, [NodeMember.from_record(*each) for each in found.items()], "")
    return members, {name: about["session"] for name, about in found.items()}


def queues_at(redis_url: str, count: int) -> list[str]:
    """A queue at home at each node."""
    members, sessions = homes_at(redis_url)
    homes = [sessions[f"n{number}"] for number in range(count)]
    names = [f"bench.{number}" for number in range(100 * count)]
    return [next(each for each in names if members.owner_of(str(Destination.queue(each))) == home) for home in homes]


def load(queue: str, address: tuple[str, int], messages: int, begin, end) -> None:
    """One producer and one consumer, who begin together with all others."""
    traffic = Traffic(replace(QUEUE_SCENARIO, route=Queue(name=queue)))
    run(traffic, address, ActiveMQDialect(), QUEUE_SCENARIO.block * 10)
    begin.wait()
    run(traffic, address, ActiveMQDialect(), messages)
    end.wait()


@dataclass(frozen=True, slots=True)
class Measured:
    """Messages a second that go through all nodes together, and what one costs, in microseconds of CPU."""

    rate: float
    of_nodes: float
    of_store: float


def measure(count: int, where: str, messages: int, share: float | None = None) -> Measured:
    """So many messages, through so many nodes, each with this share of a processor (`None`: what there is)."""
    with several(count) as broker, held_to(share, broker.pids) if share else nullcontext():
        queues, addresses = queues_at(broker.stores[0].url, count), broker.addresses
        if where == AWAY:
            addresses = [*addresses[1:], addresses[0]]
        begin, end = multiprocessing.Barrier(count + 1), multiprocessing.Barrier(count + 1)
        loads = [
            multiprocessing.Process(target=load, args=(queue, address, messages // count, begin, end))
            for queue, address in zip(queues, addresses, strict=True)
        ]
        for each in loads:
            each.start()
        begin.wait()
        began, used = time.monotonic(), broker.cpu_seconds()
        end.wait()
        seconds, done = time.monotonic() - began, messages // count * count
        of_nodes, of_store = (after - before for before, after in zip(used, broker.cpu_seconds(), strict=True))
        for each in loads:
            each.join()
        return Measured(done / seconds, of_nodes / done * 1e6, of_store / done * 1e6)


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--share", type=float, help="of one processor, for each node (default: what there is)")
    options = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = []
    first = 0.0
    for count, where in itertools.product(options.nodes, (HERE, AWAY)):
        if count == 1 and where == AWAY:
            continue
        found = measure(count, where, options.messages, options.share)
        first = first or found.rate
        costs = (f"{each:.1f} us" for each in (found.of_nodes, found.of_store))
        rows.append((str(count), where, f"{found.rate:,.0f}", f"{found.rate / first:.2f}", *costs))
        print(table(HEAD, rows[-1:]), flush=True)
    print(table(HEAD, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
