"""A job that fails in Spark."""

from pyspark.sql import functions as F

STEPS = 1


def run(question, collect):
    return collect(
        "dividing by zero", question.events.sparkSession.range(5).select(F.lit(1) / (F.col("id") - F.col("id")))
    )
