"""Run chaos once: clients work during faults and repairs; then all queues are drained, and the result is checked."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.intents import IntentStore
from tests.chaos import work
from tests.chaos.clients import Client, Clock, Session
from tests.chaos.environment import BROKERS, Environment, running
from tests.chaos.ledger import Ledger, Sent, Violation, ViolationKind
from tests.chaos.plan import Fault, FaultKind, plan
from tests.chaos.timeouts import describe_load, scaled_timeout
from tests.chaos.work import Flow

#: Seconds after the last fault in which all messages must be consumed, and then in which none may arrive.
DRAIN_SECONDS, SETTLE_SECONDS = 45.0, 1.2
#: Seconds after the last fault in which producers must get their last receipts.
LAST_RECEIPTS = 40.0
#: Seconds between two checks, and until all bridges must know all consumers.
POLL_SECONDS, WARM_UP_SECONDS = 0.25, 45.0
#: The most that may take on a busy machine.
MAX_WARM_UP_SECONDS = 3600.0


#: Violations of one kind and place, and reasons why connections ended, that are printed.
MAX_SHOWN = 4


@dataclass
class Outcome:
    """The faults of a run, and its result."""

    seed: int
    faults: Sequence[Fault]
    ledger: Ledger
    restarts: Sequence[str]
    remaining: dict[str, int] = field(default_factory=dict)  #: messages left in stores
    drained_in: float | None = None  #: seconds; None: not all came in time
    end_reasons: Counter[str] = field(default_factory=Counter)  #: of connections of clients: why

    @property
    def violations(self) -> list[Violation]:
        """All guarantees that were broken."""
        return self.ledger.violations()

    def __str__(self) -> str:
        survived = Counter(each.kind for each in self.faults)
        numbers = self.ledger.numbers()
        lines = [
            f"seed {self.seed} survived {len(self.faults)} faults:" if self.is_fine else f"seed {self.seed} FAILED:"
        ]
        lines += [f"  {count:3} {kind}" for kind, count in survived.items()]
        lines.append("  " + ", ".join(f"{count} {what}" for what, count in numbers.items()))
        drained = (
            f"all consumed {self.drained_in:.1f} s after the last fault"
            if self.drained_in is not None
            else "NOT ALL CONSUMED"
        )
        lines.append(f"  {drained}; {sum(self.end_reasons.values())} client connections ended")
        if not self.is_fine:
            lines += [f"  {count} of them: {why}" for why, count in self.end_reasons.most_common(MAX_SHOWN)]
            lines.append(f"  {describe_load()}")
        lines += [f"  ended by itself: {each}" for each in self.restarts]
        lines += [f"  left: {count} in {log}" for log, count in self.remaining.items()]
        for wrong, broken in groupby(sorted(self.violations, key=lambda each: (each.kind, each.place)), _kind):
            told = list(map(str, broken))
            lines += [f"  {each}" for each in told[:MAX_SHOWN]]
            lines += [f"  {': '.join(wrong)}: {len(told) - MAX_SHOWN} more"] if len(told) > MAX_SHOWN else []
        return "\n".join(lines)

    @property
    def is_fine(self) -> bool:
        """Whether every guarantee held and no message is left behind."""
        return not self.violations and not self.remaining and self.drained_in is not None


def _kind(violation: Violation) -> tuple[ViolationKind, str]:
    return violation.kind, violation.place


def run(
    seed: int,
    seconds: float,
    folder: Path,
    kinds: Sequence[FaultKind] = tuple(FaultKind),
    flows: Collection[str] = (),
    shards: int = 1,
) -> Outcome:
    """Run the brokers, of so many shards each, with faults of these kinds for so many seconds, and the clients of these
    flows, or of all.
    """
    with running(folder, shards) as environment:
        faults = plan(seed, seconds, environment.topology, kinds)
        return asyncio.run(_run(environment, seed, faults, seconds, work.flows(flows)))


async def _run(
    environment: Environment, seed: int, faults: Sequence[Fault], seconds: float, flows: Sequence[Flow]
) -> Outcome:
    ledger, clock = Ledger(work.ORDERS, work.DEAD_LETTER_PLACES), Clock(ahead=MAX_WARM_UP_SECONDS)
    consumers = list(work.consumers(environment.addresses, ledger, seed))
    producers = list(work.producers(flows, environment.addresses, ledger, seed))
    if (jms := work.jms_clients(flows, environment.addresses, ledger)) is not None:
        consumers.append(jms[0])
        producers.append(jms[1])
    outcome = Outcome(seed, faults, ledger, environment.restarts)
    living = [asyncio.create_task(each.run(clock)) for each in consumers]
    supervising = asyncio.create_task(_restart_ended_nodes(environment))
    try:
        await _warm_up(environment, ledger, flows)
        clock.start()
        sending = [asyncio.create_task(each.run(clock)) for each in producers]
        locks: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # of each domain
        injecting = [
            asyncio.create_task(_inject(environment, each, clock, locks[environment.topology.domain(each.target)]))
            for each in faults
        ]
        await asyncio.sleep(seconds)
        await asyncio.gather(*injecting)
        await asyncio.to_thread(environment.ready)
        for each in producers:
            each.is_finished = True
        await _wait_for_producers(environment, sending, producers)
        await _drain(environment, outcome, clock)
    finally:
        for each in (supervising, *living):
            each.cancel()
        done = await asyncio.gather(supervising, *living, return_exceptions=True)
    faulty = [each for each in done if isinstance(each, Exception)]
    if faulty:
        raise ExceptionGroup("of clients", faulty)
    outcome.end_reasons = _end_reasons([*consumers, *producers])
    return outcome


async def _wait_for_producers(
    environment: Environment, sending: Sequence[asyncio.Task], producers: Sequence[Client]
) -> None:
    """Wait for the producers to end; if one does not, let the nodes log what they wait for, and fail."""
    _, stuck = await asyncio.wait(sending, timeout=scaled_timeout(LAST_RECEIPTS))
    for each in stuck:
        each.cancel()
    if stuck:
        await _dump_tasks(environment)
    names = [each.name for each, task in zip(producers, sending, strict=True) if task in stuck]
    assert not stuck, f"no receipts within {scaled_timeout(LAST_RECEIPTS):.0f} s, {describe_load()}: {', '.join(names)}"
    for each in sending:
        each.result()


def _end_reasons(clients: Sequence[Client]) -> Counter[str]:
    return Counter(f"{each.name.partition('.')[0]}: {why}" for each in clients for why in each.end_reasons)


async def _inject(environment: Environment, fault: Fault, clock: Clock, lock: asyncio.Lock) -> None:
    """Begin and end a fault as planned; the lock keeps a fault that took longer from overlapping the next one there."""
    await asyncio.sleep(fault.begins - clock())
    async with lock:
        await asyncio.to_thread(environment.begin, fault)
        await asyncio.sleep(fault.ends - clock())
        await asyncio.to_thread(environment.end, fault)


async def _restart_ended_nodes(environment: Environment) -> None:
    while True:
        await asyncio.sleep(POLL_SECONDS)
        await asyncio.to_thread(environment.revive)


async def _warm_up(environment: Environment, ledger: Ledger, flows: Sequence[Flow]) -> None:
    """Wait until messages sent to any node reach all their places: before that topics guarantee nothing."""
    probes = [
        asyncio.create_task(_probe(flow, port, ledger), name=f"{flow.name} at {port}")
        for flow in flows
        for port in {port for broker in flow.sent_at for port in environment.addresses(broker)}
    ]
    _, cold = await asyncio.wait(probes, timeout=scaled_timeout(WARM_UP_SECONDS))
    for each in cold:
        each.cancel()
    names = sorted(each.get_name() for each in cold)
    assert not cold, (
        f"not within {scaled_timeout(WARM_UP_SECONDS):.0f} s, {describe_load()}: {names}; {ledger.numbers()}"
    )


async def _probe(flow: Flow, port: int, ledger: Ledger) -> None:
    """Send messages to all destinations of a flow until one has reached each place; nothing is guaranteed of them."""
    session = await Session.open(port)
    sent: list[Sent] = []
    while not all(_arrived(ledger, sent, place) for _, places in flow.to for place in places):
        for destination, places in flow.to:
            probe = Sent(f"probe-{len(ledger.sent)}", "probe", len(ledger.sent), places)
            sent.append(probe)
            ledger.send(probe)
            session.write("SEND", {"destination": destination, "persistent": "true"}, probe.id.encode())
        await asyncio.sleep(POLL_SECONDS)
    session.close()


def _arrived(ledger: Ledger, sent: Sequence[Sent], place: str) -> bool:
    return not {each.id for each in sent}.isdisjoint(each.id for each in ledger.deliveries[place])


async def _drain(environment: Environment, outcome: Outcome, clock: Clock) -> None:
    """Wait until every message is consumed and no store holds one."""
    began = clock()
    while clock() - began < scaled_timeout(DRAIN_SECONDS):
        if not outcome.ledger.missing():
            outcome.remaining = await _remaining(environment)
            if not outcome.remaining:
                outcome.drained_in = clock() - began
                await asyncio.sleep(SETTLE_SECONDS)
                return
        await asyncio.sleep(POLL_SECONDS)
    outcome.remaining = await _remaining(environment)
    await _dump_tasks(environment)


async def _dump_tasks(environment: Environment) -> None:
    """Let all nodes write into their logs what they know and wait for."""
    await asyncio.gather(*(asyncio.to_thread(node.dump_tasks) for node in environment.nodes.values()))


async def _remaining(environment: Environment) -> dict[str, int]:
    found = {broker: await _depths(environment, broker) for broker in BROKERS}
    return {f"{broker}: {log}": depth for broker, depths in found.items() for log, depth in depths.items() if depth}


async def _depths(environment: Environment, broker: str) -> dict[str, int]:
    """Return the depths of a broker's logs, and how many writes to several shards are not known to be done."""
    store = BrokerStore(environment.stores[broker].url, broker)
    try:
        await store.open()
        intents = [await IntentStore(each.client).count() for each in store.shards.stores.values()]
        depths = await store.logs.depths(list(await store.logs.all_attributes()))
        return {**depths, "intents": sum(intents)}
    finally:
        await store.close()
