"""A job that keeps one of Spark's cores busy until it is stopped."""

STEPS = 1


def run(question, collect):
    frame = question.events.sparkSession.range(0, 10**13, 1, 1).selectExpr("sum(id % 7)")
    return collect("counting to ten trillion", frame)
