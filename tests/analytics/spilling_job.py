"""A job for which Spark has to spill several megabytes."""

STEPS = 1


def run(question, collect):
    numbers = question.events.sparkSession.range(2_000_000).selectExpr("id", "rand() as r").repartition(3, "id")
    return collect("sorting by number", numbers.selectExpr("sum(r)"))
