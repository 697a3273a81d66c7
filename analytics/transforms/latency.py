"""Latency by consumer queue: from the message's arrival at the broker to its ack.

Percentiles are read off a log histogram: latencies are counted in buckets that grow by 2 ** (1 / STEPS), and a
percentile is the middle of the bucket that holds it. Histograms of any split of the data add up to that of the whole,
so the same numbers come from rollups. The exact percentile (nearest rank) is in the same bucket: the error is at most
2.2 %.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: Buckets in which a latency doubles.
STEPS = 16
#: How far a percentile may be from the exact one, as a part of it.
ERROR = 2 ** (1 / (2 * STEPS)) - 1
PERCENTILES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99}


def latency(events: DataFrame) -> DataFrame:
    """Rows of schemas.LATENCY, a row for each destination of which anything was acknowledged."""
    micros = F.greatest(F.unix_micros("ts") - F.unix_micros("born"), F.lit(1))
    histogram = (
        events.where(F.col("kind") == "ack")
        .groupBy("destination", F.floor(F.log2(micros) * STEPS).alias("bucket"))
        .agg(F.count("*").alias("messages"))
    )
    of_destination = Window.partitionBy("destination")
    ranked = histogram.select(
        "destination",
        "bucket",
        F.sum("messages").over(of_destination.orderBy("bucket")).alias("rank"),
        F.sum("messages").over(of_destination).alias("acked"),
    )
    percentiles = [_percentile(part).alias(name) for name, part in PERCENTILES.items()]
    return ranked.groupBy("destination", "acked").agg(*percentiles)


def _percentile(part: float) -> Column:
    """The middle, by factor, of the first bucket up to which that part of the messages lies."""
    bucket = F.min(F.when(F.col("rank") >= F.col("acked") * part, F.col("bucket")))
    return F.pow(F.lit(2.0), (bucket + 0.5) / STEPS)
