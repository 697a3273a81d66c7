"""The recorded events of a window, read from the archive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.request import Window
from analytics.schemas import EVENTS

_EPOCH = datetime.fromtimestamp(0, UTC)


def read_events(session: SparkSession, archive: Path, window: Window) -> DataFrame:
    """The events of all brokers of the archive; only the folders of the window's days are looked into."""
    since, until = (_EPOCH + timedelta(microseconds=us) for us in (window.since_us, window.until_us))
    return (
        session.read.schema(EVENTS)
        .parquet(str(archive))
        .where(F.col("day").between(F.lit(since.date()), F.lit(until.date())))
        .where((F.col("ts") >= F.lit(since)) & (F.col("ts") < F.lit(until)))
    )
