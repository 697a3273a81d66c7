"""Test how the oldest message of each slot and the lag are computed. No Spark."""

from hypothesis import given
from hypothesis import strategies as st

from analytics.model.depth_series import DepthSeries
from analytics.model.lag_series import (
    Certainty,
    ServiceCounts,
    SlotTimes,
    behind,
    lag_of,
    mean_age,
    oldest_of_slots,
)

SLOTS = 50
RANGES = st.lists(
    st.tuples(st.integers(0, SLOTS - 1), st.integers(1, SLOTS), st.integers(0, 1000)).map(
        lambda each: (each[0], min(SLOTS, each[0] + each[1]), each[2])
    )
)


def blocks(begin, end, born):
    """The two blocks that cover a range, as the transform makes them."""
    level = (end - begin).bit_length() - 1
    return [(level, begin, born), (level, end - (1 << level), born)]


@given(RANGES)
def test_the_oldest_message_of_a_slot_is_the_least_of_all_ranges_that_cover_it(ranges):
    found = oldest_of_slots(SLOTS, [block for each in ranges for block in blocks(*each)])
    for slot in range(SLOTS):
        assert found[slot] == min((born for begin, end, born in ranges if begin <= slot < end), default=None)


TIMES = SlotTimes([0, 100, 200, 300], 100, 0.0, 380.0)


def lag(depths, enqueued, dequeued, born_us, before=0, gaps=(False,) * 4, **counts):
    course = DepthSeries(depths, enqueued, dequeued, gaps=list(gaps))
    none = [0] * 4
    service = ServiceCounts(
        counts.get("arrived", enqueued), counts.get("served", dequeued), counts.get("timed", none),
        counts.get("age_us", none),
    )  # fmt: skip
    return lag_of(course, TIMES, service, born_us, before)


def test_the_age_of_the_oldest_message_is_measured_at_the_end_of_each_slot():
    found = lag([2, 2, 1, 0], [2, 0, 0, 0], [0, 0, 1, 1], [5_000_000, 5_000_000, 7_000_000, None])
    assert found.oldest == [95.0, 195.0, 293.0, None]
    assert found.certainty == [*[Certainty.EXACT] * 3, Certainty.UNKNOWN]


def test_messages_from_before_the_first_event_are_at_least_as_old_as_the_recording():
    found = lag([3, 3, 4, 4], [0, 0, 1, 0], [0, 0, 0, 0], [None, None, 250_000_000, 250_000_000])
    assert found.oldest == [100.0, 200.0, 300.0, 380.0]
    assert set(found.certainty) == {Certainty.AT_LEAST}


def test_messages_from_before_that_are_removed_later_are_known_by_their_removal():
    found = lag([1, 1, 0, 0], [0] * 4, [0, 0, 1, 0], [-50_000_000, -50_000_000, None, None], before=1)
    assert (found.oldest, found.certainty[0]) == ([150.0, 250.0, None, None], Certainty.EXACT)


def test_an_age_is_at_most_that_of_a_message_which_may_have_left_unrecorded():
    found = lag([2, 1, 1, 1], [2, 0, 0, 0], [0, 0, 0, 0], [5_000_000] * 4)
    assert found.certainty == [Certainty.EXACT, *[Certainty.AT_MOST] * 3]


def test_nothing_is_known_of_messages_that_were_never_recorded():
    found = lag([0, 5, 5, 5], [0] * 4, [0] * 4, [None] * 4)
    assert (found.oldest, set(found.certainty)) == ([None] * 4, {Certainty.UNKNOWN})


def test_slots_without_records_have_no_age():
    found = lag([1, 1, 1, 1], [1, 0, 0, 0], [0] * 4, [5_000_000] * 4, gaps=(False, True, False, False))
    assert (found.oldest[1], found.depths[1], found.behind[1]) == (None, None, None)
    assert found.certainty == [Certainty.EXACT, Certainty.UNKNOWN, Certainty.EXACT, Certainty.EXACT]


def test_rates_are_means_of_five_minutes_and_of_what_is_recorded_of_them():
    found = lag([60, 60, 60, 30], [120, 0, 0, 0], [60, 0, 0, 30], [0] * 4)
    assert found.service_rate == [60 / 100, 60 / 200, 60 / 300, 30 / 280]
    assert found.arrival_rate == [120 / 100, 120 / 200, 120 / 300, 0.0]
    assert found.behind == [60 / 0.6, 60 / 0.3, 60 / 0.2, 30 / (30 / 280)]


def test_nobody_knows_when_a_queue_without_service_is_done_and_an_empty_one_is_not_behind():
    assert (behind(5, 0.0), behind(0, 0.0), behind(None, 1.0), behind(6, 2.0)) == (None, 0.0, None, 3.0)


def test_the_age_of_acknowledged_messages_is_a_mean():
    counts = {"timed": [2, 0, 1, 0], "age_us": [6_000_000.0, 0.0, 1_000_000.0, 0.0]}
    found = lag([0] * 4, [0] * 4, [0] * 4, [None] * 4, **counts)
    assert found.acknowledged_age == [3.0, None, 1.0, None]
    assert mean_age(ServiceCounts([], [], **counts), 0) == 7 / 3
    assert mean_age(ServiceCounts([], [], **counts), 3) is None
