"""What the archiver takes, measured: events a second of CPU time, by stage and in all.

The batches are those of a busy node: messages of a queue noted by tick, and copies of a fan-out. The stages are the
archiver's own, on files of a folder of its own; reading the stream is left out, it moves a few bytes an event.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import TypeVar

import pyarrow as pa

from analytics import durable
from analytics.archive import BrokerArchive
from analytics.archiver import FLUSH_EVENTS
from analytics.counting import count
from analytics.files import archived
from analytics.places import place_of
from analytics.rollups import Rollups
from brokerapp.recording.cost import fan_out, in_bulk, message
from brokerapp.recording.encoding import decode
from brokerapp.recording.recorder import BATCH, Recorder

BROKER = "sluice"
#: The broker's best: a fan-out of 70,000 deliveries a second, each of which is forwarded, dispatched and acknowledged.
BROKER_EVENTS = 200_000
#: What the archiver is to take, times the broker's best.
TIMES = 5
ROUNDS = 5

T = TypeVar("T")
Case = Callable[[Recorder, list], None]


def compare() -> bool:
    """Print a table; whether the archiver takes enough."""
    print(f"archiver, {FLUSH_EVENTS:,} events an append, best of {ROUNDS}, thousand events a second of CPU time\n")
    print(f"{'case':<12}{'decode':>9}{'append':>9}{'rollups':>9}{'all':>9}{'times':>8}", flush=True)
    met = [_compare(case) for case in (in_bulk, fan_out)]
    return all(met)


def _compare(case: Case) -> bool:
    batches, events = _batches(case)
    best = [min(stage) for stage in zip(*(_round(batches, number) for number in range(ROUNDS)), strict=True)]
    times = events / sum(best) / BROKER_EVENTS
    rates = "".join(f"{events / seconds / 1000:>9,.0f}" for seconds in (*best, sum(best)))
    print(f"{case.__name__.replace('_', ' '):<12}{rates}{times:>8.1f}", flush=True)
    return times >= TIMES


def _batches(case: Case) -> tuple[list[bytes], int]:
    """As many as one append takes, and how many events they hold."""
    batches: list[bytes] = []
    events = 0
    while events < FLUSH_EVENTS:
        recorder = Recorder(BROKER)
        case(recorder, [message(len(batches) * BATCH // 4 + number) for number in range(BATCH // 4)])
        while batch := recorder.take():
            batches.append(batch[0])
            events += batch[1]
    return batches, events


def _round(batches: list[bytes], number: int) -> list[float]:
    """Seconds of CPU time of each stage."""
    with tempfile.TemporaryDirectory() as folder:
        archive = BrokerArchive(Path(folder), BROKER)
        commit = replace(archive.recover(), offset=f"{1_760_000_000_000 + number}-0")
        place = place_of(commit.offset)
        durable.make_folder(archive.folder)
        rollups = Rollups(archive.folder)
        decoding, tables = _timed(lambda: [archived(decode(each), place) for each in batches])
        events = pa.concat_tables(tables)
        appending, _ = _timed(partial(archive.append, events, commit))
        counting, _ = _timed(lambda: rollups.add([count(events)], place))
        rollups.close()
    return [decoding, appending, counting]


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = process_time()
    result = work()
    return process_time() - start, result
