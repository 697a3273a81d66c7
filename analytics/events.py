"""The recorded events of some windows: of the archive, read natively, and of what is not archived yet."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.archive import BrokerArchive
from analytics.files import between, with_path
from analytics.request import Window
from analytics.schemas import EVENTS
from analytics.stream import TraceStream
from analytics.view import View, archived_files, events_of, look


def read_events(
    session: SparkSession, archive: Path, *windows: Window, unarchived: tuple[str, str] | None = None
) -> DataFrame:
    """The events of all brokers of the archive in these windows; of one broker also those that are not archived yet.

    `unarchived`: the URL of that broker's store, and its name. Each event is there once, also while the archiver moves
    it; hold a lease (leases.reading) while the frame is used. Raises StoreUnavailable.
    """
    views = _views(archive, windows, unarchived)
    paths = [str(file.path) for view in views.values() for file in view.files]
    parts = []
    if paths:
        frame = session.read.schema(EVENTS).option("basePath", str(archive)).parquet(*paths)
        parts.append(frame.withColumn("weight", F.coalesce("weight", F.lit(1))))  # files of version 1 have none
    tail = pa.concat_tables([_tail(broker, view, windows) for broker, view in views.items()] or [_NOTHING])
    if tail.num_rows or not paths:
        parts.append(session.createDataFrame(tail, EVENTS))
    events = reduce(DataFrame.unionAll, parts)
    return events.where(reduce(or_, (_within(each) for each in windows)))


def _within(window: Window):
    since, until = (F.timestamp_micros(F.lit(us)) for us in (window.since_us, window.until_us))
    return (F.col("ts") >= since) & (F.col("ts") < until)


def _views(archive: Path, windows: tuple[Window, ...], unarchived: tuple[str, str] | None) -> dict[str, View]:
    """By the broker's name."""
    spans = [(each.since_us, each.until_us) for each in windows]
    views = {
        each.broker: archived_files(each, spans)
        for each in BrokerArchive.all_in(archive)
        if unarchived is None or each.broker != unarchived[1]
    }
    if unarchived is not None:
        url, broker = unarchived
        stream = TraceStream(url, broker)
        try:
            views[broker] = look(BrokerArchive(archive, broker), stream, spans)
        finally:
            stream.close()
    return views


def _tail(broker: str, view: View, windows: tuple[Window, ...]) -> pa.Table:
    """What is not archived, from the first window to the last, with the columns of EVENTS."""
    since, until = min(each.since_us for each in windows), max(each.until_us for each in windows)
    return with_path(between(events_of(view.tail), since, until).drop_columns("entry"), broker)


_NOTHING = with_path(events_of([]).drop_columns("entry"), "")
