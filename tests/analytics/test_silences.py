"""When a broker did not run, as its depths tell: it noted nothing at a full hour, or began anew. No Spark."""

import pytest

from analytics.silences import begins_a_run, silent

QUARTER, NINE = 900, 9 * 3600


def gaps(heard, waiting=5, started=(), count=8, until=None):
    """The quarters of an hour from nine on of which nothing is known."""
    begins = [NINE + QUARTER * number for number in range(count)]
    end = begins[-1] + QUARTER if until is None else until
    found = silent(begins, QUARTER, end, heard, started, [waiting] * count)
    return [number for number, gap in enumerate(found) if gap]


def test_what_is_noted_each_hour_and_does_not_change_in_between_is_known():
    assert gaps({0, 4}) == []


def test_a_full_hour_without_a_note_of_what_waits_means_that_nobody_ran():
    assert gaps({0, 1, 7}) == [2, 3, 4, 5, 6]


def test_where_nothing_waits_there_is_nothing_to_note():
    assert gaps({0, 1, 7}, waiting=0) == []


def test_a_node_that_started_ran_not_before():
    assert gaps({0, 2}, started={2}, count=4) == [1]


@pytest.mark.parametrize(("seconds_past_ten", "expected"), [(20, []), (61, [2, 3, 4])])
def test_notes_of_an_hour_that_began_just_now_may_still_come(seconds_past_ten, expected):
    assert gaps({0, 1}, count=5, until=NINE + 3600 + seconds_past_ten) == expected


def test_a_note_of_everything_is_that_of_a_start_unless_it_comes_with_a_full_hour():
    assert [begins_a_run(NINE + second) for second in (0.2, 59.0, 61.0, 3599.0)] == [False, False, True, True]
