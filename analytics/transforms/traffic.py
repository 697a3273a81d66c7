"""Traffic by destination and minute: what arrived, was dispatched, was acknowledged."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

MINUTE = 60


def traffic(events: DataFrame, bucket_seconds: int = MINUTE) -> DataFrame:
    """Rows of schemas.TRAFFIC, a row for each destination and bucket in which anything happened.

    A message sent to a queue is an enqueue and a copy stored there, a forward: it arrived once. Where nothing is
    stored, as at a virtual topic, there are only enqueues; where copies come, only forwards. So the greater counts.
    """
    seconds = F.unix_seconds("ts")
    start = F.timestamp_seconds(seconds - F.pmod(seconds, F.lit(bucket_seconds)))
    counted = (
        events.where(F.col("kind") != "depth")
        .groupBy("destination", start.alias("minute"))
        .agg(
            _count("enqueue").alias("enqueued"),
            _count("forward").alias("forwarded"),
            _count("dispatch").alias("dispatched"),
            _count("ack").alias("acked"),
            _bytes("enqueue").alias("bytes_enqueued"),
            _bytes("forward").alias("bytes_forwarded"),
            F.count("*").alias("events"),
        )
    )
    return counted.select(
        "destination",
        "minute",
        F.greatest("enqueued", "forwarded").alias("arrived"),
        "dispatched",
        "acked",
        F.greatest("bytes_enqueued", "bytes_forwarded").alias("bytes"),
        "events",
    )


def _count(kind: str) -> Column:
    return F.count_if(F.col("kind") == kind)


def _bytes(kind: str) -> Column:
    return F.sum(F.when(F.col("kind") == kind, F.col("size")).otherwise(0))
