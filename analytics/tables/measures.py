"""Compute the rows of all tables from the events of whole hours. Pure.

The events of an hour are counted in one pass, as a small cube of all keys; the tables of counts are sums of it. Texts
are counted by their numbers in the dictionaries of the files. Kinds, buckets and causes are those of the analyses
(analytics/model/, analytics/rollups/log_histogram.py); tests compare tables with analyses of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.model.depth_series import MAX_CUTS, cuts_of
from analytics.model.failure_patterns import pattern_of
from analytics.model.measures import ARRIVALS, FAILURES, NEVER_STORED, REMOVALS, WITHOUT_MESSAGE
from analytics.rollups.log_histogram import buckets_of
from analytics.tables.definitions import (
    CLIENTS,
    DEAD_LETTERS,
    DEPTH_FLOWS,
    DEPTH_NOTES,
    HOUR_US,
    LATENCY,
    ROUTES,
    SLOT,
    TABLES,
    TRAFFIC,
    MeasureTable,
)
from analytics.tables.merging import merge
from brokerapp.tracing.schema import ALL, START

#: Columns of events that are counted.
COLUMNS = ("ts", "kind", "msg_id", "destination", "original", "consumer", "size", "born", "reason", "weight")
#: The bucket of events without a latency.
_NO_BUCKET = np.iinfo(np.int64).min
_MOMENT = DEPTH_NOTES.schema.field("ts").type

#: Reads the events of some hours in parts; called twice.
ReadParts = Callable[[], Iterable[pa.Table]]


@dataclass(frozen=True, slots=True)
class _Texts:
    """A column of texts: the number of each row's text in a list in order; null is the last."""

    numbers: np.ndarray
    texts: pa.Array

    @staticmethod
    def of(column: pa.ChunkedArray) -> _Texts:
        """Return the texts of a column; files keep most columns so."""
        found = _dictionary(column)
        order = pc.sort_indices(found.dictionary).to_numpy()
        place = np.empty(len(order) + 1, np.int32)
        place[order], place[-1] = np.arange(len(order)), len(order)
        texts = pa.concat_arrays([found.dictionary.take(pa.array(order)), pa.nulls(1, found.dictionary.type)])
        return _Texts(place[found.indices.fill_null(-1).to_numpy()], texts)

    def among(self, texts: Sequence[str]) -> np.ndarray:
        """Return whether each row has one of these texts."""
        return pc.is_in(self.texts, pa.array(texts, self.texts.type)).to_numpy(zero_copy_only=False)[self.numbers]

    def at(self, numbers: pa.ChunkedArray) -> pa.DictionaryArray:
        """Return the texts of these numbers."""
        return pa.DictionaryArray.from_arrays(numbers.combine_chunks(), self.texts)


def count_messages(table: MeasureTable, events: pa.Table, slots: np.ndarray) -> pa.Table:
    """Count the events of messages by the keys of a table and by slot: its rows, in any order.

    `slots`: the slot of each event, microseconds since the epoch.
    """
    texts = {name: _dictionary(events[name]) for name in table.keys}
    numbers = {name: each.indices for name, each in texts.items()}
    weight = events["weight"].cast(pa.int64())
    values = {"messages": weight, "bytes": pc.multiply(events["size"], weight), "last": events["ts"]}
    rules = [(name, _AGGREGATES.get(name, "sum")) for name in values]
    keys = [SLOT, *numbers]
    counted = pa.table({SLOT: slots, **numbers, **values}).group_by(keys, use_threads=False)
    rows = counted.aggregate([*rules, ([], "count_all")]).rename_columns([*keys, *values, "events"])
    for number, (name, each) in enumerate(texts.items(), 1):
        column = pa.DictionaryArray.from_arrays(rows[name].combine_chunks(), each.dictionary)
        rows = rows.set_column(number, name, column)
    return rows.cast(table.schema).filter(~pc.is_in(pc.field("kind"), pa.array(WITHOUT_MESSAGE)))


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column of texts with one dictionary; files keep most columns with one for each part."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


def rows_of_hours(read: ReadParts, broker: str, max_cuts: int = MAX_CUTS) -> dict[str, pa.Table]:
    """Compute the hourly rows of all tables from all events of some hours of one broker.

    `max_cuts`: times of an hour at which flows of depths are split.
    """
    parts, noted = [], pa.concat_tables([*map(_notes, read()), _NO_NOTES])
    moments, depths = _depth_notes(noted, broker, max_cuts)
    for events in read():
        parts.append(_rows_of(events, broker, moments))
    found = {name: [part[name] for part in parts] for name in (parts[0] if parts else ())}
    rows = {
        name: each[0] if len(each) == 1 else merge(TABLES[name], pa.concat_tables(each)) for name, each in found.items()
    }
    return {**{each.name: each.schema.empty_table() for each in TABLES.values()}, **rows, DEPTH_NOTES.name: depths}


# -- depths


def _notes(events: pa.Table) -> pa.Table:
    """Return the events without a message: depths and numbers of consumers."""
    kept = pa.array(_Texts.of(events["kind"]).among(WITHOUT_MESSAGE))
    return events.select(_NO_NOTES.schema.names).filter(kept).cast(_NO_NOTES.schema)


_NO_NOTES = pa.schema(
    [
        ("ts", _MOMENT),
        ("kind", pa.string()),
        ("destination", pa.string()),
        ("size", pa.int64()),
        ("reason", pa.string()),
    ]
).empty_table()


def _depth_notes(noted: pa.Table, broker: str, max_cuts: int) -> tuple[dict[int, list[int]], pa.Table]:
    """Return the times at which flows are split, by the start of their hour, and the rows of DEPTH_NOTES."""
    noted = noted.sort_by("ts")
    is_depth, nothing = pc.equal(noted["kind"], "depth"), pa.scalar(None, pa.int64())

    def when(condition: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        return pc.if_else(pc.fill_null(condition, False), noted[column], pa.scalar(None, noted[column].type))

    rows = pa.table(
        {
            SLOT: pa.array(_hours(noted["ts"])).cast(_MOMENT),
            "broker": pa.repeat(pa.scalar(broker), noted.num_rows),
            "destination": noted["destination"],
            "ts": when(is_depth, "ts"),
            "depth": when(is_depth, "size"),
            "consumers": pc.if_else(is_depth, nothing, noted["size"]),
            "whole": when(pc.equal(noted["reason"], ALL), "ts"),
            "started": when(pc.equal(noted["reason"], START), "ts"),
        }
    )
    latest = [("ts", "max"), ("depth", "last"), ("consumers", "last"), ("whole", "max"), ("started", "max")]
    keys = [SLOT, *DEPTH_NOTES.keys]
    merged = rows.group_by(keys, use_threads=False).aggregate(latest)
    merged = merged.rename_columns([*keys, *(name for name, _ in latest)]).sort_by(
        [(each, "ascending") for each in keys]
    )
    pairs = list(zip(*(merged[name].cast(pa.int64()).to_pylist() for name in (SLOT, "ts")), strict=True))
    moments: dict[int, list[int]] = {}
    for cut in cuts_of(((hour, at) for hour, at in pairs if at is not None), max_cuts):
        for hour, at in cut.items():
            moments.setdefault(hour, []).append(at)
    numbers = {(hour, at): number for hour, found in moments.items() for number, at in enumerate(found, 1)}
    parts = [numbers.get(each, 0) for each in pairs]
    found = merged.append_column("part", pa.array(parts, pa.int64()))
    return moments, found.select(DEPTH_NOTES.schema.names).cast(DEPTH_NOTES.schema)


def _hours(times: pa.ChunkedArray) -> np.ndarray:
    """Return the start of each event's hour."""
    return times.cast(pa.int64()).to_numpy() // HOUR_US * HOUR_US


def _parts(at: np.ndarray, hours: np.ndarray, moments: Mapping[int, Sequence[int]]) -> np.ndarray:
    """Return the number of times in `moments` of its hour that precede each event, as for DEPTH_FLOWS."""
    found = np.zeros(len(at), np.int32)
    for hour, cuts in moments.items():
        here = hours == hour
        found[here] = np.searchsorted(np.sort(cuts), at[here], side="right")
    return found


# -- counts


def _rows_of(events: pa.Table, broker: str, moments: Mapping[int, Sequence[int]]) -> dict[str, pa.Table]:
    """Compute the rows of all tables but DEPTH_NOTES from a part of the events."""
    kinds = _Texts.of(events["kind"])
    if (without := kinds.among(WITHOUT_MESSAGE)).any():
        events = events.filter(pa.array(~without))
        kinds = _Texts.of(events["kind"])
    texts = {"kind": kinds, **{name: _Texts.of(events[name]) for name in ("destination", "original", "consumer")}}
    at, weight = events["ts"].cast(pa.int64()).to_numpy(), events["weight"].cast(pa.int64()).to_numpy()
    hours, bucket = _hours(events["ts"]), np.full(len(at), _NO_BUCKET)
    is_ack = kinds.among(("ack",))
    bucket[is_ack] = buckets_of((at - events["born"].cast(pa.int64()).to_numpy())[is_ack])
    arrived, left = kinds.among(ARRIVALS), kinds.among(REMOVALS)
    if (dropped := kinds.among(("drop",))).any():
        left &= ~(dropped & _Texts.of(events["reason"]).among(NEVER_STORED))
    columns = {
        SLOT: hours,
        **{name: each.numbers for name, each in texts.items()},
        "bucket": bucket,
        "part": _parts(at, hours, moments),
        "flow": arrived.astype(np.int8) - left,
        "messages": weight,
        "bytes": events["size"].to_numpy() * weight,
        "last": at,
    }
    keys, values = list(columns)[:8], [("messages", "sum"), ("bytes", "sum"), ("last", "max"), ([], "count_all")]
    cube = pa.table(columns).group_by(keys, use_threads=False).aggregate(values)
    cube = cube.rename_columns([*keys, "messages", "bytes", "last", "events"])
    acks = cube.filter(pc.not_equal(cube["bucket"], _NO_BUCKET))
    return {
        LATENCY.name: _sum(LATENCY, acks, texts),
        **{each.name: _sum(each, cube, texts) for each in (TRAFFIC, CLIENTS, ROUTES)},
        DEPTH_FLOWS.name: _flows(cube, texts, broker),
        DEAD_LETTERS.name: _failures(events, kinds),
    }


_AGGREGATES = {"last": "max"}


def _sum(table: MeasureTable, cube: pa.Table, texts: Mapping[str, _Texts]) -> pa.Table:
    """Sum the cube by the keys of a table."""
    keys, values = [SLOT, *table.keys], list(table.values)
    rules = [(name, _AGGREGATES.get(name, "sum")) for name in values]
    summed = cube.group_by(keys, use_threads=False).aggregate(rules).rename_columns([*keys, *values])
    rows = summed.sort_by([(each, "ascending") for each in keys])
    decoded = [texts[name].at(rows[name]) if name in texts else rows[name] for name in rows.schema.names]
    return pa.table(decoded, rows.schema.names).cast(table.schema)


def _flows(cube: pa.Table, texts: Mapping[str, _Texts], broker: str) -> pa.Table:
    """Return the arrivals and removals of stored copies as rows of DEPTH_FLOWS."""
    rows = cube.filter(pc.not_equal(cube["flow"], 0))
    arrived = pc.greater(rows["flow"], 0)
    flows = pa.table(
        {
            SLOT: rows[SLOT],
            "broker": pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows),
            "destination": rows["destination"],
            "part": rows["part"],
            "came": pc.if_else(arrived, rows["messages"], 0),
            "went": pc.if_else(arrived, 0, rows["messages"]),
            "bytes_came": pc.if_else(arrived, rows["bytes"], 0),
            "events": rows["events"],
        }
    )
    own = _Texts(np.empty(0, np.int32), pa.array([broker]))
    return _sum(DEPTH_FLOWS, flows, {**texts, "broker": own})


def _failures(events: pa.Table, kinds: _Texts) -> pa.Table:
    """Return the failed copies as rows of DEAD_LETTERS."""
    failed = events.filter(pa.array(kinds.among(FAILURES))).sort_by("msg_id")  # the last of those at the same time
    reasons = _Texts.of(failed["reason"])
    causes = pa.array([pattern_of(each or "") for each in reasons.texts.to_pylist()], pa.string())
    rows = {
        SLOT: pa.array(_hours(failed["ts"])),
        "outcome": failed["kind"],
        "cause": causes.take(pa.array(reasons.numbers)),
        "destination": failed["destination"],
        "consumer": failed["consumer"],
        "messages": failed["weight"],
        "first": failed["ts"],
        "last": failed["ts"],
        "example": failed["msg_id"],
        "example_reason": failed["reason"],
        "events": pa.repeat(pa.scalar(1, pa.int64()), failed.num_rows),
    }
    return merge(DEAD_LETTERS, pa.table(rows).select(DEAD_LETTERS.schema.names).cast(DEAD_LETTERS.schema))
