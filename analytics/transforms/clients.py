"""What each client did at each destination: producers by what they sent, consumers by what they took and finished."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.request import Window
from analytics.transforms.counting import last, messages, size_of

#: What ends a consumer's hold on a message.
ENDS = ("ack", "redeliver", "expire", "dead_letter", "drop")


def clients(events: DataFrame, window: Window) -> DataFrame:
    """Rows of schemas.CLIENTS, a row for each destination and client; what no client did has the client null.

    `held_ms` is the time that messages were held, summed: moments of ends less moments of dispatches, counted from the
    beginning of the window. What is still held has no end yet: who knows how much it is adds the window's length.
    """
    since_ms = window.since_us // 1000
    at = F.unix_millis("ts") - F.lit(since_ms)
    ends = F.col("kind").isin(*ENDS) & F.col("consumer").isNotNull()
    moment = F.when(ends, at).when(F.col("kind") == "dispatch", -at).otherwise(0) * F.col("weight")
    return (
        events.where(F.col("kind") != "depth")
        .groupBy("destination", F.col("consumer").alias("client"))
        .agg(
            messages("enqueue").alias("sent"),
            size_of("enqueue").alias("bytes_sent"),
            messages("forward").alias("arrived"),
            messages("dispatch").alias("dispatched"),
            messages("ack").alias("acked"),
            size_of("ack").alias("bytes_acked"),
            messages("redeliver").alias("redelivered"),
            messages(*ENDS).alias("ended"),
            F.sum(moment).alias("held_ms"),
            last("dispatch").alias("last_dispatched"),
            last(*ENDS).alias("last_ended"),
            F.count("*").alias("events"),
        )
    )
