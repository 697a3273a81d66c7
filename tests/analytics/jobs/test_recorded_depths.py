"""Test in which slots depths are unknown, by the depths that a broker noted when it stopped and started."""

import pyarrow as pa
import pytest

from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow

pytestmark = pytest.mark.spark

MINUTE_US = 60_000_000
FIRST_US = 1_760_000_400_000_000
QUEUE = "queue://orders"


def frame(spark, notes):
    """Recorded depths of a queue with five messages: minute and reason of each."""
    moment = pa.timestamp("us", "UTC")
    columns = {"broker": pa.string(), "destination": pa.string(), "kind": pa.string(), "reason": pa.string(),
               "ts": moment, "size": pa.int64(), "weight": pa.int32()}  # fmt: skip
    rows = [
        {"broker": "b", "destination": QUEUE, "kind": "depth", "reason": reason, "size": 5, "weight": 1,
         "ts": FIRST_US + round(minute * MINUTE_US)}
        for minute, reason in notes
    ]  # fmt: skip
    return spark.createDataFrame(pa.Table.from_pylist(rows, pa.schema(list(columns.items()))))


@pytest.mark.parametrize(
    ("notes", "unknown"),
    [
        ([(0, "all"), (10.1, "changed"), (10.6, "start")], []),
        ([(0, "all"), (10.6, "start")], [*range(1, 10)]),
        ([(0, "all"), (10.6, "start"), (10.8, "changed"), (10.9, "start")], [*range(1, 10)]),
        ([(0, "all"), (7.5, "changed"), (10.6, "start")], [8, 9]),
    ],
)
def test_a_broker_that_noted_depths_when_it_stopped_ran_until_then(spark, notes, unknown):
    from analytics.jobs.common.recorded_depths import read_recorded_depths

    events = frame(spark, notes)
    question = RunQuestion(TimeWindow(FIRST_US, FIRST_US + 12 * MINUTE_US), lambda *_: events)
    found = read_recorded_depths(question, 60, lambda _, each: each.toArrow())
    [course] = found.courses.values()
    assert [number for number, gap in enumerate(course.gaps) if gap] == unknown
