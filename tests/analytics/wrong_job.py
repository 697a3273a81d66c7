"""A job that Spark cannot carry out."""

from pyspark.sql import functions as F

STEPS = 1


def run(events, window, collect):
    return collect("dividing by zero", events.sparkSession.range(5).select(F.lit(1) / (F.col("id") - F.col("id"))))
