"""What would wait: the closed form is what a queue does that is served step by step; and how fast it is served."""

from random import Random

import numpy as np
import pytest

from analytics.whatif.depths import predicted, service
from analytics.whatif.tallies import Series, parts


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
