"""Command line: `python -m benchmarks.analytics` measures and prints; see docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analytics.request import Window
from analytics.session import connected
from benchmarks.analytics import archiver, oracle, server, traffic
from benchmarks.analytics.questions import ASKED, ask_duckdb, ask_spark

EVENTS, HOURS = 10_000_000, 24
#: What a small archive holds, for the first result after a start.
SMALL, SMALL_HOURS = 100_000, 3
ROUNDS, WARM_UP = 3, 2
LIMIT = 4.0  #: times DuckDB's time
FIRST_SECONDS, WARM_SECONDS = 10.0, 1.5
PATIENCE = 240.0  #: seconds for a server to start, on a machine that does much else


def main() -> int:
    """Measure; 1 when a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="about so many (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=HOURS, help="over which they are spread (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the best of these counts (default: %(default)s)")
    parser.add_argument("--only", nargs="*", metavar="KIND", help="of these analyses only, or `archiver`")
    parser.add_argument("--archive", type=Path, help="a folder to keep the events in, and to find them again")
    arguments = parser.parse_args()
    if arguments.only == ["archiver"]:
        return 0 if archiver.compare() else 1
    with tempfile.TemporaryDirectory() as folder:
        met = bool(arguments.only) or _first_result(Path(folder) / "small")
        met &= _compare(arguments, Path(folder))
    return 0 if met else 1


def _first_result(folder: Path) -> bool:
    """How long the first result takes after a start, and the next one, on a small archive."""
    archive, window = folder / "archive", traffic.window_of(SMALL_HOURS)
    traffic.generate(archive, SMALL, SMALL_HOURS)
    with server.running(folder) as (environment, _):
        first = _timed(lambda: ask_spark(connected(environment, PATIENCE), archive, ASKED[0], window))
        ask_spark(connected(environment, PATIENCE), archive, ASKED[0], window)
        warm = _timed(lambda: ask_spark(connected(environment, PATIENCE), archive, ASKED[0], window))
    print(f"{SMALL:,} events: first result after the start {first:.1f} s ({FIRST_SECONDS:g} at most), ", end="")
    print(f"warm {warm:.2f} s ({WARM_SECONDS:g} at most)\n", flush=True)
    return first <= FIRST_SECONDS and warm <= WARM_SECONDS


def _compare(arguments: argparse.Namespace, folder: Path) -> bool:
    """Every analysis beside DuckDB; whether none takes longer than the limit."""
    archive = arguments.archive or folder / "archive"
    if not archive.exists():
        traffic.generate(archive, arguments.events, arguments.hours)
    today = traffic.window_of(arguments.hours)
    whole = Window(today.since_us - traffic.WEEK_US, today.until_us)
    duck = oracle.connect(archive, whole)
    events = duck.sql("SELECT count(*) FROM events").fetchall()[0][0]
    print(f"{events:,} events, the best of {arguments.rounds}, seconds\n")
    print(f"{'':<14}{'elapsed':^24}{'CPU time':^24}")
    print(f"{'analysis':<14}" + f"{'Spark':>8}{'DuckDB':>8}{'ratio':>8}" * 2, flush=True)
    met = True
    with server.running(folder) as (environment, pid):
        session = connected(environment, PATIENCE)
        for asked in ASKED:
            if arguments.only and asked.kind not in arguments.only:
                continue
            window = today if asked.kind == "weeks" else whole  # which reads the week before by itself
            spark = _best(arguments.rounds, pid, lambda a=asked, w=window: ask_spark(session, archive, a, w))
            duckdb = _best(arguments.rounds, None, lambda a=asked, w=window: ask_duckdb(duck, a, w))
            met &= spark[0] <= LIMIT * duckdb[0]
            print(f"{asked.kind:<14}{_beside(spark[0], duckdb[0])}{_beside(spark[1], duckdb[1])}", flush=True)
    return met


def _beside(ours: float, theirs: float) -> str:
    return f"{ours:>8.2f}{theirs:>8.2f}{ours / theirs:>8.1f}"


def _best(rounds: int, pid: int | None, work: Callable[[], Any]) -> tuple[float, float]:
    """The least time that passed, and the least CPU time of this process and the other one.

    On a machine that does much else only the CPU time says something.
    """
    for _ in range(WARM_UP):
        work()
    found = []
    for _ in range(rounds):
        before = _cpu(pid)
        elapsed = _timed(work)
        found.append((elapsed, _cpu(pid) - before))
    return min(each for each, _ in found), min(each for _, each in found)


def _cpu(pid: int | None) -> float:
    return time.process_time() + (server.cpu_seconds(pid) if pid else 0)


def _timed(work: Callable[[], Any]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


if __name__ == "__main__":
    sys.exit(main())
