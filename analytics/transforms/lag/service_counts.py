"""Count how fast messages arrive and are served, and how old they are when they are acknowledged."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import ARRIVALS, SERVED
from analytics.transforms.lag.oldest_messages import changes_of_logs, slot_number


def service(events: DataFrame, slot_seconds: int, first: int) -> DataFrame:
    """Return schemas.SERVICE: messages that arrived, were served and acknowledged, and the age of the acknowledged.

    An ack with a time before its message's arrival, by the clocks of two nodes, has no age.
    """
    weight, age = F.col("weight").cast("long"), F.unix_micros("ts") - F.unix_micros("born")
    is_ack = F.col("kind") == "ack"
    timed = is_ack & (age >= 0)

    def total(condition: Column, value: Column = weight) -> Column:
        return F.sum(F.when(condition, value).otherwise(0))

    return (
        changes_of_logs(events)
        .groupBy("broker", "destination", slot_number(slot_seconds, first).alias("number"))
        .agg(
            total(F.col("kind").isin(*ARRIVALS)).alias("arrived"),
            total(F.col("kind").isin(*SERVED)).alias("served"),
            total(is_ack).alias("acked"),
            total(timed).alias("timed"),
            total(timed, age.cast("double") * weight).alias("age_us"),
        )
    )
