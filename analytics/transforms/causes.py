"""Why messages were given up: dead letters, expired and dropped ones, by causes that are alike (see ../causes.py)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.causes import GAP, GAPS, LONGEST, UNKNOWN, VARIABLE
from analytics.transforms.counting import slot

OUTCOMES = ("dead_letter", "expire", "drop")
#: Java's regular expressions know letters and digits of all scripts only when they are told to.
_UNICODE = "(?U)"


def causes(events: DataFrame, slot_seconds: int) -> DataFrame:
    """Rows of schemas.CAUSES: a row for each outcome, cause, place, consumer and slot, with its newest message."""
    reason = F.trim(F.coalesce("reason", F.lit("")))
    alike = F.regexp_replace(reason, F.lit(_UNICODE + VARIABLE), F.lit(GAP))
    cause = F.substring(F.regexp_replace(alike, F.lit(GAPS), F.lit(GAP)), 1, LONGEST)
    return (
        events.where(F.col("kind").isin(*OUTCOMES))
        .groupBy(
            F.col("kind").alias("outcome"),
            F.when(cause == "", UNKNOWN).otherwise(cause).alias("cause"),
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
            F.count("*").alias("events"),
        )
    )
