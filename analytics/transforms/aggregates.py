"""Define the aggregates of all transforms. An event stands for `weight` messages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def by_kind(events: DataFrame, *keys: Column | str, **more: Column) -> DataFrame:
    """Count events by these keys and their kind: columns `messages`, `bytes`, `last`, `events`, and `more`.

    `messages` and the other aggregates over these few rows take a fraction of the time that they would take over all
    events, as each compares the texts of kinds.
    """
    weight = F.col("weight").cast("long")
    return events.groupBy(*keys, "kind").agg(
        F.sum(weight).alias("messages"),
        F.sum(F.col("size") * weight).alias("bytes"),
        F.max("ts").alias("last"),
        F.count("*").alias("events"),
        *(column.alias(name) for name, column in more.items()),
    )


def messages(*kinds: str) -> Column:
    """Sum the messages of events of these kinds, over rows of `by_kind`."""
    return of_kinds("messages", *kinds)


def size_of(*kinds: str) -> Column:
    """Sum the bytes of the messages of events of these kinds, over rows of `by_kind`."""
    return of_kinds("bytes", *kinds)


def of_kinds(column: str, *kinds: str) -> Column:
    """Return the sum of a column over rows of these kinds."""
    return F.sum(F.when(F.col("kind").isin(*kinds), F.col(column)).otherwise(0))


def last(*kinds: str) -> Column:
    """Return the time of the last event of these kinds, or null; over rows of `by_kind`."""
    return F.max(F.when(F.col("kind").isin(*kinds), F.col("last")))


def slot(seconds: int) -> Column:
    """Return the start of an event's slot (model/time_buckets.py)."""
    at = F.unix_seconds("ts")
    return F.timestamp_seconds(at - F.pmod(at, F.lit(seconds)))


def hashed(count: Column) -> Column:
    """Return a count unchanged, in a way that makes Spark hash groups that keep a text instead of sorting all rows.

    It adds the size of a set that is always empty. With such an aggregate Spark hashes the groups (up to
    MAX_HASHED_GROUPS of spark/server.py); sorting takes several times as long.
    """
    return count + F.size(F.collect_set(F.lit(None).cast("int")))
