"""Test how gaps of a recording are found from the depths that a broker noted. No Spark."""

import pytest

from analytics.model.recording_gaps import RecordingCoverage, find_gaps

QUARTER, NINE, TEN = 900, 9 * 3600, 10 * 3600


def gaps(heard, waiting=5, started=(), whole=(NINE, TEN), count=8, until=None, slot=QUARTER):
    """The quarters of an hour from nine on of which nothing is known; `whole`: hours with notes of everything."""
    begins = [NINE + slot * number for number in range(count)]
    end = begins[-1] + slot if until is None else until
    found = find_gaps(begins, slot, end, RecordingCoverage(set(heard), set(started), set(whole)), [waiting] * count)
    return [number for number, gap in enumerate(found) if gap]


def test_what_is_noted_each_hour_and_does_not_change_in_between_is_known():
    assert gaps({0, 4}) == []


def test_a_full_hour_without_a_note_of_what_waits_means_that_nobody_ran():
    assert gaps({0, 1, 7}, whole={NINE}) == [2, 3, 4, 5, 6]


def test_where_nothing_waits_there_is_nothing_to_note():
    assert gaps({0, 1, 7}, waiting=0, whole=()) == []


def test_a_broker_that_began_ran_not_before():
    assert gaps({0, 2}, started={2}, count=4) == [1]


def test_that_one_of_its_nodes_began_says_nothing_of_a_broker():
    assert gaps({0, 2}, count=4) == []


@pytest.mark.parametrize(("seconds_past_ten", "expected"), [(20, []), (61, [2, 3, 4])])
def test_notes_of_an_hour_that_began_just_now_may_still_come(seconds_past_ten, expected):
    assert gaps({0, 1}, count=5, whole={NINE}, until=TEN + seconds_past_ten) == expected


@pytest.mark.parametrize(("whole", "expected"), [({NINE, TEN}, []), ({NINE}, list(range(1, 62)))])
def test_notes_of_an_hour_may_come_late(whole, expected):
    """By minutes: 9:00, and 10:02."""
    assert gaps({0, 62}, whole=whole, count=64, slot=60) == expected
