"""A job with a result of several megabytes."""

from analytics.results.storage import JobResult, ResultColumn, ResultTable

STEPS = 1


def run(question, collect):
    rows = collect("drawing numbers", question.events.sparkSession.range(300_000).selectExpr("id", "rand() as r"))
    return JobResult("Many numbers.", 0, tables=(ResultTable("numbers", "Numbers", (ResultColumn("id", "Id"),), rows),))
