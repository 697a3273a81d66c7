"""Reads the depths of a time range: the last recorded depth plus enqueues and removals since."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from analytics.jobs.common.tables import Collect, total
from analytics.model.depth_series import MAX_CUTS, DepthSeries, build_series, cuts_of
from analytics.model.recording_gaps import HOUR, RecordingCoverage, find_gaps
from analytics.model.time_buckets import slot_starts
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.tables.counts import read_counts
from analytics.transforms.event_filters import of_destination
from brokerapp.tracing.consumers import EVERYWHERE

HOUR_US = 3_600_000_000
#: The longest slot: notes of all depths are an hour apart.
LONGEST = 3600
#: Frames that are collected.
STEPS = 2

#: A log: its broker and destination.
Key = tuple[str, str]
#: A recorded depth: log, number of the slot, time in microseconds since the epoch, depth.
Note = tuple[Key, int, int, int]


@dataclass(frozen=True, slots=True)
class RecordedDepths:
    """The depth series of each log, from the start of the first hour of the time range."""

    slot: int  #: seconds
    begins: list[int]  #: of each slot, seconds since the epoch
    courses: dict[Key, DepthSeries]
    rows_read: int


def read_recorded_depths(question: RunQuestion, slot: int, collect: Collect, destination: str = "") -> RecordedDepths:
    """Read the depths of the time range, by slots of at most an hour."""
    slot, window = min(slot, LONGEST), question.window
    # Each hour begins with notes of all depths, so that nothing before it needs to be read.
    whole = TimeWindow(window.since_us // HOUR_US * HOUR_US, window.until_us)
    counts = read_counts(question, slot, whole, hourly_only=True).where(lambda each: of_destination(each, destination))
    first, begins = whole.since_us // 1_000_000, slot_starts(whole, slot)
    notes_of_slots = collect("recorded depths", counts.depth_notes(slot))
    from_tables = pc.is_valid(notes_of_slots["part"])
    noted = _numbered(notes_of_slots.filter(pc.invert(from_tables)), first, slot)
    cuts = cuts_of((number, moment) for _, number, moment, _ in noted)
    changes = collect("enqueued and removed messages", counts.depth_flows(slot, first, cuts))
    changed = _changes(changes)
    splitting = notes_of_slots.filter(pc.fill_null(pc.greater(notes_of_slots["part"], 0), False))
    found = _series_of_brokers(len(begins), cuts, noted, splitting, changed, first, slot)
    slots = {each[:2] for each in (*noted, *_numbered(notes_of_slots.filter(from_tables), first, slot), *changed)}
    whole, started = _moments(notes_of_slots, "whole"), _starts(notes_of_slots)

    def heard(broker: str) -> RecordingCoverage:
        return RecordingCoverage(
            slots={number for (name, _), number in slots if name == broker},
            started={(at - first) // slot for name, at in started if name == broker},
            hours={at // HOUR * HOUR for name, at in whole if name == broker},
        )

    for key, count in _consumers(notes_of_slots).items():
        if key in found:
            found[key].consumers = count
    _mark_silences(found, begins, slot, window, heard)
    return RecordedDepths(slot, begins, found, total(changes, "events"))


def _series_of_brokers(
    slots: int, cuts: list[dict[int, int]], noted: list[Note], of_tables: pa.Table, changed: list, first: int, slot: int
) -> dict[Key, DepthSeries]:
    """Reconstruct the depths of each broker's logs: flows of tables are split at the notes of one broker."""
    found: dict[Key, DepthSeries] = {}
    parts = of_tables["part"].to_pylist()
    tabled = list(zip(_numbered(of_tables, first, slot), parts, strict=True))
    for broker in {each[0][0] for each in (*noted, *changed)} | {each[0][0] for each, _ in tabled}:
        own = [each for each in tabled if each[0][0][0] == broker]
        splits = [dict(cuts[part]) if part < len(cuts) else {} for part in range(MAX_CUTS if own else len(cuts))]
        for (_, number, moment, _), part in own:
            splits[part - 1][number] = moment
        notes_of_broker = [*(each for each in noted if each[0][0] == broker), *(each for each, _ in own)]
        changes = [each for each in changed if each[0][0] == broker]
        found |= build_series(slots, splits, notes_of_broker, changes)
    return found


def _numbered(rows: pa.Table, first: int, slot: int) -> list[Note]:
    return [
        ((each["broker"], each["destination"]), int(each["slot"].timestamp() - first) // slot,
         round(each["ts"].timestamp() * 1e6), each["depth"])
        for each in rows.to_pylist()
        if each["depth"] is not None
    ]  # fmt: skip


def _consumers(rows: pa.Table) -> dict[Key, int]:
    """Return the final number of consumers of each log where it changed."""
    changed = [each for each in rows.to_pylist() if each["consumers"] is not None]
    changed.sort(key=lambda each: each["slot"])
    found: dict[Key, int] = {}
    for each in changed:
        if each["destination"] == EVERYWHERE:  # the broker began: who consumed before does no longer
            found |= {key: 0 for key in found if key[0] == each["broker"]}
        found[each["broker"], each["destination"]] = each["consumers"]
    return found


def _changes(rows: pa.Table) -> list[tuple[Key, int, int, int, int, int]]:
    return [
        ((each["broker"], each["destination"]),
         *(each[name] for name in ("number", "part", "came", "went", "bytes_came")))
        for each in rows.to_pylist()
    ]  # fmt: skip


def _moments(notes_of_slots: pa.Table, column: str) -> set[tuple[str, int]]:
    """Return broker and second (since the epoch) of each note in this column that listed all depths."""
    found = zip(notes_of_slots["broker"].to_pylist(), notes_of_slots[column].to_pylist(), strict=True)
    return {(broker, int(at.timestamp())) for broker, at in found if at}


def _starts(notes_of_slots: pa.Table) -> set[tuple[str, int]]:
    """Return broker and second of its start in each slot, unless it noted something in the slot before: then it ran."""
    slots: dict[tuple[str, datetime], list[tuple[datetime | None, datetime | None]]] = {}
    for each in notes_of_slots.to_pylist():
        slots.setdefault((each["broker"], each["slot"]), []).append((each["started"], each["first"]))
    found = set()
    for (broker, _), rows in slots.items():
        started, first = (min((each[n] for each in rows if each[n]), default=None) for n in (0, 1))
        if started and not (first and first < started):
            found.add((broker, int(started.timestamp())))
    return found


def _mark_silences(
    found: Mapping[Key, DepthSeries],
    begins: Sequence[int],
    slot: int,
    window: TimeWindow,
    heard: Callable[[str], RecordingCoverage],
) -> None:
    """Mark the slots of each series in which the broker recorded nothing."""
    of_broker: dict[str, list[DepthSeries]] = {}
    for (broker, _), course in found.items():
        of_broker.setdefault(broker, []).append(course)
    for broker, together in of_broker.items():
        waiting = [sum(depths) for depths in zip(*(each.depths for each in together), strict=True)]
        gaps = find_gaps(begins, slot, window.until_us / 1e6, heard(broker), waiting)
        for course in together:
            course.gaps = gaps
