"""Read the depths that brokers noted, and the arrivals and removals between; combined in model/depth_series.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import ARRIVALS, NEVER_STORED, REMOVALS, WITHOUT_MESSAGE
from analytics.transforms.aggregates import by_kind, messages, size_of, slot
from brokerapp.tracing.schema import ALL, START


def leaves() -> Column:
    """Return whether an event removed a stored copy."""
    return F.col("kind").isin(*REMOVALS) & ~never_stored()


def never_stored() -> Column:
    """Return whether an event dropped a copy that was never stored."""
    return (F.col("kind") == "drop") & F.coalesce(F.col("reason").isin(*NEVER_STORED), F.lit(False))


def notes(events: DataFrame, slot_seconds: int) -> DataFrame:
    """Return schemas.DEPTH_NOTES: the last note of each log in each slot, the first, and times of notes of all logs.

    Also the number of consumers after its last change in the slot.
    """
    depth = F.when(F.col("kind") == "depth", F.col("ts"))
    changed = F.when(F.col("kind") != "depth", F.col("ts"))
    return (
        events.where(F.col("kind").isin(*WITHOUT_MESSAGE))
        .groupBy("broker", "destination", slot(slot_seconds).alias("slot"))
        .agg(
            F.max(depth).alias("ts"),
            F.max_by("size", depth).alias("depth"),
            F.max_by("size", changed).alias("consumers"),
            F.max(F.when(F.col("reason") == ALL, F.col("ts"))).alias("whole"),
            F.min(F.when(F.col("reason") == START, F.col("ts"))).alias("started"),
            F.min("ts").alias("first"),
        )
    )


def flows(events: DataFrame, slot_seconds: int, first: int, cuts: Sequence[Mapping[int, int]]) -> DataFrame:
    """Return schemas.DEPTH_FLOWS: arrivals and removals of each log and slot, separately for the parts between cuts.

    `first`: start of the first slot, in seconds. `cuts`: times in microseconds by the number of the slot. `part` is the
    number of cuts of its slot that precede an event.
    """
    number, part = number_and_part(slot_seconds, first, cuts)
    keys = ("broker", "destination", number.alias("number"), part.alias("part"))
    return (
        by_kind(events.where(F.col("kind").isin(*ARRIVALS) | leaves()), *keys)
        .groupBy("broker", "destination", "number", "part")
        .agg(
            messages(*ARRIVALS).alias("came"),
            messages(*REMOVALS).alias("went"),
            size_of(*ARRIVALS).alias("bytes_came"),
            F.sum("events").alias("events"),
        )
    )


def number_and_part(slot_seconds: int, first: int, cuts: Sequence[Mapping[int, int]]) -> tuple[Column, Column]:
    """Return the number of an event's slot, and the part of the slot, as for `flows`."""
    number = ((F.unix_seconds("ts") - F.lit(first)) / slot_seconds).cast("int")
    return number, sum((_after(number, each) for each in cuts), F.lit(0))


def _after(number: Column, cuts: Mapping[int, int]) -> Column:
    """Return 1 for events at or after the cut of their slot, else 0."""
    if not cuts:
        return F.lit(0)
    never = (1 << 63) - 1
    moments = F.lit([cuts.get(each, never) for each in range(max(cuts) + 1)])
    cut = F.coalesce(F.try_element_at(moments, number + 1), F.lit(never))
    return (F.unix_micros("ts") >= cut).cast("int")
