"""Months of history: `python -m benchmarks.analytics.tables` times analyses over tables and compares what tables cost.

It records some events as a node and the archiver do, compacts them, and measures the CPU time of both, and that of
building the tables of hours that are as busy. Then it generates days of traffic with a weekly pattern, builds their
hourly and daily tables with Spark, and runs analyses over all days, from tables and from raw events.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import redis
from pyspark.sql import SparkSession

from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.compaction import LATE_EVENTS_US, PendingMerges, compact, next_merge_group
from analytics.archive.data_files import hour_folders
from analytics.archive.trace_stream import TraceStream
from analytics.requests.request import AnalysisRequest
from analytics.spark.run_execution import RunExecution
from analytics.spark.session import connect, fetch
from analytics.spark.tables.rows import spark_rows
from analytics.tables.builder import TableBuilder
from analytics.tables.catalog import TableCatalog
from analytics.tables.definitions import DAY_US, HOUR_US
from analytics.tables.storage import FolderStorage
from benchmarks import tracing_cost
from benchmarks.analytics import server, traffic
from brokerapp.store.client.keys import trace_key
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.environment import Environment
from brokerapp.tracing.recorder import BATCH_EVENTS, TraceRecorder

DAYS, EVENTS = 30, 1_000_000
#: A Sunday, 00:00 UTC.
FIRST_DAY_US = 1_759_017_600_000_000
#: Part of a weekday's traffic that each day has, from Sunday on.
WEEK = (0.4, 1.0, 1.1, 1.1, 1.05, 1.0, 0.6)
ANALYSES = ("traffic", "latency", "dead-letters", "fan-out", "league", "depth")
#: Seconds of an analysis over all days at most, and the part of the cost of recording that tables may cost.
LIMIT_SECONDS, LIMIT_PART = 3.0, 0.1
MEASURED = ("traffic", "latency", "dead-letters", "depth")
#: Hours and events of each, of which tables are built to compare their cost: as busy as the hour that is recorded.
BUSY_HOURS, BUSY_EVENTS = 6, 1_000_000
#: Appends of an hour, as the archiver makes them every five seconds.
APPENDS = 720
#: Rounds of which the best counts.
ROUNDS, RAW_ROUNDS, WARM_UP = 3, 1, 2


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """Microseconds of CPU per event."""

    node: float
    archiver: float
    compaction: float

    @property
    def recording(self) -> float:
        """Return what recording costs: the node and the archiver."""
        return self.node + self.archiver


class TimedMerges(PendingMerges):
    """Merged files that are written while the archiver appends: their CPU time is a part of compaction."""

    seconds = 0.0

    def add(self, hour: Path, name: str, events: pa.Table, keys: np.ndarray) -> None:
        """Add events and the CPU time that it takes."""
        began = time.process_time()
        super().add(hour, name, events, keys)
        self.seconds += time.process_time() - began


def main() -> int:
    """Measure and print; 1 when a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics.tables", description=__doc__)
    parser.add_argument("--days", type=int, default=DAYS, help="days of traffic (default: %(default)s)")
    parser.add_argument("--events", type=int, default=EVENTS, help="events of a weekday, about (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="a folder to keep the installation in, and to find it again")
    parser.add_argument("--no-raw", action="store_true", help="do not run the analyses over raw events")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        cost = _recording_cost(Path(name))
        folder = arguments.folder or Path(name) / "installation"
        folder.mkdir(parents=True, exist_ok=True)
        return _measure(folder, arguments.days, arguments.events, cost, not arguments.no_raw)


def _recording_cost(folder: Path) -> RecordingCost:
    """Record events of a queue one by one, archive them as those of an hour, and compact the hour."""
    name, events, share = traffic.BROKER, 0, BATCH_EVENTS // 4 // 12
    with EmbeddedStore(folder / "store") as store:
        stream, archive = TraceStream(store.url, name), BrokerArchive(folder / "archive", name)
        archive.pending = merges = TimedMerges(archive.work)
        archiver, node, archived = Archiver(stream, archive, lambda _: None), 0.0, 0.0
        with redis.Redis.from_url(store.url) as client:
            for append in range(APPENDS):
                messages = [tracing_cost.message(number) for number in range(append * share, (append + 1) * share)]
                began = time.process_time()
                recorder = TraceRecorder(name)
                tracing_cost.one_by_one(recorder, messages)
                while batch := recorder.take_encoded():
                    client.xadd(trace_key(name), {"b": batch[0], "n": batch[1]})
                    events += batch[1]
                node, began = node + time.process_time() - began, time.process_time()
                while not archiver.flush():
                    pass
                archived += time.process_time() - began
        archiver.close()
        stream.close()
    began = time.process_time()
    for hour in hour_folders(archive.folder):
        while group := next_merge_group(hour):
            compact(hour, group, archive.work, (), lambda _: None, merges)
    compacted = time.process_time() - began + merges.seconds
    found = RecordingCost(*(each / events * 1e6 for each in (node, archived - merges.seconds, compacted)))
    print(f"{events:,} events of a queue, {APPENDS} appends an hour; microseconds of CPU per event:")
    print(f"node {found.node:.2f}, archiver {found.archiver:.2f}, compaction {found.compaction:.3f}", flush=True)
    return found


def _measure(folder: Path, days: int, events: int, cost: RecordingCost, with_raw: bool) -> int:
    with server.running(folder) as (found, pid):
        environment = replace(found, redis_url=f"unix://{folder}/no-store", broker_name=traffic.BROKER)
        _generate(environment, days, events)
        session = connect(environment, server.PATIENCE)
        met = _cost_of_tables(session, folder, pid, cost)
        _build_all(session, environment, pid, days)
        print(f"\nseconds over {days} days, the best of {ROUNDS}; {LIMIT_SECONDS:g} at most\n")
        print(f"{'analysis':<14}{'tables':>8}{'CPU':>8}{'raw':>8}{'CPU':>8}   levels read", flush=True)
        for kind in ANALYSES:
            tables, result = _run(environment, pid, kind, days, ROUNDS)
            raw = None
            if with_raw:
                bare = replace(environment, data=_without_tables(environment))
                raw, _ = _run(bare, pid, kind, days, RAW_ROUNDS)
            beside = f"{raw[0]:>8.2f}{raw[1]:>8.2f}" if raw else f"{'':>16}"
            print(f"{kind:<14}{tables[0]:>8.2f}{tables[1]:>8.2f}{beside}   {result['levels']}", flush=True)
            met = met and (kind not in MEASURED or tables[0] <= LIMIT_SECONDS)
    print("\nall bars are met" if met else "\nA BAR IS NOT MET")
    return 0 if met else 1


def _generate(environment: Environment, days: int, events: int) -> None:
    """Fill the archive with days of traffic, unless it is there."""
    spans = ((FIRST_DAY_US + day * DAY_US, DAY_US, round(events * WEEK[day % 7])) for day in range(days))
    _fill(environment.archive, spans)


def _fill(archive: Path, spans: Iterable[tuple[int, int, int]]) -> None:
    """Fill an archive with traffic: start and length of each span in microseconds, and its events, about."""
    if archive.exists():
        return
    dice, made = np.random.default_rng(7), archive.with_name("archive.part")
    shutil.rmtree(made, ignore_errors=True)
    written = 0
    for start, length, events in spans:
        found = traffic.stretch(dice, start, length, round(events / traffic.EVENTS_A_MESSAGE), start + length)
        written += traffic.write(made, found, f"{start // 1000}-0")
    traffic.commit(made, f"{start // 1000}-0", written)
    made.rename(archive)
    print(f"{written:,} events generated", flush=True)


def _cost_of_tables(session: SparkSession, folder: Path, pid: int, cost: RecordingCost) -> bool:
    """Build the tables of hours as busy as the one that was recorded; whether they cost little."""
    archive, tables = folder / "busy" / "archive", folder / "busy" / "tables"
    tables.parent.mkdir(exist_ok=True)
    _fill(archive, [(FIRST_DAY_US, BUSY_HOURS * HOUR_US, BUSY_HOURS * BUSY_EVENTS)])
    ends = [FIRST_DAY_US + (hour + 1) * HOUR_US + LATE_EVENTS_US for hour in range(BUSY_HOURS)]
    met = True
    for title, steps in (("first use", ends[-1:]), ("all hours at once", ends[-1:]), ("each hour at its end", ends)):
        shutil.rmtree(tables, ignore_errors=True)
        per_event = _build(session, FolderStorage(tables), archive, pid, f"busy hours, {title}", FIRST_DAY_US, steps)
        part = (per_event + cost.compaction) / cost.recording
        print(f"with compaction {part:.1%} of recording ({cost.recording:.2f})", flush=True)
        met = met and (title == "first use" or part <= LIMIT_PART)
    return met


def _build_all(session: SparkSession, environment: Environment, pid: int, days: int) -> None:
    """Build the tables of all days at once, and those of the last day again a quarter at a time."""
    shutil.rmtree(environment.tables, ignore_errors=True)
    storage, end = FolderStorage(environment.tables), FIRST_DAY_US + days * DAY_US + HOUR_US
    quarters = [end - hours * HOUR_US for hours in (18, 12, 6, 0)]
    for title, since, steps in (
        ("all days at once", FIRST_DAY_US, [end]),
        ("a day every 6 hours", end - HOUR_US - DAY_US, quarters),
    ):
        for each in TableCatalog.all_of(storage, environment.archive):
            for day in [day for day in each.days() if day >= since]:
                storage.delete(each.name(day, "manifest.json"))
        _build(session, storage, environment.archive, pid, title, since, steps)
    size = sum(path.stat().st_size for path in environment.tables.rglob("*.parquet"))
    raw = sum(path.stat().st_size for path in environment.archive.rglob("*.parquet"))
    print(f"size: archive {raw / 1e6:,.0f} MB, tables {size / 1e6:,.1f} MB", flush=True)


def _build(
    session: SparkSession, storage: FolderStorage, archive: Path, pid: int, title: str, since: int, steps: list[int]
) -> float:
    """Build the tables as at these times; return the microseconds of CPU per event."""
    rows_of, events = spark_rows(session, fetch), 0

    def work() -> None:
        nonlocal events
        for now_us in steps:
            for each in TableCatalog.all_of(storage, archive):
                events += TableBuilder(each, rows_of).build(now_us, since).events

    elapsed, cpu = _took(pid, work)
    per_event = cpu / events * 1e6
    print(
        f"tables, {title}: {events:,} events in {elapsed:.1f} s, {cpu:.1f} s of CPU, {per_event:.2f} us per event",
        flush=True,
    )
    return per_event


def _without_tables(environment: Environment) -> Path:
    """Return a data folder with the same archive and no tables."""
    bare = environment.data / "bare"
    if not bare.exists():
        bare.mkdir()
        for name in ("archive", "spark"):
            (bare / name).symlink_to(environment.data / name)
    return bare


def _run(environment: Environment, pid: int, kind: str, days: int, rounds: int) -> tuple[tuple[float, float], dict]:
    """Run an analysis over all days as a worker does; the best time and CPU time, and the result."""
    since = FIRST_DAY_US + HOUR_US // 3
    request = AnalysisRequest(kind, since_us=since, until_us=FIRST_DAY_US + days * DAY_US - HOUR_US // 3)
    results: list[dict] = []

    def work() -> None:
        results.append(RunExecution(str(uuid.uuid4()), request, environment, lambda **_: None).run())

    for _ in range(WARM_UP if rounds > 1 else 0):
        work()
    found = [_took(pid, work) for _ in range(rounds)]
    return (min(each for each, _ in found), min(each for _, each in found)), results[-1]


def _took(pid: int, work: Callable[[], None]) -> tuple[float, float]:
    """Return elapsed time, and CPU time of this process and the Spark server."""
    cpu, start = time.process_time() + server.cpu_seconds(pid), time.monotonic()
    work()
    return time.monotonic() - start, time.process_time() + server.cpu_seconds(pid) - cpu


if __name__ == "__main__":
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", flush=True)
    sys.exit(main())
