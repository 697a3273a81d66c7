"""Count messages and their copies by the destination they were sent to and the one that a copy reached."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.transforms.aggregates import last, messages, size_of


def routes_of(counts: DataFrame) -> DataFrame:
    """Return schemas.WAYS, a row for each pair of destinations, from counts of messages by both and by kind."""
    return counts.groupBy("original", "destination").agg(
        messages("enqueue").alias("sent"),
        size_of("enqueue").alias("bytes_sent"),
        messages("forward").alias("copies"),
        size_of("forward").alias("bytes_copied"),
        messages("dispatch").alias("dispatched"),
        messages("ack").alias("acked"),
        last("enqueue", "forward").alias("last_arrived"),
        last("dispatch", "ack").alias("last_read"),
        F.sum("events").alias("events"),
    )
