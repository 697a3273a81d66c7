"""`python -m benchmarks.floor`: how far Sluice is from the least that a delivery can cost.

Measures three things: what the store alone takes to append and delete orders in batches of several sizes, synced to
disk; what the minimal broker of `benchmarks/brokers/minimal.py` takes for the rows of the benchmark; and what Sluice
takes for them, in the same run. CPU counts, because it depends little on what else the machine does.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.brokers.minimal import Minimal, append_call, delete_call, resp
from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.document import Record
from benchmarks.comparison.report import table
from benchmarks.comparison.rounds import Result, measure
from benchmarks.scenarios.messages import Orders, first_number
from benchmarks.scenarios.rows import SCENARIOS, Scenario
from brokerapp.store.server.embedded import EmbeddedStore

#: Rows that the minimal broker can do.
ROWS = (
    "queue", "one-header", "identical", "queue-8x8", "fan-out-3", "fan-out-10", "fan-out-100", "non-persistent",
    "services", "transactions", "wildcards", "large",
)  # fmt: skip
BATCHES = (1, 10, 50, 500)
#: Seconds for which a size of batches is measured.
STORE_SECONDS = 2.0
STORE_HEAD = ("messages in a batch", "messages/s", "CPU of the store")
HEAD = ("row", "floor: node", "floor: store", "floor", "Sluice: node", "Sluice: store", "Sluice", "times the floor")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when no run failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each, whose median counts")
    parser.add_argument("--scale", type=float, default=1, help="share of the messages that is sent")
    parser.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    asked, record = parser.parse_args(arguments), Record("floor")
    alone = f"The store alone:\n\n{table(STORE_HEAD, store_rows())}"
    print(f"{alone}\n", flush=True)
    rows, failures = [], []
    for scenario in (each for each in SCENARIOS if each.name in asked.rows):
        results = measure(scenario, [Minimal(), Sluice()], asked.rounds, asked.scale, lambda _: None)
        failures += [f"{scenario.name}: {each.peer}: {each.failure}" for each in results.values() if each.failure]
        if all(each.rounds for each in results.values()):
            rows.append(floor_row(scenario, results[Minimal.name], results[Sluice.name]))
    print(table(HEAD, rows))
    if asked.record:
        record.write(f"{record.conditions()}\n\n{table(HEAD, rows)}\n\n{alone}")
    for each in failures:
        print(f"FAILED {each}", file=sys.stderr)
    return 1 if failures else 0


def floor_row(scenario: Scenario, floor: Result, ours: Result) -> tuple[str, ...]:
    """CPU of a delivery at the floor and at Sluice, of node and store apart and together."""
    cells, together = [], []
    for result in (floor, ours):
        both = result.median(lambda each: each.broker_cpu_us)
        store = result.median(lambda each: each.store_cpu_us)
        cells += [f"{each:.1f} us" for each in (both - store, store, both)]
        together.append(both)
    return (scenario.name, *cells, f"{together[1] / together[0]:.1f}" if together[0] else "")


def store_rows() -> list[tuple[str, ...]]:
    """What the store takes for orders that are appended, and deleted with the next batch, by the size of batches."""
    orders = Orders()
    messages = [
        "".join(f"{name}:{value}\n" for name, value in orders.headers(number).items()).encode() + orders.body(number)
        for number in range(first_number(0), first_number(0) + 1000)
    ]
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-floor-") as folder, EmbeddedStore(Path(folder)) as store:
        process = psutil.Process(store.pid)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(store.url.removeprefix("unix://"))
            first = 1
            for size in BATCHES:
                before, began, start = process.cpu_times(), time.perf_counter(), first
                while time.perf_counter() - began < STORE_SECONDS:
                    _append_and_delete(connection, first, [messages[(first + each) % 1000] for each in range(size)])
                    first += size
                seconds, after = time.perf_counter() - began, process.cpu_times()
                cpu = after.user + after.system - before.user - before.system
                count = first - start
                rows.append((str(size), f"{count / seconds:,.0f}", f"{cpu / count * 1e6:.1f} us"))
    return rows


def _append_and_delete(connection: socket.socket, first: int, messages: Sequence[bytes]) -> None:
    """Append a batch and delete the one of the same size before it, in one write; return when the disk has both."""
    earlier = (b"%d" % number for number in range(max(1, first - len(messages)), first))
    deleted = [resp(delete_call(b"floor", earlier))] if first > 1 else []
    connection.sendall(b"".join([resp(append_call([b"floor"], first, messages)), *deleted]))
    answers = b""
    while answers.count(b"\n") < 1 + len(deleted):
        answers += connection.recv(4096)
    if b"-" in answers:
        raise SystemExit(f"the store answered {answers!r}")


if __name__ == "__main__":
    sys.exit(main())
