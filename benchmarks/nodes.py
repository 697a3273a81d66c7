"""`python -m benchmarks.nodes`: how much a broker delivers with 1, 2 and 4 nodes on one store.

Each node has a queue, a producer and a consumer, whose load comes from a process of its own. `here`: the queue is at
home at the node of its clients; `away`: at the next one, so that every delivery crosses a link. Nodes share one store,
and all share the processors of this machine: the store and the load take theirs, too.
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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.dialect import ActiveMQDialect
from benchmarks.load import run
from benchmarks.report import table
from benchmarks.scenarios import PREFETCH, QUEUE_SCENARIO, ConsumerGroup
from benchmarks.sluice import Sluice
from brokerapp.destination import Destination
from brokerapp.nodes.members import Member, Members
from brokerapp.store.embedded import EmbeddedStore
from brokerapp.store.redis import RedisStore

HEAD = ("nodes", "queues", "messages/s", "against one node")
MESSAGES = 20_000
HERE, AWAY = "here", "away"


@dataclass(frozen=True, slots=True)
class Named:
    """A queue of this name, with one consumer."""

    name: str

    @property
    def destination(self) -> str:
        return f"/queue/{self.name}"

    def groups(self, dialect: ActiveMQDialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.queue(self.name, PREFETCH))]

    def properties(self, _number: int) -> dict:
        return {}


class OneOfSeveral(Sluice):
    """One node of a broker."""

    def __init__(self, name: str, redis_url: str) -> None:
        self.options = ("--redis", redis_url, "--node", name)


@contextmanager
def several(count: int) -> Iterator[tuple[list[tuple[str, int]], str]]:
    """So many nodes on one empty store: their addresses, in the order of their names, and the store's."""
    with tempfile.TemporaryDirectory(prefix="bench-nodes-") as folder, EmbeddedStore(Path(folder) / "store") as store:
        nodes = [OneOfSeveral(f"n{number}", store.url) for number in range(count)]
        try:
            addresses = []
            for number, each in enumerate(nodes):
                own = Path(folder) / f"n{number}"
                own.mkdir()
                addresses.append(each.start(QUEUE_SCENARIO, own))
            yield addresses, store.url
        finally:
            for each in nodes:
                each.stop()


def queues_at(redis_url: str, count: int) -> list[str]:
    """A queue at home at each node."""

    async def ask() -> tuple[int, dict]:
        store = RedisStore(redis_url, Sluice.broker)
        try:
            return await store.members()
        finally:
            await store.close()

    epoch, found = asyncio.run(ask())
    members = Members(epoch, [Member.from_record(*each) for each in found.items()], "")
    homes = [found[f"n{number}"]["session"] for number in range(count)]
    names = [f"bench.{number}" for number in range(100 * count)]
    return [next(each for each in names if members.home(str(Destination.queue(each))) == home) for home in homes]


def load(queue: str, address: tuple[str, int], messages: int, begin, end) -> None:
    """One producer and one consumer, who begin together with all others."""
    scenario = replace(QUEUE_SCENARIO, route=Named(queue))
    run(scenario, address, ActiveMQDialect(), scenario.block * 10)
    begin.wait()
    run(scenario, address, ActiveMQDialect(), messages)
    end.wait()


def rate(count: int, where: str, messages: int) -> float:
    """Messages a second that go through all nodes together."""
    with several(count) as (addresses, redis_url):
        queues = queues_at(redis_url, count)
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
        began = time.monotonic()
        end.wait()
        seconds = time.monotonic() - began
        for each in loads:
            each.join()
        return messages // count * count / seconds


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = []
    first = 0.0
    for count, where in itertools.product(options.nodes, (HERE, AWAY)):
        if count == 1 and where == AWAY:
            continue
        found = rate(count, where, options.messages)
        first = first or found
        rows.append((str(count), where, f"{found:,.0f}", f"{found / first:.2f}"))
        print(table(HEAD, rows[-1:]), flush=True)
    print(table(HEAD, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
