"""A job whose result takes some megabytes."""

from analytics.results.storage import Column, Findings, Table

STEPS = 1


def run(question, collect):
    rows = collect("drawing numbers", question.events.sparkSession.range(300_000).selectExpr("id", "rand() as r"))
    return Findings("Many numbers.", 0, tables=(Table("numbers", "Numbers", (Column("id", "Id"),), rows),))
