"""Test that nodes of brokers of a cluster, killed under load, lose nothing and deliver nothing twice unflagged."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections.abc import Callable, Sequence

import pytest

from tests.chaos.clients import Clock, Consumer, Producer
from tests.chaos.ledger import Ledger, Order, Violation, ViolationKind
from tests.chaos.timeouts import describe_load
from tests.clusters.nodes import NODES, ClusterOfNodes, NodeProcess

#: Seconds between two messages of a producer, and for which a consumer processes one: each, on average.
PACE, THINKS = 0.02, 0.004
#: Seconds of load before a fault, after it, and after the node is there again.
CALM = 2.0
#: Seconds in which all must be consumed at the end on a busy machine, and in which nothing may come then.
DRAIN, SETTLE = 60.0, 1.5
#: What happens to a node.
Fault = Callable[[NodeProcess], None]
#: By place: its destination, where it is consumed, and where it is sent to.
PLACES = {
    "to-X": ("/queue/toX", "X", "W"),
    "to-W": ("/queue/toW", "W", "X"),
    "both": ("/queue/both", "WX", "WX"),
    "news-at-X": ("/topic/news", "X", "WX"),
    "news-at-W": ("/topic/news", "W", ""),
}
#: Places of each destination.
REACHED = {
    destination: tuple(place for place, (named, *_) in PLACES.items() if named == destination)
    for destination, *_ in PLACES.values()
}


async def run_under_load(cluster: ClusterOfNodes, kills: Sequence[str], fault: Fault = NodeProcess.kill) -> Ledger:
    """Kill one node after the other, and start it again each time, while clients send and consume at all brokers."""
    ledger, clock = (
        Ledger({each: Order.PRODUCER if len(PLACES[each][1]) == 1 else Order.NONE for each in PLACES}),
        Clock(0),
    )
    ports = {broker: [cluster[name].port for name in NODES if name.startswith(broker)] for broker in "WX"}
    consumers = [
        Consumer(
            f"{place}.c{broker}", broker, ports[broker], ledger, random.Random(place),
            place=place, destination=destination, durable=destination.startswith("/topic"), thinks=THINKS,
        )
        for place, (destination, consumed, _) in PLACES.items()
        for broker in consumed
    ]  # fmt: skip
    producers = [
        Producer(
            f"{place}.p{broker}", broker, ports[broker], ledger, random.Random(place),
            route=lambda _number, to=destination: (to, REACHED[to]), groups=0, pace=PACE,
        )
        for place, (destination, _, sent) in PLACES.items()
        for broker in sent
    ]  # fmt: skip
    living = [asyncio.create_task(each.run(clock)) for each in consumers]
    await asyncio.to_thread(cluster.wait_for_subscriptions, 2)
    sending = [asyncio.create_task(each.run(clock)) for each in producers]
    for name in kills:
        await asyncio.sleep(CALM)
        await asyncio.to_thread(fault, cluster[name])
        await asyncio.sleep(CALM)
        await asyncio.to_thread(cluster.revive)
    await asyncio.sleep(CALM)
    for each in producers:
        each.is_finished = True
    await asyncio.wait_for(asyncio.gather(*sending), DRAIN)
    drained = clock() + DRAIN
    while ledger.missing() and clock() < drained:
        await asyncio.sleep(0.2)
    await asyncio.sleep(SETTLE)
    for each in living:
        each.cancel()
    faulty = [each for each in await asyncio.gather(*living, return_exceptions=True) if isinstance(each, Exception)]
    assert not faulty
    return ledger


def wrong_of(ledger: Ledger) -> list[Violation]:
    """Return the violations, but for messages that came again, flagged, though their acknowledgement was confirmed.

    That may happen to those of another broker: it is confirmed by the broker of the consumer, before their home has it.
    """

    def is_promised(found: Violation) -> bool:
        id = found.what.split()[0]
        home = ledger.sent[id].producer[-1]
        brokers = {each.connection.broker for each in ledger.deliveries[found.place] if each.id == id}
        return found.kind is not ViolationKind.REDELIVERED_AFTER_ACK or brokers == {home}

    return [each for each in ledger.violations() if is_promised(each)]


def check(ledger: Ledger, kills: Sequence[str]) -> None:
    """Fail where a guarantee was broken, or what was to be tested did not happen."""
    numbers = ledger.numbers()
    sys.stdout.write(f"killed {', '.join(kills)}: {dict(numbers)}; {describe_load()}\n")
    assert not (wrong := wrong_of(ledger)), "\n".join(map(str, wrong[:20]))
    for place, (_, _, sent) in PLACES.items():
        if sent:
            assert len({each.id for each in ledger.deliveries[place]}) > len(kills) * CALM / PACE / 4, place
    assert numbers["redelivered"]


@pytest.fixture
def cluster(tmp_path):
    found = ClusterOfNodes(tmp_path)
    try:
        found.revive()
        yield found
    finally:
        found.end()


def test_the_nodes_that_hold_most_are_killed_under_load_and_nothing_is_lost_or_comes_twice_unflagged(cluster):
    kills = ["W/a", "X/a"]
    check(asyncio.run(run_under_load(cluster, kills)), kills)


@pytest.mark.long
@pytest.mark.parametrize("fault", [NodeProcess.kill, NodeProcess.freeze], ids=["killed", "frozen until it is expelled"])
def test_every_node_fails_under_load_again_and_again(cluster, fault):
    kills = list(itertools.islice(itertools.cycle(NODES), 12 if fault is NodeProcess.kill else 4))
    check(asyncio.run(run_under_load(cluster, kills, fault)), kills)
