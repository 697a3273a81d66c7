"""Count sent, stored, dispatched and acknowledged messages by destination and slot."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import WITHOUT_MESSAGE
from analytics.transforms.aggregates import by_kind, messages, size_of, slot


def traffic(events: DataFrame, slot_seconds: int = 60) -> DataFrame:
    """Return schemas.TRAFFIC: a row for each destination and slot with events.

    A message sent to a queue is an enqueue there and, as a stored copy, a forward: it arrived once. A destination that
    stores nothing, such as a virtual topic, has only enqueues; the target of a composite has only forwards. So
    `arrived` is the greater of both. To sum over destinations use `sent` or `stored`, as `arrived` counts copies, too.
    """
    return traffic_of(message_counts(events, "destination", slot(slot_seconds).alias("slot")))


def message_counts(events: DataFrame, *keys: Column | str) -> DataFrame:
    """Count the events of messages by these keys and their kind, as `by_kind` does."""
    return by_kind(events.where(~F.col("kind").isin(*WITHOUT_MESSAGE)), *keys)


def traffic_of(counts: DataFrame) -> DataFrame:
    """Return schemas.TRAFFIC from counts of messages by destination, slot and kind."""
    counted = counts.groupBy("destination", "slot").agg(
        messages("enqueue").alias("sent"),
        messages("rollback").alias("rolled_back"),
        messages("forward").alias("stored"),
        messages("dispatch").alias("dispatched"),
        messages("ack").alias("acked"),
        size_of("enqueue").alias("bytes_sent"),
        size_of("forward").alias("bytes_stored"),
        F.sum("events").alias("events"),
    )
    return counted.select(
        "destination",
        "slot",
        "sent",
        "stored",
        F.greatest("sent", "stored").alias("arrived"),
        "dispatched",
        "acked",
        "rolled_back",
        "bytes_sent",
        F.greatest("bytes_sent", "bytes_stored").alias("bytes"),
        "events",
    )
