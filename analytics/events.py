"""The recorded events of a window, read from the archive."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.request import Window
from analytics.schemas import EVENTS


def read_events(session: SparkSession, archive: Path, window: Window) -> DataFrame:
    """The events of all brokers of the archive; only the folders of the window's days are looked into."""
    since, until = (F.timestamp_micros(F.lit(us)) for us in (window.since_us, window.until_us))
    return (
        session.read.schema(EVENTS)
        .parquet(str(archive))
        .where(F.col("day").between(F.to_date(since), F.to_date(until)))
        .where((F.col("ts") >= since) & (F.col("ts") < until))
        .withColumn("weight", F.coalesce("weight", F.lit(1)))  # files of version 1 have none
    )
