"""Find the oldest waiting message of each queue and subscription over time.

A copy waits from the event that stored it until the event that removed it. Only the ends of slots matter, so events are
first summed by copy and slot: what came and went within a slot leaves no row. The remaining copies are put in order,
which gives the ranges of slots at whose ends they waited. Two blocks, whose length is a power of two, cover each range,
and the oldest copy of each block is kept: few rows for each log, however many messages waited and however long.
model/lag_series.py reads the oldest message of each slot from the blocks.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analytics.model.lag_series import BEFORE
from analytics.model.measures import ARRIVALS
from analytics.transforms.depth_changes import leaves

#: Destinations without storage: their messages never wait.
_TOPICS = "topic://%"


def oldest_messages(events: DataFrame, slot_seconds: int, first: int, slots: int) -> DataFrame:
    """Return schemas.OLDEST: the oldest copy of each block of slots at whose ends it waited.

    `first`: start of the first slot, in seconds; `slots`: their number. Copies that were stored before are known from
    the event that removed them; a row of level BEFORE counts them.
    """
    copy, arrived = F.xxhash64("msg_id").alias("copy"), F.col("kind").isin(*ARRIVALS)
    weight = F.col("weight").cast("long")
    changes = (
        changes_of_logs(events)
        .groupBy("broker", "destination", copy, slot_number(slot_seconds, first).alias("number"))
        .agg(
            F.min("born").alias("born"),
            F.sum(F.when(arrived, weight).otherwise(-weight)).alias("net"),
            F.max(F.when(~arrived, weight)).alias("removed"),
            F.min(F.when(arrived, F.col("ts"))).alias("came"),
            F.min(F.when(~arrived, F.col("ts"))).alias("left"),
        )
        # What left before it came was there already.
        .withColumn("was_there", F.col("left").isNotNull() & (F.col("came").isNull() | (F.col("left") < F.col("came"))))
        .where((F.col("net") != 0) | F.col("was_there"))
    )
    in_order = Window.partitionBy("broker", "destination", "copy").orderBy("number")
    # A copy that arrives first was not there before, even if it is acknowledged twice.
    stored_before = F.when(F.col("was_there"), F.greatest(-F.col("net"), F.col("removed"))).otherwise(0)
    counted = (
        changes.withColumn("count", F.sum("net").over(in_order))
        .withColumn("until", F.coalesce(F.lead("number").over(in_order), F.lit(slots)))
        .withColumn("is_first", F.row_number().over(in_order) == 1)
        .withColumn("before", F.first(stored_before).over(in_order))
    )
    was_before = F.col("is_first") & (F.col("before") > 0)
    blocks = F.array(
        *_blocks(F.col("count") + F.col("before") > 0, F.col("number"), F.col("until")),
        *_blocks(was_before, F.lit(0), F.col("number")),
        F.when(was_before, _block(F.lit(BEFORE), F.lit(0), F.col("before"))),
    )
    return (
        counted.select("broker", "destination", "born", F.inline(F.array_compact(blocks)))
        .groupBy("broker", "destination", "level", "start")
        .agg(F.min("born").alias("born"), F.sum("messages").alias("messages"))
    )


def _blocks(condition: Column, begin: Column, end: Column) -> list[Column]:
    """Return the two blocks that cover the slots from `begin` up to `end`; null without slots or the condition."""
    length = end - begin
    level = F.length(F.bin(length)) - 1  # the exponent of the greatest power of two that is not above the length
    last = end - F.call_function("shiftleft", F.lit(1), level)
    is_there, nothing = condition & (length > 0), F.lit(0).cast("long")
    return [F.when(is_there, _block(level, each, nothing)) for each in (begin, last)]


def _block(level: Column, start: Column, messages: Column) -> Column:
    columns = (level.cast("int").alias("level"), start.cast("int").alias("start"), messages.alias("messages"))
    return F.struct(*columns)


def changes_of_logs(events: DataFrame) -> DataFrame:
    """Return the events that store or remove a copy in a queue or subscription."""
    return events.where((F.col("kind").isin(*ARRIVALS) | leaves()) & ~F.col("destination").like(_TOPICS))


def slot_number(slot_seconds: int, first: int) -> Column:
    """Return the number of an event's slot, counted from the second `first`."""
    return ((F.unix_seconds("ts") - F.lit(first)) / slot_seconds).cast("int")
