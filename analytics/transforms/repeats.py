"""Repeats: messages that were given out again, and those that were processed more than once."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.transforms.counting import hashed


def repeats(events: DataFrame) -> DataFrame:
    """Rows of schemas.REPEATS, a row for each destination of which anything was acknowledged or came back.

    What a bridge acknowledged is processed by another broker, or not.
    """
    counted, broker = F.col("weight"), F.xxhash64("broker")  # a number: groups that keep a text take longer
    of_message = (
        events.where(F.col("kind").isin("ack", "redeliver", "bridge_forward"))
        .groupBy("destination", "msg_id")
        .agg(
            F.sum(
                F.when(F.col("kind") == "ack", counted).when(F.col("kind") == "bridge_forward", -counted).otherwise(0)
            ).alias("acks"),
            F.sum(F.when(F.col("kind") == "redeliver", counted).otherwise(0)).alias("redeliveries"),
            F.max("weight").alias("weight"),
            F.min(broker).alias("first_broker"),
            F.max(broker).alias("last_broker"),
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
        hashed(F.sum("events")).alias("events"),
    )
