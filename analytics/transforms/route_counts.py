"""Count messages and their copies by the destination they were sent to and the one that a copy reached."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import WITHOUT_MESSAGE
from analytics.transforms.aggregates import by_kind, last, messages, size_of


def route_counts(events: DataFrame) -> DataFrame:
    """Return schemas.WAYS: a row for each pair of original destination and destination of an event."""
    return (
        by_kind(events.where(~F.col("kind").isin(*WITHOUT_MESSAGE)), "original", "destination")
        .groupBy("original", "destination")
        .agg(
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
    )
