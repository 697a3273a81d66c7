"""Compute the rows of all tables from events of whole hours, by Spark.

One scan counts a small cube of all keys, from which the tables of counts are summed; depths and failures have scans of
their own, of few events. The transforms of the analyses define every measure.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.model.depth_series import MAX_CUTS, cuts_of
from analytics.model.measures import ARRIVALS, FAILURES, REMOVALS
from analytics.tables.definitions import (
    CLIENTS,
    DEAD_LETTERS,
    DEPTH_FLOWS,
    DEPTH_NOTES,
    HOUR_US,
    LATENCY,
    ROUTES,
    SLOT,
    TRAFFIC,
    MeasureTable,
)
from analytics.tables.merging import merge
from analytics.transforms.aggregates import slot
from analytics.transforms.depth_changes import never_stored, notes, number_and_part
from analytics.transforms.failure_causes import causes
from analytics.transforms.latency import bucket
from analytics.transforms.traffic import message_counts

_HOUR = HOUR_US // 1_000_000

#: Computes a frame: its rows.
Collect = Callable[[DataFrame], pa.Table]


def rows_of_hours(events: DataFrame, broker: str, collect: Collect, max_cuts: int = MAX_CUTS) -> dict[str, pa.Table]:
    """Compute the hourly rows of all tables from all events of some hours of one broker.

    `max_cuts`: times of an hour at which flows of depths are split.
    """
    noted = collect(notes(events, _HOUR))
    first, cuts = _cuts(noted, max_cuts)
    cube = collect(_cube(events, first, cuts))
    happened = set(pc.unique(cube["kind"]).to_pylist())
    failed = collect(causes(events, _HOUR)) if happened & set(FAILURES) else DEAD_LETTERS.schema.empty_table()
    acks = cube.filter(pc.equal(cube["kind"], "ack"))
    return {
        DEPTH_NOTES.name: _with_part(noted, first, cuts),
        DEAD_LETTERS.name: failed.select(DEAD_LETTERS.schema.names).cast(DEAD_LETTERS.schema),
        DEPTH_FLOWS.name: merge(DEPTH_FLOWS, _flows(cube, broker)),
        LATENCY.name: _sum(LATENCY, acks),
        **{each.name: _sum(each, cube) for each in (TRAFFIC, CLIENTS, ROUTES)},
    }


def _with_part(noted: pa.Table, first: int, cuts: list[dict[int, int]]) -> pa.Table:
    """Add to each note the part of DEPTH_FLOWS that begins with it."""
    parts = {(hour, moment): part + 1 for part, each in enumerate(cuts) for hour, moment in each.items()}
    hours = pc.divide(noted[SLOT].cast(pa.int64()), 1_000_000).to_pylist()
    times = noted["ts"].cast(pa.int64()).to_pylist()
    found = [parts.get(((hour - first) // _HOUR, at), 0) for hour, at in zip(hours, times, strict=True)]
    rows = noted.append_column("part", pa.array(found, pa.int64()))
    return rows.select(DEPTH_NOTES.schema.names).cast(DEPTH_NOTES.schema)


def _cuts(noted: pa.Table, most: int) -> tuple[int, list[dict[int, int]]]:
    """Return the start of the first hour, in seconds, and the times at which flows are split, as for depths."""
    hours = pc.divide(noted[SLOT].cast(pa.int64()), 1_000_000).to_pylist()
    first = min(hours, default=0)
    times = noted["ts"].cast(pa.int64()).to_pylist()
    moments = (((hour - first) // _HOUR, at) for hour, at in zip(hours, times, strict=True) if at is not None)
    return first, cuts_of(moments, most)


def _cube(events: DataFrame, first: int, cuts: list[dict[int, int]]) -> DataFrame:
    """Count events by all keys of the tables of counts."""
    is_ack = F.col("kind") == "ack"
    return message_counts(
        events,
        slot(_HOUR).alias(SLOT),
        "destination",
        "original",
        "consumer",
        F.when(is_ack, bucket()).alias("bucket"),
        number_and_part(_HOUR, first, cuts)[1].cast("long").alias("part"),
        never_stored().alias("never_stored"),
    )


def _sum(table: MeasureTable, cube: pa.Table) -> pa.Table:
    """Sum the cube by the keys of a table."""
    return merge(table, cube.select([SLOT, *table.keys, *table.values]))


def _flows(cube: pa.Table, broker: str) -> pa.Table:
    """Return the arrivals and removals of stored copies as rows of DEPTH_FLOWS."""
    arrived = pc.is_in(cube["kind"], pa.array(ARRIVALS))
    left = pc.and_(pc.is_in(cube["kind"], pa.array(REMOVALS)), pc.invert(cube["never_stored"]))
    rows = cube.append_column("arrived", arrived).filter(pc.or_(arrived, left))

    def counted(name: str, counts: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.if_else(counts, rows[name], 0)

    leaving = pc.invert(rows["arrived"])
    return pa.table(
        {
            SLOT: rows[SLOT],
            "broker": pa.repeat(pa.scalar(broker), rows.num_rows),
            "destination": rows["destination"],
            "part": rows["part"],
            "came": counted("messages", rows["arrived"]),
            "went": counted("messages", leaving),
            "bytes_came": counted("bytes", rows["arrived"]),
            "events": rows["events"],
        }
    )
