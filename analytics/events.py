"""The recorded events of some windows, read from the archive."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.request import Window
from analytics.schemas import EVENTS


def read_events(session: SparkSession, archive: Path, *windows: Window) -> DataFrame:
    """The events of all brokers in these windows; only the folders of their days are looked into."""
    ends = [[F.timestamp_micros(F.lit(us)) for us in (each.since_us, each.until_us)] for each in windows]
    days = reduce(or_, (F.col("day").between(F.to_date(since), F.to_date(until)) for since, until in ends))
    moments = reduce(or_, ((F.col("ts") >= since) & (F.col("ts") < until) for since, until in ends))
    return (
        session.read.schema(EVENTS)
        .parquet(str(archive))
        .where(days)
        .where(moments)
        .withColumn("weight", F.coalesce("weight", F.lit(1)))  # files of version 1 have none
    )
