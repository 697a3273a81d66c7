"""Group dead letters and dropped messages by similar causes (model/failure_patterns.py)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.model.failure_patterns import GAP, GAPS, LONGEST, UNKNOWN, VARIABLE
from analytics.model.measures import FAILURES
from analytics.transforms.aggregates import hashed, slot

#: The flag with which Java's regular expressions match letters and digits of all scripts.
_UNICODE = "(?U)"


def causes(events: DataFrame, slot_seconds: int) -> DataFrame:
    """Return schemas.CAUSES: a row for each outcome, cause, destination, consumer and slot, with its newest message.

    Each failed copy counts once: an expired one has become a dead letter, or was dropped.
    """
    return (
        events.where(F.col("kind").isin(*FAILURES))
        .groupBy(
            F.col("kind").alias("outcome"),
            _cause(F.trim(F.coalesce("reason", F.lit("")))).alias("cause"),
            "destination",
            "consumer",
            slot(slot_seconds).alias("slot"),
        )
        .agg(
            F.sum("weight").alias("messages"),
            F.min("ts").alias("first"),
            F.max("ts").alias("last"),
            F.max_by("msg_id", F.struct("ts", "msg_id")).alias("example"),
            F.max_by("reason", F.struct("ts", "msg_id")).alias("example_reason"),
            hashed(F.count("*")).alias("events"),
        )
    )


def _cause(reason: Column) -> Column:
    """Compute failure_patterns.pattern_of in Spark, with the slower Unicode pattern only where it is needed."""
    is_plain = F.length(reason) == F.octet_length(reason)
    alike = F.when(is_plain, _without(reason, VARIABLE)).otherwise(_without(reason, _UNICODE + VARIABLE))
    return F.when(reason == "", UNKNOWN).otherwise(F.substring(_without(alike, GAPS), 1, LONGEST))


def _without(text: Column, pattern: str) -> Column:
    return F.regexp_replace(text, F.lit(pattern), F.lit(GAP))
