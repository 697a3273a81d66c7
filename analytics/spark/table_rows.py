"""Compute rows of the tables from archived files in a Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analytics.spark.event_frames import TASK_EVENTS, read_files
from analytics.tables.builder import RowsOfHours, UnreadableSource
from analytics.tables.catalog import HourSource, TableCatalog
from analytics.tables.definitions import TABLES
from analytics.tables.measures import Collect, rows_of_hours

#: Spark's conditions for a data file that it cannot read.
UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE")


def spark_rows(session: SparkSession, archive: Path, collect: Collect) -> RowsOfHours:
    """Return the function with which a builder computes rows by Spark."""

    def rows_of(catalog: TableCatalog, hours: Sequence[HourSource]) -> dict[str, pa.Table]:
        paths = [path for each in hours for path in each.paths]
        if not paths:
            return {each.name: each.schema.empty_table() for each in TABLES.values()}
        events = read_files(session, archive, paths)
        if sum(each.rows for each in hours) <= TASK_EVENTS:
            events = events.coalesce(1)
        try:
            return rows_of_hours(events, catalog.broker, collect)
        except PySparkException as error:
            if (error.getCondition() or "").startswith(UNREADABLE):
                raise UnreadableSource(str(error)) from error
            raise

    return rows_of
