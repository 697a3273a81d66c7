"""Compare a time range with the same hours of earlier weeks."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.requests.request import TimeWindow
from analytics.transforms.aggregates import messages
from analytics.transforms.traffic import message_counts

WEEK_US = 7 * 86400 * 1_000_000


def windows_of(window: TimeWindow, weeks: int) -> list[TimeWindow]:
    """Return the window and the same hours of so many weeks before it."""
    back = [week * WEEK_US for week in range(weeks + 1)]
    return [TimeWindow(window.since_us - each, window.until_us - each) for each in back]


def weeks(events: DataFrame, window: TimeWindow, slot_seconds: int) -> DataFrame:
    """Return schemas.WEEKS: a row for each destination, week (0: the window) and slot.

    `slot` is shifted to the window in all weeks.
    """
    return weeks_of(message_counts(events, *week_keys(window, slot_seconds)))


def week_keys(window: TimeWindow, slot_seconds: int) -> tuple[Column | str, ...]:
    """Return the keys of counts that are compared: destination, week (0: the window) and slot."""
    week = ((F.lit(window.until_us - 1) - F.unix_micros("ts")) / WEEK_US).cast("int")
    at = F.unix_seconds("ts") + week * (WEEK_US // 1_000_000)
    slot = F.timestamp_seconds(at - F.pmod(at, F.lit(slot_seconds)))
    return "destination", week.alias("week"), slot.alias("slot")


def weeks_of(counts: DataFrame) -> DataFrame:
    """Return schemas.WEEKS from counts of messages by week_keys and kind."""
    compared = counts.where(F.col("kind").isin("enqueue", "forward", "ack", "dead_letter"))
    counted = compared.groupBy("destination", "week", "slot").agg(
        messages("enqueue").alias("enqueued"),
        messages("forward").alias("forwarded"),
        messages("ack").alias("acked"),
        messages("dead_letter").alias("failed"),
        F.sum("events").alias("events"),
    )
    arrived = F.greatest("enqueued", "forwarded").alias("arrived")
    return counted.select("destination", "week", "slot", arrived, "acked", "failed", "events")
