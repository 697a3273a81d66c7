"""Aggregates that all transforms count with. An event stands for `weight` messages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def by_kind(events: DataFrame, *keys: Column | str, **more: Column) -> DataFrame:
    """Events counted by these keys and their kind: columns `messages`, `bytes`, `last`, `events`, and `more`.

    What `messages` and its like make of these few rows is what they would make of all events, for a fraction of the
    time: kinds are texts, and each aggregate compares them.
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
    """Bytes of the messages that events of these kinds stand for; of rows of `by_kind`."""
    return of_kinds("bytes", *kinds)


def of_kinds(column: str, *kinds: str) -> Column:
    """Return the sum of a column over rows of these kinds."""
    return F.sum(F.when(F.col("kind").isin(*kinds), F.col(column)).otherwise(0))


def last(*kinds: str) -> Column:
    """When the last event of these kinds happened, null when none did; of rows of `by_kind`."""
    return F.max(F.when(F.col("kind").isin(*kinds), F.col("last")))


def slot(seconds: int) -> Column:
    """Return the beginning of the slot an event falls in (time_buckets.py)."""
    at = F.unix_seconds("ts")
    return F.timestamp_seconds(at - F.pmod(at, F.lit(seconds)))


def hashed(count: Column) -> Column:
    """This count as it is. Wanted beside aggregates that keep a text of each group.

    It adds the size of a set that is always empty: with such a one Spark hashes the groups (up to OBJECT_GROUPS of
    server.py); without it sorts all rows for them, which takes several times as long.
    """
    return count + F.size(F.collect_set(F.lit(None).cast("int")))
