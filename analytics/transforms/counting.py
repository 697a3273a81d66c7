"""Aggregates that all transforms count with. An event stands for `weight` messages."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def messages(*kinds: str) -> Column:
    """How many messages events of these kinds stand for."""
    return F.sum(F.when(F.col("kind").isin(*kinds), F.col("weight").cast("long")).otherwise(0))


def size_of(kind: str) -> Column:
    """Bytes of the messages that events of this kind stand for."""
    return F.sum(F.when(F.col("kind") == kind, F.col("size") * F.col("weight")).otherwise(0))


def last(*kinds: str) -> Column:
    """When the last event of these kinds happened; null when none did."""
    return F.max(F.when(F.col("kind").isin(*kinds), F.col("ts")))


def slot(seconds: int) -> Column:
    """The beginning of the slot an event falls in (slots.py)."""
    at = F.unix_seconds("ts")
    return F.timestamp_seconds(at - F.pmod(at, F.lit(seconds)))
