"""Load: runs one scenario against one broker from a single thread, and counts every receipt and delivery.

One loop over non-blocking sockets serves all producers and consumers: what a broker wrote since the last look is read
and answered at once, in bulk, so that the generator costs far less CPU than any broker.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.generator.connection import Connection, Consumer, Producer, RejectingConsumer, RunFailed
from benchmarks.generator.ledger import expected, faults, sent_in_order
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import Dialect
from benchmarks.scenarios.routes import ConsumerGroup
from benchmarks.scenarios.rows import Scenario

#: A run in which nothing arrives for so long has lost something.
STALL_SECONDS = 30
#: A run that takes longer is too slow to be waited for.
RUN_SECONDS = 180
#: The loop rests between two looks at its sockets, so that a look finds much to do: at least so long,
MIN_REST_SECONDS = 0.001
#: and so many times as long as the last look took, which leaves the processors to the broker.
REST_FACTOR = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run measured: seconds from the first send until all is acknowledged; CPU is the generator's own."""

    deliveries: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Deliveries acknowledged a second."""
        return self.deliveries / self.seconds


def run(
    traffic: Traffic, address: tuple[str, int], dialect: Dialect, messages: int, far: tuple[str, int] | None = None
) -> Outcome:
    """Send about this many messages (a whole number of blocks from each producer) and consume all copies of them,
    where they are sent or at another broker, which is `far`.

    Raises RunFailed when the broker refuses something, when a receipt is missing, or when the ledger has a fault: a
    message that is missing, that came twice or to whom it was not for, or in another order than it was sent in.
    """
    scenario = traffic.scenario
    groups = consumer_groups(traffic, far or address, dialect, messages)
    each = traffic.messages_of_each(messages)
    producers = [
        Producer(address, dialect, scenario, traffic.blocks(producer, each)) for producer in range(scenario.producers)
    ]
    load = Load(scenario, groups, producers)
    try:
        return load.measure()
    finally:
        load.close()


def consumer_groups(traffic: Traffic, address: tuple[str, int], dialect: Dialect, messages: int) -> list[Group]:
    """Those who consume so many messages, connected, with what each is to get."""
    scenario, each = traffic.scenario, traffic.messages_of_each(messages)
    sent = [traffic.numbers(producer, each) for producer in range(scenario.producers)]
    return [
        Group(
            [_consumer(group, address, dialect, scenario.ack_mode) for _ in range(group.consumers)],
            expected(sent, group.takes),
            group.group_of,
        )
        for group in scenario.route.groups(dialect)
    ]


def _consumer(group: ConsumerGroup, address: tuple[str, int], dialect: Dialect, ack_mode: str) -> Consumer:
    if group.rejections:
        return RejectingConsumer(address, dialect, group.subscribe, group.rejections)
    return Consumer(address, dialect, group.subscribe, ack_mode)


@dataclass(frozen=True, slots=True)
class Group:
    """Consumers that share messages, and the numbers of the messages that they are to get, ascending."""

    consumers: list[Consumer]
    numbers: list[int]
    group_of: Callable[[int], int] | None

    def faults(self, order: Callable[[int], object] | None) -> list[str]:
        """What is wrong with what they received."""
        received = [list(map(int, each.numbers)) for each in self.consumers]
        return faults(self.numbers, received, order, self.group_of)


class Load:
    """The loop over the connections of one run."""

    def __init__(self, scenario: Scenario, groups: list[Group], producers: list[Producer]) -> None:
        self.scenario = scenario
        self.groups = groups
        self.producers = producers
        self.consumers: list[Consumer] = [each for group in groups for each in group.consumers]
        self.messages = sum(each.messages for each in producers)
        self.expected = sum(len(each.numbers) for each in groups)
        self.selector = selectors.DefaultSelector()
        self.open: set[Connection] = {*self.consumers, *producers}
        self.delivered = 0

    def measure(self) -> Outcome:
        for each in self.open:
            each.attach(self.selector)
        cpu, started = time.process_time(), time.perf_counter()
        self.deadline = started + RUN_SECONDS
        self._until(self._all_arrived)
        for each in self.open:
            each.disconnect()
        self._until(lambda: not self.open)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        if wrong := self._discrepancies():
            raise RunFailed(f"{self.scenario.name}: {wrong}")
        return Outcome(self.expected, seconds, cpu)

    def close(self) -> None:
        for each in (*self.consumers, *self.producers):
            each.socket.close()
        self.selector.close()

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._fill()
            events = self.selector.select(STALL_SECONDS)
            looked = time.perf_counter()
            if not events:
                raise RunFailed(f"{self.scenario.name}: nothing came for {STALL_SECONDS} s; {self._discrepancies()}")
            if looked > self.deadline:
                raise RunFailed(f"{self.scenario.name}: not done after {RUN_SECONDS} s; {self._discrepancies()}")
            for key, ready in events:
                self._handle(key.data, ready)
            self.delivered = sum(each.deliveries for each in self.consumers)
            if self.scenario.rests:
                time.sleep(max(MIN_REST_SECONDS, REST_FACTOR * (time.perf_counter() - looked)))

    def _handle(self, connection: Connection, ready: int) -> None:
        connection.handle(ready)
        if connection.finished:
            self.selector.unregister(connection.socket)
            self.open.discard(connection)

    def _fill(self) -> None:
        for each in self.producers:
            each.fill(each.receipts if self.scenario.persistent else self.delivered * each.messages // self.expected)

    def _all_arrived(self) -> bool:
        return self.delivered >= self.expected and all(each.confirmed for each in self.producers)

    def _discrepancies(self) -> str:
        """Which receipts are missing and what is wrong in the ledger; empty when all is right."""
        wrong = [
            f"producer {number} has {each.receipts} receipts for {each.messages} messages"
            for number, each in enumerate(self.producers)
            if self.scenario.persistent and each.receipts != each.messages
        ]
        order = sent_in_order(self.scenario.route) if self.scenario.is_ordered else None
        for number, group in enumerate(self.groups):
            wrong += [f"queue {number}: {fault}" for fault in group.faults(order)]
        return "; ".join(wrong[:5])
