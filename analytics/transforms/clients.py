"""Summarize each client's traffic by destination: sent by producers; dispatched to consumers and settled by them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import SETTLEMENTS
from analytics.requests.request import TimeWindow
from analytics.transforms.aggregates import by_kind, last, messages, of_kinds, size_of


def client_counts_of(counts: DataFrame) -> DataFrame:
    """Return the columns of schemas.CLIENTS that counts by destination, client and kind have."""
    return counts.groupBy("destination", "client").agg(
        messages("enqueue").alias("sent"),
        size_of("enqueue").alias("bytes_sent"),
        messages("rollback").alias("rolled_back"),
        messages("ack").alias("acked"),
        size_of("ack").alias("bytes_acked"),
        F.sum("events").alias("events"),
    )


def clients(events: DataFrame, window: TimeWindow) -> DataFrame:
    """Return schemas.CLIENTS: a row for each destination and client; events without a client have the client null.

    Holding times count for messages that arrived in the window, as all their events are in it: `given` and `finished`
    are the numbers of dispatches and of their ends, `held_ms` is the sum of the times of the ends minus that of the
    dispatches, since the beginning of the window. Messages in flight have no end yet.
    """
    since_ms = window.since_us // 1000
    at = F.unix_millis("ts") - F.lit(since_ms)
    young = F.when(F.unix_micros("born") >= F.lit(window.since_us), F.col("weight").cast("long")).otherwise(0)
    counted = by_kind(
        events.where(F.col("kind") != "depth"), "destination", F.col("consumer").alias("client"),
        young=F.sum(young), at=F.sum(at * young), first=F.min("ts"),
    )  # fmt: skip
    ends, taken = F.col("kind").isin(*SETTLEMENTS) & F.col("client").isNotNull(), F.col("kind") == "dispatch"
    return counted.groupBy("destination", "client").agg(
        messages("enqueue").alias("sent"),
        size_of("enqueue").alias("bytes_sent"),
        messages("rollback").alias("rolled_back"),
        messages("forward").alias("arrived"),
        messages("dispatch").alias("dispatched"),
        messages("ack").alias("acked"),
        size_of("ack").alias("bytes_acked"),
        messages("redeliver").alias("redelivered"),
        messages(*SETTLEMENTS).alias("ended"),
        of_kinds("young", "dispatch").alias("given"),
        F.sum(F.when(ends, F.col("young")).otherwise(0)).alias("finished"),
        F.sum(F.when(ends, F.col("at")).when(taken, -F.col("at")).otherwise(0)).alias("held_ms"),
        last("dispatch").alias("last_dispatched"),
        last(*SETTLEMENTS).alias("last_ended"),
        last("subscribe").alias("began_at"),
        last("unsubscribe").alias("left_at"),
        F.min(F.when(F.col("kind").isin("subscribe", "dispatch"), F.col("first"))).alias("came_at"),
        F.sum("events").alias("events"),
    )
