"""Latency: from the send of a persistent message to its delivery, at a rate that leaves every broker time to rest.

The rate is half of the best that ActiveMQ reaches with `queue` in the same invocation. Each message bears the moment at
which it was written; producer and consumer live in one thread and read one clock.
"""

from __future__ import annotations

import re
import selectors
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.comparison.rounds import Peer, running
from benchmarks.generator.connection import Connection, Consumer, RunFailed
from benchmarks.generator.ledger import faults, sent_in_order
from benchmarks.generator.load import STALL_SECONDS, run
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import Dialect, Headers
from benchmarks.protocol.frames import RECEIPT, frame
from benchmarks.scenarios.messages import first_number
from benchmarks.scenarios.rows import QUEUE_SCENARIO, Scenario

NAME = "latency"
TITLE = "latency of a queue, persistent"
#: Whose best rate is halved, and messages a second when it does not take part.
PACER, RATE_WITHOUT = "activemq", 1_000
#: Runs of `queue` that find its best rate.
PACING_RUNS = 3
#: Seconds of a measured run, and of the one before that warms up.
SECONDS, WARM_UP_SECONDS = 8.0, 3.0

_SENT = re.compile(rb"\nsent:([0-9]+)")


@dataclass(frozen=True, slots=True)
class Latency:
    """What a run saw: milliseconds from send to delivery, and messages a second."""

    median_ms: float
    p99_ms: float
    rate: float


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """A peer's rounds; `failure` says why there are fewer than asked for."""

    peer: str
    rounds: tuple[Latency, ...]
    failure: str | None = None

    @property
    def median_ms(self) -> float:
        """Median of the rounds' medians."""
        return median(each.median_ms for each in self.rounds)

    @property
    def p99_ms(self) -> float:
        """Median of the rounds' 99th percentiles."""
        return median(each.p99_ms for each in self.rounds)

    @property
    def rate(self) -> float:
        """Median of the rates reached."""
        return median(each.rate for each in self.rounds)


class PacedProducer(Connection):
    """Writes a message whenever one is due."""

    def __init__(self, address: tuple[str, int], dialect: Dialect, scenario: Scenario, rate: float, count: int) -> None:
        super().__init__(address, dialect)
        self.receipts = self.sent = 0
        self.count, self._kind, self._route = count, scenario.kind, scenario.route
        self._period = 1e9 / rate
        self._start = time.perf_counter_ns()

    def send_due(self) -> float:
        """Write what is due; seconds until the next is."""
        now = time.perf_counter_ns()
        due = min(self.count, int((now - self._start) / self._period) + 1)
        for number in range(self.sent, due):
            name = first_number(0) + number
            body = self._kind.body(name)
            headers = {"destination": self._route.destination(name), "persistent": "true", "receipt": number}
            headers |= {**self._kind.headers(name), "content-length": len(body), "sent": time.perf_counter_ns()}
            self.write(frame("SEND", headers, body))
        self.sent = max(self.sent, due)
        if self.sent == self.count:
            return STALL_SECONDS
        return max(0.0, (self._start + self.sent * self._period - now) / 1e9)

    def received(self, heads: bytes) -> None:
        self.receipts += heads.count(RECEIPT) - self.finished


class TimedConsumer(Consumer):
    """Notes how long each message took, and acknowledges it."""

    def __init__(self, address: tuple[str, int], dialect: Dialect, subscribe: Headers) -> None:
        super().__init__(address, dialect, subscribe, "client-individual")
        self.nanoseconds: list[int] = []

    def received(self, heads: bytes) -> None:
        now = time.perf_counter_ns()
        self.nanoseconds += [now - int(sent) for sent in _SENT.findall(heads)]
        super().received(heads)


def measure_latency(peers: Sequence[Peer], rounds: int, scale: float) -> tuple[float, Mapping[str, LatencyResult]]:
    """The rate in messages a second, and what each peer showed at it, in turn."""
    found: dict[str, list[Latency]] = {each.name: [] for each in peers}
    failures: dict[str, str] = {}
    with running(QUEUE_SCENARIO, peers) as addresses:
        rate = _rate(peers, addresses, scale)
        for number in range(rounds):
            for peer in peers:
                if peer.name in failures:
                    continue
                try:
                    if number == 0:
                        paced_run(addresses[peer.name], peer.dialect, rate, int(rate * WARM_UP_SECONDS * scale) + 1)
                    count = int(rate * SECONDS * scale) + 2
                    found[peer.name].append(paced_run(addresses[peer.name], peer.dialect, rate, count))
                except (RunFailed, OSError) as error:
                    failures[peer.name] = str(error)
    return rate, {name: LatencyResult(name, tuple(runs), failures.get(name)) for name, runs in found.items()}


def _rate(peers: Sequence[Peer], addresses: Mapping[str, tuple[str, int]], scale: float) -> float:
    pacer = next((each for each in peers if each.name == PACER), None)
    if pacer is None:
        return RATE_WITHOUT
    messages = int(QUEUE_SCENARIO.messages[PACER] * scale)
    traffic = Traffic(QUEUE_SCENARIO)
    outcomes = [run(traffic, addresses[PACER], pacer.dialect, messages) for _ in range(PACING_RUNS)]
    return max(each.rate for each in outcomes) / 2


def paced_run(address: tuple[str, int], dialect: Dialect, rate: float, count: int) -> Latency:
    """Send so many messages at this rate to the queue, consume and acknowledge them. Raises RunFailed."""
    [group] = QUEUE_SCENARIO.route.groups(dialect)
    consumer = TimedConsumer(address, dialect, group.subscribe)
    producer = PacedProducer(address, dialect, QUEUE_SCENARIO, rate, count)
    connections: set[Connection] = {consumer, producer}
    with selectors.DefaultSelector() as selector:
        try:
            for each in connections:
                each.attach(selector)
            started = last = time.perf_counter()
            while consumer.deliveries < count or producer.receipts < count:
                last = _look(selector, producer.send_due(), last)
            seconds = time.perf_counter() - started
            for each in connections:
                each.disconnect()
            while not all(each.finished for each in connections):
                last = _look(selector, STALL_SECONDS, last)
        finally:
            for each in connections:
                each.socket.close()
    numbers = range(first_number(0), first_number(0) + count)
    wrong = faults(numbers, [list(map(int, consumer.numbers))], sent_in_order(QUEUE_SCENARIO.route))
    if wrong or producer.receipts != count:
        raise RunFailed(f"{NAME}: {producer.receipts} receipts of {count}; {'; '.join(wrong)}")
    milliseconds = [each / 1e6 for each in consumer.nanoseconds]
    return Latency(median(milliseconds), quantiles(milliseconds, n=100)[98], count / seconds)


def _look(selector: selectors.BaseSelector, wait: float, last: float) -> float:
    """Handle what came meanwhile; when something came last. Raises RunFailed when that is too long ago."""
    events = selector.select(wait)
    now = time.perf_counter()
    if not events and now - last > STALL_SECONDS:
        raise RunFailed(f"{NAME}: nothing came for {STALL_SECONDS} s")
    for key, ready in events:
        key.data.handle(ready)
        if key.data.finished:
            selector.unregister(key.fileobj)
    return now if events else last
