"""What would wait: the closed form is what a queue does that is served step by step; and how fast it is served."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from analytics.depths import Course
from analytics.whatif import report
from analytics.whatif.comparison import Target, standing_by_name
from analytics.whatif.depths import Standing, changed, predicted, service
from analytics.whatif.tallies import Buckets, Series, parts


@pytest.mark.parametrize("seed", range(20))
def test_the_closed_form_is_the_queue_served_step_by_step(seed):
    random = Random(seed)
    arrived = np.array([random.choice([0, 0, random.randrange(50)]) for _ in range(200)])
    served, waiting = random.uniform(0, 15), random.choice([0, 40])
    depth, expected = waiting, []
    for each in arrived:
        depth = max(0, depth + each - served)
        expected.append(depth)
    assert predicted(arrived, served, waiting) == pytest.approx(expected)


def test_nothing_leaves_a_queue_that_nobody_serves():
    assert list(predicted(np.array([3, 0, 4]), service(np.array([0, 0, 0])))) == [3, 3, 7]


def test_the_rate_of_service_is_that_of_busy_times_without_the_single_burst():
    acked = np.array([0] * 50 + [10] * 38 + [12] + [500])
    assert service(acked) == 12


def test_queues_that_take_turns_get_equal_parts_to_the_message():
    series = Series(np.array([3, 0, 4, 1]), np.array([30, 0, 40, 10]))
    found = list(parts(series, 3))
    assert [int(each.messages.sum()) for each in found] == [3, 3, 2]
    assert list(sum(each.messages for each in found)) == [3, 0, 4, 1]
    assert [int(each.bytes.sum()) for each in found] == [30, 30, 20]


def test_a_draft_that_brings_a_queue_the_same_leaves_waiting_what_is_on_record():
    on_record = np.array([0, 448, 0])
    came = np.array([5, 448, 2])
    assert list(changed(Standing(0, on_record, came), came, came, served=1)) == [0, 448, 0]


def test_a_draft_that_brings_nothing_leaves_nothing_waiting_that_was_not_there_before():
    stopped, came = Standing(3, np.array([3, 10, 20]), np.array([10, 10, 10])), np.array([10, 10, 10])
    assert list(changed(stopped, came, np.array([0, 0, 0]), served=10)) == [0, 3, 3]


def test_a_draft_that_brings_more_lets_as_much_more_wait_as_consumers_cannot_take():
    even = Standing(0, np.array([0, 0, 0]), np.array([10, 10, 10]))
    assert list(changed(even, even.came, 2 * even.came, served=15)) == [5, 10, 15]


def test_what_waited_is_told_by_bucket_at_all_brokers_together():
    courses = {
        ("a", "queue://q"): Course([7, 8, 8, 6], [2, 3, 1, 0], [0, 2, 1, 2]),
        ("b", "queue://q"): Course([0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]),
    }
    found = standing_by_name(courses, begins=[3600, 3660, 3720, 3780], slot=60, buckets=Buckets(3660, 120, 2))
    assert found["queue://q"].before == 7
    assert list(found["queue://q"].depths) == [8, 6]
    assert list(found["queue://q"].came) == [5, 0]


def test_what_waits_is_drawn_from_the_bucket_in_which_the_record_begins():
    came, waits = np.array([0, 5, 5]), np.array([0, 5, 9])
    keeps = Target("queue://a", Series(came, came), Series(came, came), 0.0, waits, waits * 2)
    topic = Target("topic://b", Series(came, came), Series(came, came), 0.0, waits[:0], waits[:0])
    comparison = SimpleNamespace(targets=[topic, keeps], buckets=Buckets(600, 60, 3))
    _, figure = report.chart(comparison, since_us=660_000_000)
    drawn = {trace["name"]: trace["y"] for trace in figure["data"]}
    assert drawn == {"queue://a, today": [5, 9], "queue://a": [10, 18]}
    assert {trace["x"][0] for trace in figure["data"]} == {"1970-01-01T00:11:00Z"}
    empty = Target("queue://a", Series(came, came), Series(came, came), 0.0, waits * 0, waits * 0)
    assert report.chart(SimpleNamespace(targets=[topic, empty], buckets=Buckets(600, 60, 3)), 0) is None
