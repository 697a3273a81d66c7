"""Command line: `python -m benchmarks.analytics` measures and prints; see docs/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from analytics.requests.request import TimeWindow
from analytics.spark.session import connect
from benchmarks.analytics import archiver, duckdb_queries, first_result, server, traffic
from benchmarks.analytics.questions import ASKED, Asked, ask_duckdb, ask_spark

EVENTS, HOURS = 10_000_000, 24
#: From how many events to how many time is to grow no faster than they do.
GROWTH = (1_000_000, 50_000_000)
ROUNDS, WARM_UP = 3, 3
LIMIT = 2.5  #: times DuckDB's time
FIRST_SECONDS, WARM_SECONDS = 8.0, 1.5
ARCHIVER, FIRST, GROWS = "archiver", "first", "growth"


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took: seconds that passed, and of the processors."""

    elapsed: float
    cpu: float

    @staticmethod
    def best(rounds: Iterable[Took]) -> Took:
        """The least of each: on a machine that does much else only the second says something."""
        found = list(rounds)
        return Took(min(each.elapsed for each in found), min(each.cpu for each in found))


def main() -> int:
    """Measure; 1 when a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="about so many (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=HOURS, help="over which they are spread (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the best of these counts (default: %(default)s)")
    kinds = [each.kind for each in ASKED]
    parser.add_argument(
        "--only", nargs="+", choices=(*kinds, ARCHIVER, FIRST, GROWS), metavar="WHAT",
        help=f"these analyses only, or {ARCHIVER}, {FIRST} (result after a start), {GROWS}",
    )  # fmt: skip
    parser.add_argument("--archive", type=Path, help="a folder to keep archives in, and to find them again")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # and with it the servers that were started
    wanted = arguments.only or (*kinds, ARCHIVER, FIRST, GROWS)
    asked = [each for each in ASKED if each.kind in wanted]
    with tempfile.TemporaryDirectory() as name:
        folder, archives = Path(name), arguments.archive or Path(name) / "archives"
        met = [ARCHIVER not in wanted or archiver.compare(), FIRST not in wanted or _first_result(folder / "small")]
        if asked and (set(wanted) & set(kinds)):
            archive = _archive(archives, arguments.events, arguments.hours)
            met.append(_compare(asked, archive, arguments.hours, arguments.rounds, folder))
        if GROWS in wanted:
            met.append(_grows(asked or ASKED, archives, arguments.hours, folder))
    print("\nall bars are met" if all(met) else "\nA BAR IS NOT MET", flush=True)
    return 0 if all(met) else 1


def _archive(folder: Path, events: int, hours: int) -> Path:
    """An archive of about so many events, made if it is not there."""
    made = folder / f"{events}-{hours}"
    if not made.exists():
        unfinished = made.with_suffix(".part")
        traffic.generate(unfinished, events, hours)
        unfinished.rename(made)
    return made


def _first_result(folder: Path) -> bool:
    """How long somebody waits who asks as soon as an installation has started, and later."""
    took = first_result.measure(folder)
    print(f"\n{first_result.EVENTS:,} events: ready {took.ready:.1f} s after the start; asked at once, ", end="")
    print(f"the first result after {took.first:.1f} s ({FIRST_SECONDS:g} at most), ", end="")
    print(f"later after {took.warm:.2f} s ({WARM_SECONDS:g} at most)")
    print("CPU seconds of all processes in the same: {:.1f}, {:.1f}, {:.2f}".format(*took.cpu), flush=True)
    return took.first <= FIRST_SECONDS and took.warm <= WARM_SECONDS


# -- beside DuckDB


def _compare(asked: Sequence[Asked], archive: Path, hours: int, rounds: int, folder: Path) -> bool:
    """Every analysis beside DuckDB, in turn; whether none takes longer than the limit."""
    whole = _whole(hours)
    duck = duckdb_queries.connect(archive, whole)
    print(f"\n{_count(archive, hours):,} events, the best of {rounds}, seconds; {LIMIT:g} times DuckDB's at most\n")
    print(f"{'':<14}{'elapsed':^24}{'CPU time':^24}")
    print(f"{'analysis':<14}" + f"{'Spark':>8}{'DuckDB':>8}{'ratio':>8}" * 2, flush=True)
    met = True
    with _session(folder) as (session, pid):
        for each in asked:
            window = _window(each, hours)
            sides = (
                (pid, lambda a=each, w=window: ask_spark(session, archive, a, w)),
                (None, lambda a=each, w=window: ask_duckdb(duck, a, w)),
            )
            spark, duckdb = _side_by_side(sides, rounds)
            met &= spark.elapsed <= LIMIT * duckdb.elapsed
            print(
                f"{each.kind:<14}{_beside(spark.elapsed, duckdb.elapsed)}{_beside(spark.cpu, duckdb.cpu)}", flush=True
            )
    return met


def _side_by_side(sides: Sequence[tuple[int | None, Callable[[], Any]]], rounds: int) -> list[Took]:
    """The best of each side, which take turns: what else the machine does then disturbs both alike."""
    for _ in range(WARM_UP):
        for _, work in sides:
            work()
    found: list[list[Took]] = [[] for _ in sides]
    for _ in range(rounds):
        for taken, (pid, work) in zip(found, sides, strict=True):
            taken.append(_took(pid, work))
    return list(map(Took.best, found))


def _beside(ours: float, theirs: float) -> str:
    return f"{ours:>8.2f}{theirs:>8.2f}{ours / theirs:>8.1f}"


# -- growth


def _grows(asked: Sequence[Asked], archives: Path, hours: int, folder: Path) -> bool:
    """Whether fifty times the events take no more than fifty times as long."""
    few, many = (_archive(archives, events, hours) for events in GROWTH)
    factor = _count(many, hours) / _count(few, hours)
    print(f"\ngrowth: {factor:.1f} times the events take so many times as long\n")
    print(f"{'analysis':<14}{'few, s':>8}{'many, s':>9}{'times':>8}{'CPU':>8}", flush=True)
    met = True
    with _session(folder) as (session, pid):
        for each in asked:
            window, took = _window(each, hours), []
            for archive, warm in ((few, WARM_UP), (many, 1)):
                work = lambda a=archive, e=each, w=window: ask_spark(session, a, e, w)  # noqa: E731
                for _ in range(warm):
                    work()
                took.append(Took.best(_took(pid, work) for _ in range(2)))
            times, cpu = took[1].elapsed / took[0].elapsed, took[1].cpu / took[0].cpu
            met &= times <= factor
            print(f"{each.kind:<14}{took[0].elapsed:>8.2f}{took[1].elapsed:>9.2f}{times:>8.1f}{cpu:>8.1f}", flush=True)
    return met


# -- parts


@contextmanager
def _session(folder: Path) -> Iterator[tuple[SparkSession, int]]:
    with server.running(folder) as (environment, pid):
        yield connect(environment, server.PATIENCE), pid


def _whole(hours: int) -> TimeWindow:
    """Today and the week before."""
    today = traffic.window_of(hours)
    return TimeWindow(today.since_us - traffic.WEEK_US, today.until_us)


def _window(asked: Asked, hours: int) -> TimeWindow:
    """What is asked about: all there is. `weeks` reads the week before by itself."""
    return traffic.window_of(hours) if asked.kind == "weeks" else _whole(hours)


def _count(archive: Path, hours: int) -> int:
    return duckdb_queries.connect(archive, _whole(hours)).sql("SELECT count(*) FROM events").fetchall()[0][0]


def _took(pid: int | None, work: Callable[[], Any]) -> Took:
    """CPU time of this process and the other one."""
    cpu, start = _cpu(pid), time.monotonic()
    work()
    return Took(time.monotonic() - start, _cpu(pid) - cpu)


def _cpu(pid: int | None) -> float:
    return time.process_time() + (server.cpu_seconds(pid) if pid else 0)


if __name__ == "__main__":
    sys.exit(main())
