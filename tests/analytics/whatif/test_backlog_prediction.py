"""Test the prediction of backlogs: the closed form equals a queue served step by step."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from analytics.jobs import whatif
from analytics.model.depth_series import DepthSeries
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.whatif import report
from analytics.whatif.backlog_prediction import (
    BacklogSeries,
    continuous_rate,
    predict_backlog,
    predict_change,
    service_rate,
)
from analytics.whatif.comparison import ComparedTarget, backlog_by_name
from analytics.whatif.message_counts import CopySeries, TimeBuckets, equal_shares


@pytest.mark.parametrize("seed", range(20))
def test_the_closed_form_is_the_queue_served_step_by_step(seed):
    random = Random(seed)
    arrived = np.array([random.choice([0, 0, random.randrange(50)]) for _ in range(200)])
    served, waiting = random.uniform(0, 15), random.choice([0, 40])
    depth, expected = waiting, []
    for each in arrived:
        depth = max(0, depth + each - served)
        expected.append(depth)
    assert predict_backlog(arrived, served, waiting) == pytest.approx(expected)


def test_nothing_leaves_a_queue_that_nobody_serves():
    assert list(predict_backlog(np.array([3, 0, 4]), service_rate(np.array([0, 0, 0])))) == [3, 3, 7]


def test_the_rate_of_service_is_that_of_busy_times_without_the_single_burst():
    acked = np.array([0] * 50 + [10] * 38 + [12] + [500])
    assert service_rate(acked) == 12


def test_the_rate_of_service_does_not_depend_on_how_long_the_buckets_are():
    fine = continuous_rate(np.array([300, 300, 0]), np.array([59.0, 59.0, 0.0]), 60)
    coarse = continuous_rate(np.array([600]), np.array([119.5]), 900)  # they left for two minutes of fifteen
    assert service_rate(fine) == 300
    assert service_rate(coarse) / 15 == pytest.approx(300, rel=0.01)


def test_a_few_messages_that_leave_at_once_are_no_high_rate():
    assert list(continuous_rate(np.array([3, 3]), np.array([0.001, 0.0]), 900)) == [45, 45]
    assert list(continuous_rate(np.array([3]), np.array([0.001]), 10)) == [3]


def test_queues_that_take_turns_get_equal_parts_to_the_message():
    series = CopySeries(np.array([3, 0, 4, 1]), np.array([30, 0, 40, 10]))
    found = list(equal_shares(series, 3))
    assert [int(each.messages.sum()) for each in found] == [3, 3, 2]
    assert list(sum(each.messages for each in found)) == [3, 0, 4, 1]
    assert [int(each.bytes.sum()) for each in found] == [30, 30, 20]


ALWAYS = np.array([True] * 3)


def test_a_draft_that_brings_a_queue_the_same_leaves_waiting_what_is_on_record():
    on_record = np.array([0, 448, 0])
    came = np.array([5, 448, 2])
    assert list(predict_change(BacklogSeries(0, on_record, came, ALWAYS), came, came, served=1)) == [0, 448, 0]


def test_a_draft_that_brings_nothing_leaves_nothing_waiting_that_was_not_there_before():
    came = np.array([10, 10, 10])
    stopped = BacklogSeries(3, np.array([3, 10, 20]), came, ALWAYS)
    assert list(predict_change(stopped, came, np.array([0, 0, 0]), served=10)) == [0, 3, 3]


def test_a_draft_that_brings_more_lets_as_much_more_wait_as_consumers_cannot_take():
    even = BacklogSeries(0, np.array([0, 0, 0]), np.array([10, 10, 10]), ALWAYS)
    assert list(predict_change(even, even.enqueued, 2 * even.enqueued, served=15)) == [5, 10, 15]


def test_nothing_is_served_while_nothing_was_recorded():
    known = np.array([True, False, True])
    stopped = BacklogSeries(0, np.array([10, 10, 0]), np.array([10, 0, 0]), known)
    assert list(predict_change(stopped, stopped.enqueued, 2 * stopped.enqueued, served=5)) == [20, 20, 10]


def test_what_waited_is_told_by_bucket_at_all_brokers_together():
    courses = {
        ("a", "queue://q"): DepthSeries([7, 8, 8, 6], [2, 3, 1, 0], [0, 2, 1, 2], gaps=[False] * 4),
        ("b", "queue://q"): DepthSeries([0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], gaps=[False, False, True, False]),
    }
    found = backlog_by_name(courses, begins=[3600, 3660, 3720, 3780], slot=60, buckets=TimeBuckets(3660, 120, 2))
    assert found["queue://q"].before == 7
    assert list(found["queue://q"].depths) == [8, 6]
    assert list(found["queue://q"].enqueued) == [5, 0]
    assert list(found["queue://q"].known) == [False, True]


def test_what_waits_is_drawn_at_its_time_from_the_beginning_of_the_record_with_gaps_where_there_is_none():
    came, waits = np.array([0, 5, 0, 5]), np.array([0, 5, 5, 9])
    known = np.array([True, True, False, True])
    keeps = ComparedTarget("queue://a", CopySeries(came, came), CopySeries(came, came), 0.0, waits, waits * 2, known)
    topic = ComparedTarget(
        "topic://b", CopySeries(came, came), CopySeries(came, came), 0.0, waits[:0], waits[:0], known[:0]
    )
    comparison = SimpleNamespace(targets=[topic, keeps], buckets=TimeBuckets(600, 60, 4))
    _, figure = report.chart(comparison, TimeWindow(660_000_000, 830_000_000))
    drawn = {trace["name"]: trace["y"] for trace in figure["data"]}
    assert drawn == {"queue://a (recorded)": [5, None, 9], "queue://a": [10, None, 18]}
    assert figure["data"][0]["x"] == [f"1970-01-01T00:{moment}Z" for moment in ("12:00", "13:00", "13:50")]
    empty = ComparedTarget(
        "queue://a", CopySeries(came, came), CopySeries(came, came), 0.0, waits * 0, waits * 0, known
    )
    assert (
        report.chart(SimpleNamespace(targets=[topic, empty], buckets=TimeBuckets(600, 60, 4)), TimeWindow(0, 1)) is None
    )


def test_a_day_of_which_only_minutes_are_recorded_is_drawn_as_finely_as_these_minutes(monkeypatch):
    read, buckets = [], []
    monkeypatch.setattr(whatif, "flows", lambda _events, seconds: buckets.append(seconds))
    day, minutes = 86_400_000_000, 720_000_000
    question = RunQuestion(TimeWindow(day, 2 * day), read.append, trial=SimpleNamespace(), began_us=2 * day - minutes)
    whatif.run(question, lambda _what, _frame: pa.table({"sent": [0]}))
    assert (read, buckets) == ([TimeWindow(2 * day - minutes, 2 * day)], [30])
