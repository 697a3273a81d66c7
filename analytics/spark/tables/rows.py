"""Compute rows of the tables from archived files in a Spark session: each task computes some hours with Arrow.

Arrow counts texts by their numbers in the dictionaries of the files, which takes less CPU time than Spark's aggregation
by texts, and needs no compiled code: tables are computed every few hours by a server that is seldom warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analytics.archive.data_files import read_parts
from analytics.archive.footer_stats import READ_ERRORS
from analytics.tables.builder import RowsOfHours, UnreadableSource
from analytics.tables.catalog import HourSource, TableCatalog
from analytics.tables.definitions import TABLES
from analytics.tables.measures import COLUMNS, rows_of_hours

#: Computes a frame: its rows.
Collect = Callable[[DataFrame], pa.Table]
#: Events of an hour that a task has in memory at once, some 100 bytes each.
PART_EVENTS = 1_000_000
#: The files of an hour, and rows of a table as an Arrow stream.
_HOURS = "rows long, paths array<string>"
_ROWS = "name string, rows binary"
_RESULT = pa.schema([("name", pa.string()), ("rows", pa.binary())])


def spark_rows(session: SparkSession, collect: Collect) -> RowsOfHours:
    """Return the function with which a builder computes rows by Spark."""

    def rows_of(catalog: TableCatalog, hours: Sequence[HourSource]) -> dict[str, pa.Table]:
        found: dict[str, list[pa.Table]] = {each.name: [each.schema.empty_table()] for each in TABLES.values()}
        sources = [(each.rows, [str(path) for path in each.paths]) for each in hours if each.paths]
        if not sources:
            return {name: rows[0] for name, rows in found.items()}
        frame = session.createDataFrame(sources, _HOURS).mapInArrow(_counter(catalog.broker), _ROWS)
        try:
            for each in collect(frame).to_pylist():
                with pa.ipc.open_stream(each["rows"]) as stream:
                    found[each["name"]].append(stream.read_all())
        except PySparkException as error:
            if UnreadableSource.__name__ in str(error):
                raise UnreadableSource(str(error)) from error
            raise
        return {name: pa.concat_tables(rows) for name, rows in found.items()}

    return rows_of


def _counter(broker: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function with which tasks count the events of hours of this broker."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for hour in batch.to_pylist():
                found = _rows_of_hour([Path(each) for each in hour["paths"]], hour["rows"], broker)
                rows = {name: _stream_of(each) for name, each in found.items()}
                yield pa.record_batch([list(rows), list(rows.values())], _RESULT)

    return count


def _rows_of_hour(paths: Sequence[Path], events: int, broker: str) -> dict[str, pa.Table]:
    def read() -> Iterator[pa.Table]:
        return read_parts(paths, PART_EVENTS, COLUMNS)

    try:
        if events > PART_EVENTS:
            return rows_of_hours(read, broker)
        whole = list(read())
        return rows_of_hours(lambda: whole, broker)
    except READ_ERRORS as error:
        raise UnreadableSource(str(error)) from error


def _stream_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()
