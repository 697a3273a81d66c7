"""Scaling: what a message costs Sluice as consumer queues, definitions, the backlog and connections grow.

What grows must not matter: each measurement says what a message (or a copy of it) costs in processor time of node and
store together, and its last line is compared with its first.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.brokers.configuration import definitions_xml, destinations_xml
from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.report import table
from benchmarks.generator.connection import Consumer
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.scenarios.messages import Plain
from benchmarks.scenarios.routes import Unread
from benchmarks.scenarios.rows import QUEUE_SCENARIO, Scenario

#: Times the cost at the smallest size that the cost at the largest may be to count as flat: what noise makes of equals.
FLAT = 1.5
CONSUMER_QUEUES = (1, 10, 100, 1_000, 10_000)
DEFINITIONS = (1, 10, 100, 1_000, 10_000)
BACKLOG = (0, 10_000, 100_000, 1_000_000)
CONNECTIONS = (1, 10, 100, 1_000, 2_000)
#: Copies that one measurement of a fan-out makes, at least; messages of the others.
COPIES, MESSAGES = 50_000, 20_000
#: A backlog is not grown any further after this many seconds.
GROW_SECONDS = 240
#: Bytes of the bodies in a long backlog.
SHORT_BODY = 100

IS_FLAT, GROWS = "flat", "grows"
HEAD = ("growing", "to", "CPU of one", "messages/s", "verdict")


@dataclass(frozen=True, slots=True)
class Step:
    """One size: microseconds of processor time for a message or copy, messages a second."""

    size: int
    cpu_us: float
    rate: float


class Measured:
    """A running node."""

    def __init__(self, peer: Sluice, address: tuple[str, int]) -> None:
        self._peer, self.address = peer, address

    def step(self, size: int, scenario: Scenario, messages: int, copies: int = 1) -> Step:
        """What one of the copies of each message costs."""
        before = self._peer.process.usage().cpu_seconds
        outcome = run(Traffic(scenario), self.address, self._peer.dialect, messages)
        used = self._peer.process.usage().cpu_seconds - before
        return Step(size, used / (messages * copies) * 1e6, messages / outcome.seconds)

    def consumer(self, number: int) -> Consumer:
        """Somebody who waits at a queue of his own."""
        return Consumer(self.address, self._peer.dialect, self._peer.dialect.queue(f"idle.{number}", 1), "auto")


@contextmanager
def node(extra: str = "") -> Iterator[Measured]:
    """A node with this in its XML, warmed up."""
    peer = Sluice()
    with tempfile.TemporaryDirectory(prefix="bench-scaling-") as folder:
        try:
            measured = Measured(peer, peer.start(QUEUE_SCENARIO, Path(folder), extra))
            measured.step(0, QUEUE_SCENARIO, MESSAGES)
            yield measured
        finally:
            peer.stop()


def by_consumer_queues(scale: float) -> Iterator[Step]:
    """A copy of what goes to so many consumer queues."""
    queues = [f"Consumer.C{number}.VirtualTopic.Q{count}" for count in CONSUMER_QUEUES for number in range(count)]
    with node(destinations_xml(queues)) as measured:
        for count in CONSUMER_QUEUES:
            scenario = replace(QUEUE_SCENARIO, route=Unread(f"/topic/VirtualTopic.Q{count}"), window=10, block=10)
            if count < 1_000:
                scenario = replace(scenario, window=200, block=50)
            messages = max(scenario.block, int(COPIES * scale / count) // scenario.block * scenario.block)
            measured.step(count, scenario, scenario.block, count)  # its way is looked for once
            yield measured.step(count, scenario, messages, count)


def by_definitions(scale: float) -> Iterator[Step]:
    """A message to a queue, with so many definitions of other destinations."""
    for count in DEFINITIONS:
        with node(definitions_xml(count)) as measured:
            yield measured.step(count, QUEUE_SCENARIO, int(MESSAGES * scale))


def by_backlog(scale: float) -> Iterator[Step]:
    """A message to a queue in which so many wait."""
    growing = replace(QUEUE_SCENARIO, route=Unread(QUEUE_SCENARIO.route.destination(0)), kind=Plain(SHORT_BODY))
    end = time.monotonic() + GROW_SECONDS
    held = 0
    with node() as measured:
        for size in BACKLOG:
            while held < size * scale and time.monotonic() < end:
                measured.step(size, growing, MESSAGES)
                held += MESSAGES
            if held < size * scale:
                return
            messages = int(MESSAGES * scale)
            yield measured.step(size, growing, messages)
            held += messages


def by_connections(scale: float) -> Iterator[Step]:
    """A message to a queue, while so many consumers wait at queues of their own."""
    idle: list[Consumer] = []
    with node() as measured:
        try:
            for size in CONNECTIONS:
                idle += [measured.consumer(number) for number in range(len(idle), size)]
                yield measured.step(size, QUEUE_SCENARIO, int(MESSAGES * scale))
        finally:
            for each in idle:
                each.socket.close()


GROWING: dict[str, Callable[[float], Iterator[Step]]] = {
    "consumer queues": by_consumer_queues,
    "other definitions": by_definitions,
    "backlog": by_backlog,
    "connections": by_connections,
}


def measure_scaling(scale: float) -> int:
    """Measure all and print; 0 when all is flat."""
    rows: list[tuple[str, ...]] = []
    for name, steps in GROWING.items():
        found = list(steps(scale))
        part = scaling_rows(name, found)
        print(f"{table(HEAD, part)}\n", flush=True)
        rows += part
    print(table(HEAD, rows))
    return 0 if all(row[-1] != GROWS for row in rows) else 1


def scaling_rows(name: str, steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """A row for each size; the last says whether it costs as much as the first."""
    rows = [(name, f"{each.size:,}", f"{each.cpu_us:.1f} us", f"{each.rate:,.0f}", "") for each in steps]
    verdict = IS_FLAT if steps[-1].cpu_us <= FLAT * steps[0].cpu_us else GROWS
    return [*rows[:-1], (*rows[-1][:-1], verdict)]
