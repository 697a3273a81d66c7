"""`python -m benchmarks.variations`: whether what a message costs Sluice depends on how alike messages are.

The same orders are sent as applications may send them: with their headers in another order, some more or fewer, sizes
and destinations mixed, frames split anywhere. The CPU of a delivery, node and store together, must stay within a tenth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.document import Record
from benchmarks.comparison.report import table
from benchmarks.comparison.rounds import Measurement, measured_run, running
from benchmarks.generator.traffic import Traffic
from benchmarks.scenarios.variations import BASE, VARIATIONS

#: Times the CPU of the base that a variation may cost.
ALLOWED = 1.1
HEAD = ("variation", "deliveries/s", "CPU of a delivery", "times the base", "verdict")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when no variation costs more than a tenth more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each, whose median counts")
    parser.add_argument("--scale", type=float, default=1, help="share of the messages that is sent")
    parser.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    asked, record = parser.parse_args(arguments), Record("variations")
    found = measure(asked.rounds, int(BASE.messages[Sluice.pace] * asked.scale))
    rows = variation_rows(found)
    print(table(HEAD, rows))
    if asked.record:
        record.write(f"{record.conditions()}\n\n{table(HEAD, rows)}")
    return 0 if all(row[-1] != "missed" for row in rows) else 1


def measure(rounds: int, messages: int) -> dict[str, list[Measurement]]:
    """Runs of the base and of all variations, in turn, against one node; by their titles."""
    traffic = [Traffic(each) for each in (BASE, *VARIATIONS)]
    found: dict[str, list[Measurement]] = {each.scenario.title: [] for each in traffic}
    peer = Sluice()
    with running(BASE, [peer]) as addresses:
        for number in range(rounds + 1):
            for each in traffic:
                run = measured_run(each, peer, addresses[peer.name], messages)
                if number:  # the first round warms up
                    found[each.scenario.title].append(run)
    return found


def variation_rows(found: dict[str, list[Measurement]]) -> list[tuple[str, ...]]:
    """A row for the base and for each variation, which is compared with the base of the same round."""
    base = found[BASE.title]
    rows = []
    for title, runs in found.items():
        times = median(run.broker_cpu_us / beside.broker_cpu_us for run, beside in zip(runs, base, strict=True))
        verdict = "" if runs is base else "reached" if times <= ALLOWED else "missed"
        rate, cpu = median(run.outcome.rate for run in runs), median(run.broker_cpu_us for run in runs)
        rows.append((title, f"{rate:,.0f}", f"{cpu:.1f} us", f"{times:.2f}", verdict))
    return rows


if __name__ == "__main__":
    sys.exit(main())
