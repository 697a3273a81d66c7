"""The archiver beside the broker: events a second that a node at full load records, and that the archiver takes.

The best of several runs counts of both.

A node of its own runs the busiest scenarios of `benchmarks/`; what it left in the trace stream the archiver then moves
to an archive, as it does it always: read, decoded, written, synced, indexed, counted. Both handle the same events. What
the node dropped, because it came faster than it could be written, is a figure of its own and counts as recorded.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
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
from brokerapp.store.nodes import ONLY_NODE
from brokerapp.store.redis import RedisStore
from brokerapp.system.data_directory import DataDirectory

#: What the archiver is to take, times the broker's best: so that it catches up with a full stream in four times as long
#: as the stream took to fill, while the broker still records as fast as it can.
TIMES = 1.25
#: Scenarios with the most events a second: of lone messages, and of copies.
BUSIEST = ("queue", "fan-out-100")
ROUNDS = 3
#: Seconds within which a node has told what it recorded.
TOLD_SECONDS = 30.0


def compare() -> bool:
    """Print a table; whether the archiver takes enough."""
    print(
        f"archiver beside the broker, thousand events a second, the best of {ROUNDS} of each; times by elapsed time\n"
    )
    print(
        f"{'scenario':<14}{'events':>10}{'dropped':>9}{'broker':>9}{'archiver':>10}{'of CPU':>9}{'times':>8}",
        flush=True,
    )
    met = [_compare(each) for each in SCENARIOS if each.name in BUSIEST]
    return all(met)


def _compare(scenario: Scenario) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        node, data = Sluice(), Path(folder)
        address = node.start(scenario, data)
        try:
            url, name = DataDirectory(data / "data").locate_store()
            best = max(_recorded(scenario, node, address, url, name) for _ in range(ROUNDS))
            dropped = _reported(url, name)["dropped"]
            passes = [_archived(url, name, data / f"archive{number}") for number in range(ROUNDS)]
        finally:
            node.stop()
    events, elapsed, cpu = map(min, *passes)
    rates = "".join(
        f"{each / 1000:>{width},.0f}"
        for each, width in zip((best, events / elapsed, events / cpu), (9, 10, 9), strict=True)
    )
    times = events / elapsed / best
    print(f"{scenario.name:<14}{events:>10,}{dropped:>9,}{rates}{times:>8.1f}", flush=True)
    return times >= TIMES


def _recorded(scenario: Scenario, node: Sluice, address: tuple[str, int], url: str, name: str) -> float:
    """Events a second that a run recorded, until its last consumer was done."""
    messages = scenario.messages[node.pace]
    before = _reported(url, name)["recorded"]
    outcome = run(Traffic(scenario), address, node.dialect, messages)
    expected = messages + 3 * outcome.deliveries  # an enqueue each; a forward, a dispatch and an ack each copy
    deadline = time.monotonic() + TOLD_SECONDS
    while not _is_written(told := _reported(url, name), written := _events(url, name), before + expected):
        if time.monotonic() > deadline:
            raise SystemExit(
                f"{scenario.name}: {before + expected:,} events were to be recorded; {told['recorded']:,} were, "
                f"of which {told['dropped']:,} were dropped and {written:,} written"
            )
        time.sleep(0.2)
    return expected / outcome.seconds


def _is_written(told: Mapping[str, int], written: int, expected: int) -> bool:
    """Whether so many events were recorded, and all of them are in the stream that were not dropped."""
    return told["recorded"] >= expected and written == told["recorded"] - told["dropped"]


def _reported(url: str, name: str) -> Mapping[str, int]:
    """What the node says of its trace events since its start: `recorded`, and of these `dropped` and `pending`."""

    async def ask() -> Mapping[str, int]:
        store = RedisStore(url, name)
        try:
            return (await store.nodes.statuses())[ONLY_NODE]["trace"]
        finally:
            await store.close()

    return asyncio.run(ask())


def _events(url: str, name: str) -> int:
    """What the trace stream holds."""
    with redis.Redis.from_url(url) as store:
        return sum(int(fields[b"n"]) for _, fields in store.xrange(trace_key(name)))


def _archived(url: str, name: str, archive: Path) -> tuple[int, float, float]:
    """Events the archiver took, in which time, with how much of the processors; the stream is then as it was."""
    with redis.Redis.from_url(url) as store:
        key, kept = trace_key(name), f"{trace_key(name)}:kept"
        store.copy(key, kept, replace=True)
        took = _take(url, name, archive)
        store.copy(kept, key, replace=True)
    return took


def _take(url: str, name: str, archive: Path) -> tuple[int, float, float]:
    stream = TraceStream(url, name)
    archiver = Archiver(stream, BrokerArchive(archive, name), lambda _: None)
    elapsed, cpu = time.perf_counter(), time.process_time()
    while not archiver.flush():
        pass
    elapsed, cpu = time.perf_counter() - elapsed, time.process_time() - cpu
    archiver.close()
    stream.close()
    return BrokerArchive(archive, name).commit.events, elapsed, cpu
