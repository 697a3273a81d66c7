"""Ways of messages: from where they were sent to where their copies came, and what became of them there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import WITHOUT_MESSAGE
from analytics.transforms.aggregates import by_kind, last, messages, size_of


def route_counts(events: DataFrame) -> DataFrame:
    """Rows of schemas.WAYS, a row for each pair of where a message was sent to and where something happened to it."""
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
