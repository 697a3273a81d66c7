"""A job that needs more memory than Spark has."""

STEPS = 1


def run(question, collect):
    frame = question.events.sparkSession.range(2).selectExpr("repeat(cast(id as string), 2000000000) as x")
    return collect("eating", frame.selectExpr("max(x)"))
