"""Networks: what a bridge passes on a second, between two brokers of a kind and from Sluice to ActiveMQ, in one run.

`python -m benchmarks.network [--quick]`: producers at one broker, consumers at the other, persistent messages with
receipts, acknowledged one by one; each pair in turn, round by round. Between two ActiveMQs bridges speak OpenWire,
between two Sluices STOMP, from Sluice to ActiveMQ either.
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
from benchmarks.brokers.process import free_port
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
#: Pairs: near, far, and what is spoken between them where that may be either.
PAIRS: tuple[tuple[type[ActiveMQ] | type[Sluice], type[ActiveMQ] | type[Sluice], str], ...] = (
    (ActiveMQ, ActiveMQ, ""), (Sluice, Sluice, ""), (Sluice, ActiveMQ, "STOMP"), (Sluice, ActiveMQ, "OpenWire"),
)  # fmt: skip
#: Producers and consumers of each run.
CLIENTS = (1, 4)
HEAD = ("pair of", "producers and consumers", "messages/s", "CPU of one, both brokers", "of it the near one", "speed")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two brokers of a kind, of which the near one has a bridge to the far one."""

    near: ActiveMQ | Sluice
    far: ActiveMQ | Sluice
    addresses: tuple[tuple[str, int], tuple[str, int]]

    @property
    def cpu_seconds(self) -> tuple[float, float]:
        """Of the near one and of the far one, with their stores."""
        near, far = (each.process.usage().cpu_seconds for each in (self.near, self.far))
        return near, far

    def measure(self, scenario: Scenario, messages: int) -> tuple[Outcome, float, float]:
        """One run: what it came to, microseconds of both brokers' processors for a message, of it the near one's."""
        before = self.cpu_seconds
        near, far = self.addresses
        outcome = run(Traffic(scenario), near, self.near.dialect, messages, far)
        spent = [(now - then) / outcome.deliveries * 1e6 for now, then in zip(self.cpu_seconds, before, strict=True)]
        return outcome, sum(spent), spent[0]


@contextmanager
def joined(
    near_kind: type[ActiveMQ] | type[Sluice], far_kind: type[ActiveMQ] | type[Sluice], protocol: str, scenario: Scenario
) -> Iterator[Pair]:
    """Two of these kinds, joined, as long as they are wanted."""
    near, far = near_kind(), far_kind()
    near.broker, far.broker = "near", "far"
    if isinstance(far, ActiveMQ) and protocol == "OpenWire":
        far.openwire_port = free_port()
    elif isinstance(far, ActiveMQ):
        far.scheme = "auto"  # one port for its clients, and for the bridge
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-net-"))) for _ in range(2)]
        stack.callback(far.stop)
        there = far.start(scenario, folders[0])
        stack.callback(near.stop)
        bridged_to = getattr(far, "openwire_port", None) or there[1]
        here = near.start(scenario, folders[1], _CONNECTOR.format(port=bridged_to))
        yield Pair(near, far, (here, there))


def compare(clients: int, rounds: int, messages: int) -> list[tuple[str, ...]]:
    """Rows of the table for so many producers and consumers."""
    scenario = replace(QUEUE_SCENARIO, producers=clients, route=replace(QUEUE_SCENARIO.route, consumers=clients))
    with ExitStack() as stack:
        pairs = {_title(*pair): stack.enter_context(joined(*pair, scenario)) for pair in PAIRS}
        for pair in pairs.values():
            pair.measure(scenario, messages // 4)  # warms it up
        found: dict[str, list[tuple[Outcome, float, float]]] = {title: [] for title in pairs}
        for _ in range(rounds):
            for title, pair in pairs.items():
                found[title].append(pair.measure(scenario, messages))
    rates = {title: median(outcome.rate for outcome, *_ in runs) for title, runs in found.items()}
    slowest = rates[_title(*PAIRS[0])]
    return [
        (
            title, str(clients), f"{rates[title]:,.0f}", f"{median(cpu for _, cpu, _ in runs):,.0f} us",
            f"{median(near for *_, near in runs):,.0f} us", f"{rates[title] / slowest:.1f} times two ActiveMQs",
        )
        for title, runs in found.items()
    ]  # fmt: skip


def _title(near: type[ActiveMQ] | type[Sluice], far: type[ActiveMQ] | type[Sluice], protocol: str) -> str:
    """Return how a pair is called in the table."""
    if near is far:
        return f"two {near.title}"
    return f"{near.title} to {far.title} over {protocol}"


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
