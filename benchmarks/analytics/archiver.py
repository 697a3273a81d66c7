"""The archiver beside the broker: events a second that a node at full load records, and that the archiver takes.

A node of its own runs the busiest scenarios of `benchmarks/`; what it left in the trace stream the archiver then moves
to an archive, as it does it always: read, decoded, written, synced, indexed, counted. Both handle the same events.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import redis

from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.trace_stream import TraceStream
from benchmarks.brokers.sluice import Sluice
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.scenarios.rows import SCENARIOS, Scenario
from brokerapp.store.client.keys import trace_key
from brokerapp.system.data_directory import DataDirectory

#: What the archiver is to take, times the broker's best.
TIMES = 5
#: Scenarios with the most events a second: of lone messages, and of copies.
BUSIEST = ("queue", "fan-out-100")
ROUNDS = 3
#: Seconds within which a node has told what it recorded.
TOLD_SECONDS = 30.0


def compare() -> bool:
    """Print a table; whether the archiver takes enough."""
    print("archiver beside the broker, thousand events a second; times of the broker's best by elapsed time\n")
    print(f"{'scenario':<14}{'events':>10}{'broker':>9}{'archiver':>10}{'of CPU':>9}{'times':>8}", flush=True)
    met = [_compare(each) for each in SCENARIOS if each.name in BUSIEST]
    return all(met)


def _compare(scenario: Scenario) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        node, data = Sluice(), Path(folder)
        address = node.start(scenario, data)
        try:
            url, name = DataDirectory(data / "data").locate_store()
            best = max(_recorded(scenario, node, address, url, name) for _ in range(ROUNDS))
            events, elapsed, cpu = _archived(url, name, data / "archive")
        finally:
            node.stop()
    rates = "".join(
        f"{each / 1000:>{width},.0f}"
        for each, width in zip((best, events / elapsed, events / cpu), (9, 10, 9), strict=True)
    )
    times = events / elapsed / best
    print(f"{scenario.name:<14}{events:>10,}{rates}{times:>8.1f}", flush=True)
    return times >= TIMES


def _recorded(scenario: Scenario, node: Sluice, address: tuple[str, int], url: str, name: str) -> float:
    """Events a second that a run recorded, until its last consumer was done."""
    messages = scenario.messages[node.pace]
    before = _events(url, name)
    outcome = run(Traffic(scenario), address, node.dialect, messages)
    expected = messages + 3 * outcome.deliveries  # an enqueue each; a forward, a dispatch and an ack each copy
    deadline = time.monotonic() + TOLD_SECONDS
    while (events := _events(url, name) - before) < expected:
        if time.monotonic() > deadline:
            raise SystemExit(f"{scenario.name}: {expected:,} events were to be recorded, {events:,} were")
        time.sleep(0.2)
    return expected / outcome.seconds


def _events(url: str, name: str) -> int:
    """What the trace stream holds."""
    with redis.Redis.from_url(url) as store:
        return sum(int(fields[b"n"]) for _, fields in store.xrange(trace_key(name)))


def _archived(url: str, name: str, archive: Path) -> tuple[int, float, float]:
    """Events the archiver took, in which time, with how much of the processors."""
    stream = TraceStream(url, name)
    archiver = Archiver(stream, BrokerArchive(archive, name), lambda _: None)
    elapsed, cpu = time.perf_counter(), time.process_time()
    while not archiver.flush():
        pass
    elapsed, cpu = time.perf_counter() - elapsed, time.process_time() - cpu
    archiver.close()
    stream.close()
    return BrokerArchive(archive, name).commit.events, elapsed, cpu
