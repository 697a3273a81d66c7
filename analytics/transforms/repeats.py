"""Repeats: messages that were given out again, and those that were processed more than once."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def repeats(events: DataFrame) -> DataFrame:
    """Rows of schemas.REPEATS, a row for each destination of which anything was acknowledged or came back.

    A message is told from others at its destination by 64 bits of a hash of both: of a billion messages the odds are
    one in forty that two are taken for one.
    """
    counted = F.col("weight")
    of_message = (
        events.where(F.col("kind").isin("ack", "redeliver"))
        .groupBy("destination", F.xxhash64("msg_id").alias("message"))
        .agg(
            F.sum(F.when(F.col("kind") == "ack", counted).otherwise(0)).alias("acks"),
            F.sum(F.when(F.col("kind") == "redeliver", counted).otherwise(0)).alias("redeliveries"),
            F.max("weight").alias("weight"),
            F.min("broker").alias("first_broker"),
            F.max("broker").alias("last_broker"),
            F.max("msg_id").alias("msg_id"),
            F.count("*").alias("events"),
        )
    )
    twice = F.col("acks") > F.col("weight")
    across = twice & (F.col("first_broker") != F.col("last_broker"))
    again = F.col("redeliveries") > 0
    return of_message.groupBy("destination").agg(
        F.sum(F.when(F.col("acks") > 0, counted).otherwise(0)).alias("messages"),
        F.sum(F.when(again, counted).otherwise(0)).alias("redelivered"),
        F.sum("redeliveries").alias("redeliveries"),
        F.max((F.col("redeliveries") / counted).cast("long")).alias("most"),
        F.sum(F.when(twice, counted).otherwise(0)).alias("duplicated"),
        F.sum(F.when(across, counted).otherwise(0)).alias("across"),
        F.max_by("msg_id", F.when(again, F.struct("redeliveries", "msg_id"))).alias("most_redelivered"),
        F.max_by("msg_id", F.when(twice, F.struct("acks", "msg_id"))).alias("most_processed"),
        F.sum("events").alias("events"),
    )
