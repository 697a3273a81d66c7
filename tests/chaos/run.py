"""Run chaos once: clients work during faults and repairs; then all queues are drained, and the result is checked."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from brokerapp.store.redis import RedisStore
from tests.chaos import work
from tests.chaos.clients import Client, Clock, Session
from tests.chaos.ledger import Ledger, Sent, Violation, Wrong
from tests.chaos.patience import crowd, scaled
from tests.chaos.plan import Fault, Kind, plan
from tests.chaos.work import Flow
from tests.chaos.world import BROKERS, SHAPE, World, running

#: Seconds for all that waits to be consumed once all is mended, and in which nothing more may come after that.
DRAIN, QUIET = 45.0, 1.2
#: Seconds in which producers get the last of their receipts, once all is mended.
LAST_RECEIPTS = 40.0
#: Seconds between two looks, and until all bridges have heard of all consumers.
LOOK, WARM_UP = 0.25, 45.0
#: The most that may take on a busy machine.
LONGEST_WARM_UP = 3600.0


#: Broken promises of one kind and place that are told in full, and reasons why connections broke.
SHOWN = 4


@dataclass
class Outcome:
    """What a run was, and what it showed."""

    seed: int
    faults: Sequence[Fault]
    ledger: Ledger
    restarts: Sequence[str]
    left: dict[str, int] = field(default_factory=dict)  #: messages left in stores
    drained_in: float | None = None  #: seconds; None: not all came in time
    ends: Counter[str] = field(default_factory=Counter)  #: of connections of clients: why

    @property
    def violations(self) -> list[Violation]:
        """All broken promises."""
        return self.ledger.violations()

    def __str__(self) -> str:
        survived = Counter(each.kind for each in self.faults)
        numbers = self.ledger.numbers()
        lines = [
            f"seed {self.seed} survived {len(self.faults)} faults:" if self.is_fine else f"seed {self.seed} FAILED:"
        ]
        lines += [f"  {count:3} {kind}" for kind, count in survived.items()]
        lines.append("  " + ", ".join(f"{count} {what}" for what, count in numbers.items()))
        drained = f"all consumed {self.drained_in:.1f} s after" if self.drained_in is not None else "NOT ALL CONSUMED"
        lines.append(f"  {drained}; {sum(self.ends.values())} connections of clients broke")
        if not self.is_fine:
            lines += [f"  {count} of them: {why}" for why, count in self.ends.most_common(SHOWN)]
            lines.append(f"  {crowd()}")
        lines += [f"  ended by itself: {each}" for each in self.restarts]
        lines += [f"  left: {count} in {log}" for log, count in self.left.items()]
        for wrong, broken in groupby(sorted(self.violations, key=lambda each: (each.wrong, each.place)), _kind):
            told = list(map(str, broken))
            lines += [f"  {each}" for each in told[:SHOWN]]
            lines += [f"  {': '.join(wrong)}: {len(told) - SHOWN} more"] if len(told) > SHOWN else []
        return "\n".join(lines)

    @property
    def is_fine(self) -> bool:
        """Whether every promise was kept and nothing is left behind."""
        return not self.violations and not self.left and self.drained_in is not None


def _kind(violation: Violation) -> tuple[Wrong, str]:
    return violation.wrong, violation.place


def run(
    seed: int, seconds: float, folder: Path, kinds: Sequence[Kind] = tuple(Kind), flows: Collection[str] = ()
) -> Outcome:
    """Run it: faults of these kinds for so many seconds, and some time before and after; these flows, or all."""
    with running(folder) as world:
        return asyncio.run(_run(world, seed, plan(seed, seconds, SHAPE, kinds), seconds, work.flows(flows)))


async def _run(world: World, seed: int, faults: Sequence[Fault], seconds: float, flows: Sequence[Flow]) -> Outcome:
    ledger, clock = Ledger(work.ORDERS, work.GRAVES), Clock(ahead=LONGEST_WARM_UP)
    consumers = list(work.consumers(world.addresses, ledger, seed))
    producers = list(work.producers(flows, world.addresses, ledger, seed))
    outcome = Outcome(seed, faults, ledger, world.restarts)
    living = [asyncio.create_task(each.live(clock)) for each in consumers]
    supervising = asyncio.create_task(_supervise(world))
    try:
        await _warm_up(world, ledger, flows)
        clock.start()
        sending = [asyncio.create_task(each.live(clock)) for each in producers]
        alone: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # of each domain
        breaking = [
            asyncio.create_task(_carry_out(world, each, clock, alone[SHAPE.domain(each.target)])) for each in faults
        ]
        await asyncio.sleep(seconds)
        await asyncio.gather(*breaking)
        await asyncio.to_thread(world.ready)
        for each in producers:
            each.over = True
        await _ended(world, sending, producers)
        await _drain(world, outcome, clock)
    finally:
        for each in (supervising, *living):
            each.cancel()
        done = await asyncio.gather(supervising, *living, return_exceptions=True)
    faulty = [each for each in done if isinstance(each, Exception)]
    if faulty:
        raise ExceptionGroup("of clients", faulty)
    outcome.ends = _ends([*consumers, *producers])
    return outcome


async def _ended(world: World, sending: Sequence[asyncio.Task], producers: Sequence[Client]) -> None:
    """Until producers have ended. Where one does not the nodes write into their logs what they wait for."""
    _, stuck = await asyncio.wait(sending, timeout=scaled(LAST_RECEIPTS))
    for each in stuck:
        each.cancel()
    if stuck:
        await _what_waits(world)
    names = [each.name for each, task in zip(producers, sending, strict=True) if task in stuck]
    assert not stuck, f"no receipts within {scaled(LAST_RECEIPTS):.0f} s, {crowd()}: {', '.join(names)}"
    for each in sending:
        each.result()


def _ends(clients: Sequence[Client]) -> Counter[str]:
    return Counter(f"{each.name.partition('.')[0]}: {why}" for each in clients for why in each.ends)


async def _carry_out(world: World, fault: Fault, clock: Clock, alone: asyncio.Lock) -> None:
    """What takes longer than planned, on a busy machine, is ended before the next thing goes wrong there."""
    await asyncio.sleep(fault.begins - clock())
    async with alone:
        await asyncio.to_thread(world.begin, fault)
        await asyncio.sleep(fault.ends - clock())
        await asyncio.to_thread(world.end, fault)


async def _supervise(world: World) -> None:
    while True:
        await asyncio.sleep(LOOK)
        await asyncio.to_thread(world.revive)


async def _warm_up(world: World, ledger: Ledger, flows: Sequence[Flow]) -> None:
    """Until what is sent to any node gets wherever it is to get: before that nothing is promised of topics."""
    probes = [
        asyncio.create_task(_probe(flow, port, ledger), name=f"{flow.name} at {port}")
        for flow in flows
        for port in {port for broker in flow.sent_at for port in world.addresses(broker)}
    ]
    _, cold = await asyncio.wait(probes, timeout=scaled(WARM_UP))
    for each in cold:
        each.cancel()
    names = sorted(each.get_name() for each in cold)
    assert not cold, f"not within {scaled(WARM_UP):.0f} s, {crowd()}: {names}; {ledger.numbers()}"


async def _probe(flow: Flow, port: int, ledger: Ledger) -> None:
    """Send messages to all destinations of a flow until one has come everywhere. They are promised to nobody."""
    session = await Session.open(port)
    sent: list[Sent] = []
    while not all(_came(ledger, sent, place) for _, places in flow.to for place in places):
        for destination, places in flow.to:
            probe = Sent(f"probe-{len(ledger.sent)}", "probe", len(ledger.sent), places)
            sent.append(probe)
            ledger.send(probe)
            session.tell("SEND", {"destination": destination, "persistent": "true"}, probe.id.encode())
        await asyncio.sleep(LOOK)
    session.close()


def _came(ledger: Ledger, sent: Sequence[Sent], place: str) -> bool:
    return not {each.id for each in sent}.isdisjoint(each.id for each in ledger.given[place])


async def _drain(world: World, outcome: Outcome, clock: Clock) -> None:
    """Until all is consumed, and nothing is left anywhere."""
    began = clock()
    while clock() - began < scaled(DRAIN):
        if not outcome.ledger.missing():
            outcome.left = await _left(world)
            if not outcome.left:
                outcome.drained_in = clock() - began
                await asyncio.sleep(QUIET)
                return
        await asyncio.sleep(LOOK)
    outcome.left = await _left(world)
    await _what_waits(world)


async def _what_waits(world: World) -> None:
    """All nodes write into their logs what they know and wait for."""
    await asyncio.gather(*(asyncio.to_thread(node.what_waits) for node in world.nodes.values()))


async def _left(world: World) -> dict[str, int]:
    found = {broker: await _depths(world, broker) for broker in BROKERS}
    return {f"{broker}: {log}": depth for broker, depths in found.items() for log, depth in depths.items() if depth}


async def _depths(world: World, broker: str) -> dict[str, int]:
    store = RedisStore(world.stores[broker].url, broker)
    try:
        return await store.logs.depths(list(await store.logs.all_attributes()))
    finally:
        await store.close()
