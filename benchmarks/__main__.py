"""Command line: `python -m benchmarks` measures and prints; see docs/benchmarks.md."""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.brokers.activemq import ActiveMQ
from benchmarks.brokers.process import StartFailed
from benchmarks.brokers.rabbitmq import RabbitMQ
from benchmarks.brokers.sluice import OverTls, OverWebSocket, Sluice, Untraced
from benchmarks.comparison import latency, memory, report
from benchmarks.comparison.document import Record
from benchmarks.comparison.report import table
from benchmarks.comparison.rounds import Peer, Result, measure
from benchmarks.scaling import measure_scaling
from benchmarks.scenarios.rows import SCENARIOS, Scenario

#: In the order of their turns.
PEERS = {each.name: each for each in (ActiveMQ, RabbitMQ, Sluice, Untraced, OverTls, OverWebSocket)}
#: Those compared when nobody says otherwise.
USUAL = [ActiveMQ.name, RabbitMQ.name, Sluice.name]
NAMES = [*(each.name for each in SCENARIOS), latency.NAME, memory.NAME]
#: Share of the messages that a quick run sends, in one round,
QUICK = 0.05
#: and the scenarios it runs unless others are asked for: one of each kind.
QUICK_SCENARIOS = ("queue", "fan-out-100", "filtered-10", "non-persistent", latency.NAME, memory.NAME)
#: Minutes after which no other scenario is begun.
MINUTES = 40.0


class Report:
    """The results of the rows measured so far."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.rounds, self.scale = (1, QUICK) if arguments.quick else (arguments.rounds, arguments.scale)
        self._peers = arguments.peers
        self._started = _profiler_hint if arguments.profile else _no_hint
        self._found: list[tuple[Scenario, Mapping[str, Result]]] = []
        self._others: list[str] = []  # tables of what is no scenario
        self.failures: list[str] = []

    def peers(self, scenario: Scenario | None = None) -> list[Peer]:
        """Those asked for that can take part, in the order of their turns."""
        found = [PEERS[name]() for name in PEERS if name in self._peers]
        return [each for each in found if scenario is None or each.pace in scenario.messages]

    def throughput(self, scenario: Scenario) -> None:
        """Measure one scenario of the table."""
        results = measure(scenario, self.peers(scenario), self.rounds, self.scale, self._started)
        self._found.append((scenario, results))
        self._note(scenario.title, report.FIGURES_HEAD, report.figures(scenario, results), results.values())

    def latency(self) -> None:
        """Measure latency."""
        rate, results = latency.measure_latency(self.peers(), self.rounds, self.scale)
        title = f"{latency.TITLE}, {rate:,.0f} messages a second"
        self._others.append(self._note(title, report.LATENCY_HEAD, report.latencies(results), results.values()))

    def memory(self) -> None:
        """Measure memory."""
        results = memory.measure_memory(self.peers(), self.scale)
        self._others.append(self._note(memory.TITLE, report.MEMORY_HEAD, report.memory(results), results.values()))

    def _note(self, title: str, head: Sequence[str], rows: Iterable[Sequence[str]], results: Iterable) -> str:
        text = f"{title[0].upper()}{title[1:]}:\n\n{table(head, rows)}"
        print(f"{text}\n", flush=True)
        self.failures += [f"{each.peer}: {each.failure}" for each in results if each.failure]
        return text

    def __str__(self) -> str:
        """All rows in one table, as the page on benchmarks has them."""
        title = f"Sluice's rate as a multiple of the other brokers', medians of {self.rounds}:"
        tables = [f"{title}\n\n{table(*report.summary(self._found))}"] if self._found else []
        return "\n\n".join([*tables, *self._others])


def main() -> int:
    """Run what was asked for; 0 when no broker failed in any, and nothing was left out."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection is a file, here and in the brokers
    if arguments.scaling:
        return measure_scaling(QUICK if arguments.quick else 1)
    names = arguments.only or (QUICK_SCENARIOS if arguments.quick else NAMES)
    scenarios = {each.name: each for each in SCENARIOS}
    record, found, end = Record("results"), Report(arguments), time.monotonic() + arguments.minutes * 60
    others: dict[str, Callable[[], None]] = {latency.NAME: found.latency, memory.NAME: found.memory}
    for name in (each for each in NAMES if each in names):
        if time.monotonic() > end:
            found.failures.append(f"{name}: left out, {arguments.minutes:g} minutes are over")
            continue
        try:
            if name in scenarios:
                found.throughput(scenarios[name])
            else:
                others[name]()
        except StartFailed as error:
            found.failures.append(f"{name}: a broker did not start: {error}")
    print(found)
    if arguments.record:
        record.write(f"{record.conditions()}\n\n{found}")
    for each in found.failures:
        print(f"FAILED {each}", file=sys.stderr)
    return 1 if found.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Sluice beside ActiveMQ and RabbitMQ.")
    parser.add_argument("--only", type=_among(NAMES), help=f"scenarios, of {', '.join(NAMES)}")
    parser.add_argument("--peers", type=_among(PEERS), default=USUAL, help=f"brokers, of {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each broker, whose median counts")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="after so long no other scenario is begun")
    parser.add_argument("--scale", type=float, default=1, help="share of the messages that is sent")
    parser.add_argument("--scaling", action="store_true", help="what a message costs Sluice as the broker grows")
    parser.add_argument("--quick", action="store_true", help="some scenarios, one short round each: a smoke test")
    parser.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    parser.add_argument("--profile", action="store_true", help="print how to attach py-spy to Sluice while it runs")
    return parser.parse_args()


def _among(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        asked = text.split(",")
        if unknown := sorted(set(asked) - set(known)):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return asked

    return names


def _no_hint(peer: Peer) -> None:
    pass


def _profiler_hint(peer: Peer) -> None:
    if peer.name != report.OURS:
        return
    if not shutil.which("py-spy"):
        print("py-spy is not installed: pip install py-spy")
        return
    print(f"py-spy record --native --duration 30 --output sluice.svg --pid {peer.process.pid}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
