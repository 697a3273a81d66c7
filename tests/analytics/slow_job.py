"""A job that sleeps until it is stopped, and leaves the processors to others."""

STEPS = 1
#: Of a look at whether it is to stop, which Spark takes every thousand rows: 16 naps, or 80 ms.
NAP = "CASE WHEN id % 64 = 0 THEN java_method('java.lang.Thread', 'sleep', 5L) END AS nap"


def run(question, collect):
    frame = question.events.sparkSession.range(0, 10**13, 1, 2).selectExpr(NAP).selectExpr("count(nap)")
    return collect("counting to ten trillion in naps", frame)
