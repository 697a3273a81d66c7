"""A job that keeps Spark busy until it is stopped."""

STEPS = 1


def run(question, collect):
    frame = question.events.sparkSession.range(0, 10**13, 1, 64).selectExpr("sum(id % 7)")
    return collect("counting to ten trillion", frame)
