"""The recorded events of a window: of the archive, read natively, and of what is not archived yet."""

from __future__ import annotations

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
    session: SparkSession, archive: Path, window: Window, unarchived: tuple[str, str] | None = None
) -> DataFrame:
    """The events of all brokers of the archive in the window; of a broker also those that are not archived yet.

    `unarchived`: the URL of that broker's store, and its name. Each event is there once, also while the archiver moves
    it; hold a lease (leases.reading) while the frame is used. Raises StoreUnavailable.
    """
    views = _views(archive, window, unarchived)
    paths = [str(file.path) for view in views.values() for file in view.files]
    parts = []
    if paths:
        frame = session.read.schema(EVENTS).option("basePath", str(archive)).parquet(*paths)
        parts.append(frame.withColumn("weight", F.coalesce("weight", F.lit(1))))  # files of version 1 have none
    tails = [tail for broker, view in views.items() if (tail := _tail(broker, view, window)).num_rows]
    if tails:
        parts.append(session.createDataFrame(pa.concat_tables(tails), EVENTS))
    if not parts:
        return session.createDataFrame([], EVENTS)
    events = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
    since, until = (F.timestamp_micros(F.lit(us)) for us in (window.since_us, window.until_us))
    return events.where((F.col("ts") >= since) & (F.col("ts") < until))


def _views(archive: Path, window: Window, unarchived: tuple[str, str] | None) -> dict[str, View]:
    """By the broker's name."""
    views = {
        each.broker: archived_files(each, window.since_us, window.until_us)
        for each in BrokerArchive.all_in(archive) if unarchived is None or each.broker != unarchived[1]
    }  # fmt: skip
    if unarchived is not None:
        url, broker = unarchived
        stream = TraceStream(url, broker)
        try:
            views[broker] = look(BrokerArchive(archive, broker), stream, window.since_us, window.until_us)
        finally:
            stream.close()
    return views


def _tail(broker: str, view: View, window: Window) -> pa.Table:
    """What is not archived, with the columns of EVENTS."""
    events = between(events_of(view.tail), window.since_us, window.until_us)
    return with_path(events.drop_columns("entry"), broker)
