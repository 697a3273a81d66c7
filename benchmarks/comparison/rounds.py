"""Rounds: the peers run one scenario in turn, again and again, each warmed up once and measured with its children."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

from benchmarks.brokers.process import BrokerProcess
from benchmarks.generator.clients import prepare, run
from benchmarks.generator.connection import RunFailed
from benchmarks.generator.load import Outcome
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import Dialect
from benchmarks.scenarios.rows import Scenario


class Peer(Protocol):
    """A broker that can be started for a scenario, in a folder of its own, and stopped."""

    name: str
    pace: str  #: under which a scenario says how many messages it can take
    title: str
    dialect: Dialect
    process: BrokerProcess

    def start(self, scenario: Scenario, folder: Path) -> tuple[str, int]: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured run: what the load generator saw, and what the broker with its store used."""

    outcome: Outcome
    broker_cpu_seconds: float
    resident_bytes: int
    store_cpu_seconds: float = 0.0

    @property
    def store_cpu_us(self) -> float:
        """Microseconds of CPU that the store alone spent on a delivery."""
        return self.store_cpu_seconds / self.outcome.deliveries * 1e6

    @property
    def broker_cpu_us(self) -> float:
        """Microseconds of CPU the broker and its store spent on a delivery."""
        return self.broker_cpu_seconds / self.outcome.deliveries * 1e6

    @property
    def generator_cpu_us(self) -> float:
        """Microseconds of CPU the load generator spent on a delivery."""
        return self.outcome.cpu_seconds / self.outcome.deliveries * 1e6


@dataclass(frozen=True, slots=True)
class Result:
    """What a peer's rounds of a scenario came to; `failure` says why there are fewer rounds than asked for."""

    peer: str
    rounds: tuple[Measurement, ...]
    failure: str | None = None

    @property
    def rate(self) -> float | None:
        """Median of the deliveries acknowledged a second."""
        return median(each.outcome.rate for each in self.rounds) if self.rounds else None

    def median(self, of: Callable[[Measurement], float]) -> float:
        """The median of something measured in each round."""
        return median(map(of, self.rounds))


def measure(
    scenario: Scenario, peers: Sequence[Peer], rounds: int, scale: float, started: Callable[[Peer], None]
) -> Mapping[str, Result]:
    """Run the scenario on all these peers, in turn, `rounds` times, with `scale` times its messages; results by peer.

    All are started before the first one runs, and `started` is called with each: a peer that waits for its turn costs
    next to nothing. A run that is not measured warms each up. A peer that fails is left out of the rounds that follow.
    """
    measured: dict[str, list[Measurement]] = {each.name: [] for each in peers}
    failures: dict[str, str] = {}
    traffic = Traffic(scenario)
    with running(scenario, peers) as addresses:
        for peer in peers:
            started(peer)
        for number in range(rounds):
            for peer in peers:
                if peer.name in failures:
                    continue
                messages = int(scenario.messages[peer.pace] * scale)
                try:
                    if number == 0:
                        prepare(traffic, addresses[peer.name], peer.dialect, messages)
                        run(traffic, addresses[peer.name], peer.dialect, messages)
                    measured[peer.name].append(measured_run(traffic, peer, addresses[peer.name], messages))
                except (RunFailed, OSError) as error:
                    failures[peer.name] = str(error)
    return {name: Result(name, tuple(runs), failures.get(name)) for name, runs in measured.items()}


def measured_run(traffic: Traffic, peer: Peer, address: tuple[str, int], messages: int) -> Measurement:
    """Send so many messages to a broker that runs, and consume them. Raises RunFailed."""
    prepare(traffic, address, peer.dialect, messages)
    before = peer.process.usage()
    outcome = run(traffic, address, peer.dialect, messages)
    after = peer.process.usage()
    cpu, of_store = (
        after.cpu_seconds - before.cpu_seconds,
        after.store_cpu_seconds - before.store_cpu_seconds,
    )
    return Measurement(outcome, cpu, after.resident_bytes, of_store)


@contextmanager
def running(scenario: Scenario, peers: Sequence[Peer]) -> Iterator[dict[str, tuple[str, int]]]:
    """The peers, started side by side; their addresses by name."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        starts = []
        for peer in peers:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"bench-{peer.name}-")))
            stack.callback(peer.stop)
            starts.append(pool.submit(peer.start, scenario, folder))
        yield {peer.name: start.result() for peer, start in zip(peers, starts, strict=True)}
