"""Traffic by destination and slot: what was sent, stored, dispatched, acknowledged."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import WITHOUT_MESSAGE
from analytics.transforms.aggregates import by_kind, messages, size_of, slot


def traffic(events: DataFrame, slot_seconds: int = 60) -> DataFrame:
    """Rows of schemas.TRAFFIC, a row for each destination and slot in which anything happened.

    A message sent to a queue is an enqueue and a copy stored there, a forward: it arrived once. Where nothing is
    stored, as at a virtual topic, there are only enqueues; where copies come, only forwards. So the greater arrived.
    Summed over destinations that would count a message with its copies: `sent` and `stored` are what adds up.
    """
    happened = events.where(~F.col("kind").isin(*WITHOUT_MESSAGE))
    of_kinds = by_kind(happened, "destination", slot(slot_seconds).alias("slot"))
    counted = of_kinds.groupBy("destination", "slot").agg(
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
