"""Columns, tables and notes that several jobs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from analytics.model.wording import pluralize, verb_form
from analytics.results.storage import JobResult, ResultColumn
from analytics.rollups.log_histogram import PERCENTILES

#: Computes a frame as the next step of a run.
Collect = Callable[[str, DataFrame], pa.Table]

#: Bars of a chart.
MAX_BARS = 15
NOTHING = "No data in this time range."

DESTINATION = ResultColumn("destination", "Destination", about="destination")
CLIENT = ResultColumn("client", "Consumer", about="client")
ACKED = ResultColumn("acked", "Acknowledged", "messages")
LATENCIES = tuple(
    ResultColumn(name.removesuffix("_us") + "_ms", name.removesuffix("_us"), "ms") for name in PERCENTILES
)


def empty_result(sentence: str = NOTHING, rows_read: int = 0) -> JobResult:
    """Make a result with a sentence and nothing to show."""
    return JobResult(sentence, rows_read)


def rollback_notes(count: int) -> tuple[str, ...]:
    """Return the note on messages of transactions that were rolled back."""
    if not count:
        return ()
    are = verb_form(count, "is", "are")
    return (f"{pluralize(count, 'message')} in rolled-back transactions {are} not counted as sent.",)


def total(rows: pa.Table, column: str) -> int:
    """Return the sum of a column; 0 without rows."""
    return pc.sum(rows[column]).as_py() or 0


def sort_descending(rows: pa.Table, *columns: str) -> pa.Table:
    """Sort rows by columns, the greatest value first; a name after `+` sorts ascending."""
    return rows.sort_by([(name.lstrip("+"), "ascending" if name[0] == "+" else "descending") for name in columns])


def table_of(rows: Iterable[Mapping[str, object]], columns: Sequence[ResultColumn]) -> pa.Table:
    """Make a table of rows with these columns, typed by their units even without rows."""
    found = list(rows)
    return pa.table({each.name: pa.array([row[each.name] for row in found], _type(each)) for each in columns})


_TYPES = {
    "": pa.string(), "count": pa.int64(), "messages": pa.int64(), "bytes": pa.int64(), "ms": pa.float64(),
    "seconds": pa.float64(), "rate": pa.float64(), "part": pa.float64(), "change": pa.float64(), "times": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
}  # fmt: skip


def _type(column: ResultColumn) -> pa.DataType:
    return _TYPES[column.unit]


def in_milliseconds(rows: pa.Table) -> pa.Table:
    """Replace percentiles in microseconds by milliseconds."""
    for column in LATENCIES:
        us = rows.schema.get_field_index(column.name.removesuffix("_ms") + "_us")
        if us >= 0:
            rows = rows.set_column(us, column.name, pc.round(pc.divide(rows.column(us), 1000.0), 3))
    return rows
