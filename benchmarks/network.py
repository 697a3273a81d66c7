"""Networks: what a bridge passes on a second, between two Sluice brokers and between two ActiveMQ brokers, in one run.

`python -m benchmarks.network [--quick]`: producers at one broker, consumers at the other, persistent messages with
receipts, acknowledged one by one; each pair in turn, round by round.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.brokers.activemq import ActiveMQ
from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.report import table
from benchmarks.generator.load import Outcome, run
from benchmarks.generator.traffic import Traffic
from benchmarks.scenarios.rows import QUEUE_SCENARIO, Scenario

#: Messages of one run, and of a quick one.
MESSAGES, QUICK = 20_000, 4_000
ROUNDS = 3
_CONNECTOR = """    <networkConnectors>
      <networkConnector name="bench" uri="static:(tcp://127.0.0.1:{port})"/>
    </networkConnectors>
"""
#: Producers and consumers of each run.
CLIENTS = (1, 4)
HEAD = ("pair of", "producers and consumers", "messages/s", "CPU of one, both brokers", "Sluice is")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two brokers of a kind, of which the near one has a bridge to the far one."""

    near: ActiveMQ | Sluice
    far: ActiveMQ | Sluice
    addresses: tuple[tuple[str, int], tuple[str, int]]

    @property
    def cpu_seconds(self) -> float:
        """Of both, with their stores."""
        return sum(each.process.usage().cpu_seconds for each in (self.near, self.far))

    def measure(self, scenario: Scenario, messages: int) -> tuple[Outcome, float]:
        """One run: what it came to, microseconds of both brokers' processors for a message."""
        before = self.cpu_seconds
        near, far = self.addresses
        outcome = run(Traffic(scenario), near, self.near.dialect, messages, far)
        return outcome, (self.cpu_seconds - before) / outcome.deliveries * 1e6


@contextmanager
def joined(kind: type[ActiveMQ] | type[Sluice], scenario: Scenario) -> Iterator[Pair]:
    """Two of this kind, joined, as long as they are wanted."""
    near, far = kind(), kind()
    near.broker, far.broker = "near", "far"
    if kind is ActiveMQ:
        far.scheme = "auto"  # one port for its clients, and for the bridge, which speaks OpenWire
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-net-"))) for _ in range(2)]
        stack.callback(far.stop)
        there = far.start(scenario, folders[0])
        stack.callback(near.stop)
        here = near.start(scenario, folders[1], _CONNECTOR.format(port=there[1]))
        yield Pair(near, far, (here, there))


def compare(clients: int, rounds: int, messages: int) -> list[tuple[str, ...]]:
    """Rows of the table for so many producers and consumers."""
    scenario = replace(QUEUE_SCENARIO, producers=clients, route=replace(QUEUE_SCENARIO.route, consumers=clients))
    kinds = (ActiveMQ, Sluice)
    with ExitStack() as stack:
        pairs = {kind.title: stack.enter_context(joined(kind, scenario)) for kind in kinds}
        for pair in pairs.values():
            pair.measure(scenario, messages // 4)  # warms it up
        found: dict[str, list[tuple[Outcome, float]]] = {title: [] for title in pairs}
        for _ in range(rounds):
            for title, pair in pairs.items():
                found[title].append(pair.measure(scenario, messages))
    rates = {title: median(outcome.rate for outcome, _ in runs) for title, runs in found.items()}
    ratio = rates[Sluice.title] / rates[ActiveMQ.title]
    return [
        (
            title, str(clients), f"{rates[title]:,.0f}", f"{median(cpu for _, cpu in runs):,.0f} us",
            f"{ratio:.1f} times as fast" if title == Sluice.title else "",
        )
        for title, runs in found.items()
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of few messages: does it work?")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)d")
    asked = parser.parse_args(arguments)
    rounds, messages = (1, QUICK) if asked.quick else (asked.rounds, MESSAGES)
    rows = [row for clients in CLIENTS for row in compare(clients, rounds, messages)]
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
