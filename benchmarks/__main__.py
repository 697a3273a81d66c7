"""Command line: `python -m benchmarks` measures and prints; see docs/benchmarks.md."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Callable, Iterable

from benchmarks.activemq import ActiveMQ
from benchmarks.process import StartFailed
from benchmarks.rabbitmq import RabbitMQ
from benchmarks.report import FIGURES_HEAD, OURS, RATIOS_HEAD, figures, ratios, table
from benchmarks.rounds import Peer, measure
from benchmarks.scenarios import SCENARIOS
from benchmarks.sluice import Sluice, Untraced

#: In the order of their turns.
PEERS = {each.name: each for each in (ActiveMQ, RabbitMQ, Sluice, Untraced)}
#: Those compared when nobody says otherwise.
USUAL = [ActiveMQ.name, RabbitMQ.name, Sluice.name]
#: Share of the messages that a quick run sends, in one round,
QUICK = 0.05
#: and the scenarios it runs unless others are asked for: one of each kind.
QUICK_SCENARIOS = ("queue", "fan-out-100", "filtered-10", "non-persistent")


def main() -> int:
    """Run the scenarios asked for; 0 when no broker failed in any."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = arguments.only or (QUICK_SCENARIOS if arguments.quick else [each.name for each in SCENARIOS])
    scenarios = [each for each in SCENARIOS if each.name in names]
    rounds, scale = (1, QUICK) if arguments.quick else (arguments.rounds, 1)
    rows, ratio_rows, failures = [], [], []
    for scenario in scenarios:
        peers = [PEERS[name]() for name in PEERS if name in arguments.peers and PEERS[name].pace in scenario.messages]
        try:
            results = measure(scenario, peers, rounds, scale, _profiler_hint if arguments.profile else _no_hint)
        except StartFailed as error:
            print(f"{scenario.name}: a broker did not start: {error}", file=sys.stderr)
            return 1
        rows += figures(scenario, results)
        ratio_rows += ratios(scenario, results)
        failures += [f"{each.peer}: {each.failure}" for each in results.values() if each.failure]
        print(f"{scenario.title}\n\n{table(FIGURES_HEAD, figures(scenario, results))}\n", flush=True)
    print(f"All, medians of {rounds}:\n\n{table(FIGURES_HEAD, rows)}")
    if ratio_rows:
        print(f"\nSluice, times the other's rate:\n\n{table(RATIOS_HEAD, ratio_rows)}")
    for each in failures:
        print(f"FAILED {each}", file=sys.stderr)
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Sluice beside ActiveMQ and RabbitMQ.")
    names = [each.name for each in SCENARIOS]
    parser.add_argument("--only", type=_among(names), help=f"scenarios, of {', '.join(names)}")
    parser.add_argument("--peers", type=_among(PEERS), default=USUAL, help=f"brokers, of {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each broker, whose median counts")
    parser.add_argument("--quick", action="store_true", help="some scenarios, one short round each: a smoke test")
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
    if peer.name != OURS:
        return
    if not shutil.which("py-spy"):
        print("py-spy is not installed: pip install py-spy")
        return
    print(f"py-spy record --native --duration 30 --output sluice.svg --pid {peer.process.pid}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
