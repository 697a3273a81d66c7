"""`python -m benchmarks.shards`: how much a broker delivers with 1, 2 and 4 shards, each of them a store of its own.

Messages of an order system go to virtual topics, each with three consumer queues; a topic and its queues are a family,
which lives in one shard. Every shard has as many families, and each node those whose queues it owns: their clients are
connected there, whose load comes from a process of its own for each node. The number of nodes is the same for all
numbers of shards, so that only these differ.

Each store and each node is held to the same share of a processor, as if it had a small machine of its own: a store
executes on one thread, and one machine has too few processors for several of them. The last two columns say how much of
its share a node and a store use: the stores have to be what limits the broker.

`--transactions` measures instead what a message of a transaction costs which sends to two queues: of one shard, and of
two. It holds nothing to a share.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.brokers.cpu_limit import held_to
from benchmarks.comparison.report import table
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.nodes import Broker, homes_at, several
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.routes import Queues, VirtualTopics
from benchmarks.scenarios.rows import QUEUE_SCENARIO
from brokerapp.engine.sharding.families import Families
from brokerapp.engine.sharding.placement import place
from brokerapp.model.definitions import Definitions

TRANSACTIONS_HEAD = ("queues of a transaction", "messages/s", "CPU of the node for a message", "CPU of the stores")
HEAD = (
    "shards", "deliveries/s", "against one shard", "CPU of nodes for a delivery", "CPU of the stores",
    "nodes use of their share", "stores use",
)  # fmt: skip
SHARDS = (1, 2, 4)
NODES, SHARE, MESSAGES = 6, 0.06, 24_000
#: Consumer queues of a topic: what one message costs a store more than a node.
QUEUES = 3
#: Messages that a producer sends before it waits for receipts: enough to keep its node and its shard busy.
WINDOW = 200
#: Messages of a transaction.
TRANSACTION = 10


@dataclass(frozen=True, slots=True)
class Measured:
    """Deliveries a second, what one costs in microseconds of CPU, and how much of their shares was used."""

    rate: float
    of_nodes: float
    of_stores: float
    nodes_use: float
    stores_use: float


def topics_at(broker: Broker, families: int) -> list[list[str]]:
    """So many virtual topics for each node, which owns all their queues, evenly from the shards."""
    members, sessions = homes_at(broker.stores[0].url)
    serving = range(len(broker.stores))
    found: dict[tuple[str, int], list[str]] = {}
    family_of, dialect = Families(Definitions()).family_of, ActiveMQDialect()
    wanted = -(-families // len(serving))
    places = len(sessions) * len(serving)
    for number in itertools.count():
        topic = f"VirtualTopic.Orders{number}"
        queues = [
            str(dialect.consumer_queue(topic, each, 1)["destination"]).replace("/queue/", "queue://")
            for each in range(QUEUES)
        ]
        owners = {members.owner_of(each) for each in queues}
        if len(owners) == 1:
            some = found.setdefault((owners.pop(), place(family_of(queues[0]), serving, {})), [])
            if len(some) < wanted:
                some.append(topic)
                if len(found) == places and all(len(each) == wanted for each in found.values()):
                    break
    homes = [sessions[f"n{number}"] for number in range(len(sessions))]
    return [[topic for shard in serving for topic in found[home, shard]] for home in homes]


def load(topics: Sequence[str], address: tuple[str, int], messages: int, begin, end) -> None:
    """One producer and three consumers for each topic, who begin together with all others."""
    route = VirtualTopics(topics, QUEUES)
    scenario = replace(QUEUE_SCENARIO, route=route, producers=len(topics), window=WINDOW)
    traffic = Traffic(scenario)
    run(traffic, address, ActiveMQDialect(), scenario.block * len(topics))
    begin.wait()
    run(traffic, address, ActiveMQDialect(), messages)
    end.wait()


def measure(shards: int, nodes: int, share: float, families: int, messages: int) -> Measured:
    """So many messages, through stores and nodes which each have this share of a processor."""
    with several(nodes, shards) as broker:
        topics = topics_at(broker, families)
        of_node = messages // nodes
        begin, end = multiprocessing.Barrier(nodes + 1), multiprocessing.Barrier(nodes + 1)
        loads = [
            multiprocessing.Process(target=load, args=(*each, of_node, begin, end))
            for each in zip(topics, broker.addresses, strict=True)
        ]
        for each in loads:
            each.start()
        begin.wait()
        with held_to(share, [*broker.pids, *(each.pid for each in broker.stores)]):
            began, used = time.monotonic(), broker.cpu_seconds()
            end.wait()
            seconds = time.monotonic() - began
            of_nodes, of_stores = (after - before for before, after in zip(used, broker.cpu_seconds(), strict=True))
        for each in loads:
            each.join()
    block = QUEUE_SCENARIO.block * len(topics[0])
    done = of_node // block * block * nodes * QUEUES
    return Measured(
        done / seconds,
        of_nodes / done * 1e6,
        of_stores / done * 1e6,
        of_nodes / seconds / share / nodes,
        of_stores / seconds / share / shards,
    )


def queues_of(shards: int) -> Queues:
    """Two queues that are in one shard, or two shards, of two."""
    family_of = Families(Definitions()).family_of
    for name in (f"orders{number}" for number in itertools.count()):
        found = {place(family_of(f"queue://{name}.{each}"), range(2), {}) for each in range(2)}
        if len(found) == shards:
            return Queues(2, name=name)
    raise AssertionError("names do not end")


def measure_transactions(messages: int) -> list[tuple[str, ...]]:
    """A row for transactions over two queues of one shard, and for those of two."""
    rows: list[tuple[str, ...]] = []
    with several(1, 2) as broker:
        for shards in (1, 2):
            traffic = Traffic(replace(QUEUE_SCENARIO, route=queues_of(shards), transaction=TRANSACTION))
            run(traffic, broker.addresses[0], ActiveMQDialect(), messages // 10)
            used = broker.cpu_seconds()
            outcome = run(traffic, broker.addresses[0], ActiveMQDialect(), messages)
            costs = (after - before for before, after in zip(used, broker.cpu_seconds(), strict=True))
            name = "of one shard" if shards == 1 else "of two shards"
            rows.append(
                (name, f"{outcome.rate:,.0f}", *(f"{each / outcome.deliveries * 1e6:.1f} us" for each in costs))
            )
    return rows


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, nargs="+", default=SHARDS)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--share", type=float, default=SHARE, help="of one processor, for each store and node")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="to each shard, so that all run as long")
    parser.add_argument("--transactions", action="store_true", help="what a transaction over two shards costs")
    options = parser.parse_args(arguments)
    if options.transactions:
        print(table(TRANSACTIONS_HEAD, measure_transactions(options.messages)))
        return 0
    rows: list[tuple[str, ...]] = []
    first = 0.0
    for shards in options.shards:
        families = max(options.shards)
        found = measure(shards, options.nodes, options.share, families, options.messages * shards)
        first = first or found.rate
        rows.append(
            (
                str(shards), f"{found.rate:,.0f}", f"{found.rate / first:.2f}", f"{found.of_nodes:.1f} us",
                f"{found.of_stores:.1f} us", f"{found.nodes_use:.0%}", f"{found.stores_use:.0%}",
            )
        )  # fmt: skip
        print(table(HEAD, rows[-1:]), flush=True)
    print(table(HEAD, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
