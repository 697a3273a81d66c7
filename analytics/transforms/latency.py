"""Count the latencies from arrival at the broker to the ack in log histograms (analytics/rollups/log_histogram.py).

With `ack:auto` a message counts as acknowledged when it is written to its consumer's connection.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.rollups.log_histogram import STEPS
from analytics.transforms.aggregates import slot

_TIMES = ("destination", "slot", "bucket")
_CONSUMERS = ("destination", "consumer", "bucket")


def latency(events: DataFrame, slot_seconds: int) -> DataFrame:
    """Return schemas.LATENCY: acks by destination and slot, and again by destination and consumer.

    Both are sums of a small cube, which one scan computes.
    """
    return latency_of(ack_counts(events, "destination", "consumer", slot(slot_seconds).alias("slot")))


def latency_of(cube: DataFrame) -> DataFrame:
    """Return schemas.LATENCY from counts of acks by destination, consumer, slot and bucket."""
    sets = [[F.col(name) for name in each] for each in (_TIMES, _CONSUMERS)]
    keys = [F.col(name) for name in ("destination", "consumer", "slot", "bucket")]
    summed = cube.groupingSets(sets, *keys).agg(F.sum("messages").alias("messages"))
    return summed.select("destination", "consumer", "slot", "bucket", "messages")


def latency_of_destinations(events: DataFrame) -> DataFrame:
    """Return schemas.LATENCY by destination only, with consumer and slot null."""
    return of_destinations(ack_counts(events, "destination"))


def of_destinations(counts: DataFrame) -> DataFrame:
    """Return schemas.LATENCY by destination only, from counts of acks by destination and bucket."""
    nobody, never = F.lit(None).cast("string").alias("consumer"), F.lit(None).cast("timestamp").alias("slot")
    return counts.select("destination", nobody, never, "bucket", "messages")


def ack_counts(events: DataFrame, *keys: Column | str) -> DataFrame:
    """Count acks by these keys and the bucket of their latency."""
    acks = events.where(F.col("kind") == "ack")
    return acks.groupBy(*keys, bucket().alias("bucket")).agg(F.sum("weight").alias("messages"))


def bucket() -> Column:
    """Return the bucket of an event's time since its message's arrival (log_histogram.buckets_of)."""
    micros = F.unix_micros("ts") - F.unix_micros("born")
    size = F.floor(F.log2(F.greatest(F.abs(micros), F.lit(1))) * STEPS)
    return F.when(micros < 0, -1 - size).otherwise(size)
