"""Count archived events by the keys of a table of measures in a Spark session: each task counts some files with Arrow.

Arrow counts texts by their numbers in the dictionaries of the files, in a fraction of the time of Spark's aggregation
by texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.archive.data_files import between, read_parts
from analytics.archive.footer_stats import READ_ERRORS
from analytics.requests.request import TimeWindow
from analytics.tables.definitions import SLOT, MeasureTable
from analytics.tables.measures import count_messages

#: Events that a task has in memory at once, some 100 bytes each.
PART_EVENTS = 1_000_000
#: Parts of the files, which Spark divides among its tasks: enough for the processors of a cluster.
PARTS = 64
_PATHS = "paths array<string>"


class UnreadableEvents(Exception):
    """A file of the archive cannot be read; its name is how the caller recognizes the error of a task."""


def count_files(
    session: SparkSession,
    paths: Sequence[Path],
    table: MeasureTable,
    slot_seconds: int,
    windows: Sequence[TimeWindow],
    *,
    lie_within: bool,
) -> DataFrame:
    """Return the rows of a table that the messages of these files make, with the start of their slot as `ts`.

    Several rows may have equal keys. `lie_within`: no file has events outside of the windows.
    """
    parts = [(list(map(str, paths[first::PARTS])),) for first in range(min(PARTS, len(paths)))]
    count = _counter(table, slot_seconds, windows, lie_within)
    return session.createDataFrame(parts, _PATHS).mapInArrow(count, from_arrow_schema(_schema(table)))


def count_here(
    session: SparkSession,
    paths: Sequence[Path],
    others: pa.Table,
    table: MeasureTable,
    slot_seconds: int,
    windows: Sequence[TimeWindow],
) -> DataFrame:
    """Return what `count_files` returns, of files and of other events, counted in this process.

    Raises UnreadableEvents.
    """
    spans, rows = _spans(windows), [_rows(table, others, slot_seconds, windows)]
    try:
        for events in read_parts(paths, PART_EVENTS, _columns(table)):
            rows.append(_rows(table, between(events, *spans), slot_seconds, windows))
    except READ_ERRORS as error:
        raise UnreadableEvents(str(error)) from error
    found = pa.concat_tables(rows)
    return session.createDataFrame(found, from_arrow_schema(found.schema))


def _columns(table: MeasureTable) -> tuple[str, ...]:
    return ("ts", *table.keys, "size", "weight")


def _spans(windows: Sequence[TimeWindow]) -> list[tuple[int, int]]:
    return [(each.since_us, each.until_us) for each in windows]


def _schema(table: MeasureTable) -> pa.Schema:
    return pa.schema([each.with_name("ts") if each.name == SLOT else each for each in table.schema])


def _counter(
    table: MeasureTable, slot_seconds: int, windows: Sequence[TimeWindow], lie_within: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function with which tasks count files."""
    columns, spans = _columns(table), _spans(windows)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.to_pylist():
                try:
                    for events in read_parts(map(Path, part["paths"]), PART_EVENTS, columns):
                        chosen = events if lie_within else between(events, *spans)
                        yield from _rows(table, chosen, slot_seconds, windows).to_batches()
                except READ_ERRORS as error:
                    raise UnreadableEvents(str(error)) from error

    return count


def _rows(table: MeasureTable, events: pa.Table, slot_seconds: int, windows: Sequence[TimeWindow]) -> pa.Table:
    return count_messages(table, events, slots_of(events, slot_seconds, windows)).rename_columns(_schema(table).names)


def slots_of(events: pa.Table, slot_seconds: int, windows: Sequence[TimeWindow]) -> np.ndarray:
    """Return the start of the slot of each event, or of its window if that begins within the slot."""
    at, slot_us = events["ts"].cast(pa.int64()).to_numpy(), slot_seconds * 1_000_000
    if not len(at):
        return at
    first, last = int(at.min()), int(at.max())
    is_one = first // slot_us == last // slot_us
    slots = np.full(len(at), first - first % slot_us) if is_one else at - at % slot_us
    begins = sorted(each.since_us for each in windows if first - first % slot_us < each.since_us <= last)
    if not begins:
        return slots
    known = np.array([0, *begins])
    return np.maximum(slots, known[np.searchsorted(known, at, "right") - 1])
