"""Count messages that were redelivered, and those that were processed more than once."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.model.measures import UNDONE
from analytics.transforms.aggregates import hashed


def repeats(events: DataFrame) -> DataFrame:
    """Return schemas.REPEATS: a row for each destination with acknowledged or returned messages.

    A returned message counts as redelivered once it was dispatched after its return; until then it is waiting. A
    message that a bridge acknowledged may be processed by another broker. An acknowledgement that was prepared and
    rolled back did not process its message, which returned by that. At a topic each subscriber processes a
    message, so it counts for each of them.
    """
    at_topic = F.col("destination").startswith("topic://") | F.col("destination").startswith("temp-topic://")
    consumer = F.when(at_topic, F.col("consumer"))
    undone = (F.col("kind") == "return") & (F.col("reason") == UNDONE)
    is_return = (F.col("kind") == "redeliver") | undone
    returned, given = F.when(is_return, F.col("ts")), F.when(F.col("kind") == "dispatch", F.col("ts"))
    counted, broker = F.col("weight"), F.xxhash64("broker")  # a number: groups that keep a text take longer
    of_message = (
        events.where(F.col("kind").isin("ack", "dispatch", "redeliver", "bridge_forward") | undone)
        .groupBy("destination", "msg_id", consumer.alias("subscriber"))
        .agg(
            F.sum(
                F.when(F.col("kind") == "ack", counted)
                .when(F.col("kind").isin("bridge_forward", "return"), -counted)
                .otherwise(0)
            ).alias("acks"),
            F.sum(F.when(is_return, counted).otherwise(0)).alias("returns"),
            F.coalesce(F.max(returned) <= F.max(given), F.lit(False)).alias("is_given"),
            F.max("weight").alias("weight"),
            F.min(broker).alias("first_broker"),
            F.max(broker).alias("last_broker"),
            F.count("*").alias("events"),
        )
    )
    # Between two returns it was dispatched: only after the last one it may still be waiting.
    again = F.when(F.col("is_given"), F.col("returns")).otherwise(F.greatest(F.col("returns") - counted, F.lit(0)))
    of_message = of_message.where("acks <> 0 OR returns > 0").withColumn("redeliveries", again)
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
