"""Test attainment, error budget and burn rate, and which cells cover a time range. No I/O."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.model.service_level import (
    DAY,
    FAST,
    FAST_THRESHOLD,
    HOUR,
    MINUTE,
    SLOW,
    SLOW_THRESHOLD,
    Outcomes,
    budget_left,
    burn_rate,
    cells_between,
    is_met,
    overdue,
)

NOW = 1_760_000_430


def test_messages_that_are_late_failed_or_still_wait_too_long_miss_the_objective():
    found = Outcomes(within=90, late=5, failed=3, overdue=2)
    assert (found.missed, found.total, found.attainment) == (10, 100, 0.9)
    assert burn_rate(found, 95) == pytest.approx(2)
    assert budget_left(found, 95) == pytest.approx(-1)
    assert budget_left(found, 80) == pytest.approx(0.5)


def test_without_messages_nothing_is_attained_and_no_budget_is_spent():
    assert (Outcomes().attainment, burn_rate(Outcomes(), 99), budget_left(Outcomes(), 99)) == (None, 0.0, 1)


@given(st.integers(1, 1000), st.integers(10, 999))
def test_just_the_share_that_is_demanded_meets_an_objective_and_spends_its_budget(hundreds, tenths):
    found = Outcomes(within=hundreds * tenths, late=hundreds * (1000 - tenths))
    assert is_met(found, tenths / 10)
    assert not is_met(replace(found, late=found.late + 1), tenths / 10)
    assert f"{budget_left(found, tenths / 10):.0%}" == "0%"


def test_thresholds_spend_two_and_five_percent_of_the_budget_of_thirty_days():
    assert FAST_THRESHOLD * FAST[0] / (30 * DAY) == pytest.approx(0.02)
    assert SLOW_THRESHOLD * SLOW[0] / (30 * DAY) == pytest.approx(0.05)


@given(st.integers(0, 60 * DAY), st.integers(60, 4 * DAY))
def test_cells_cover_each_minute_of_a_time_range_once(age, kept):
    start, minutes_since = NOW - age, (NOW - kept) // MINUTE * MINUTE
    covered = [
        minute
        for width, starts in cells_between(start, NOW, minutes_since).items()
        for each in starts
        for minute in range(each, each + width, MINUTE)
        if width > MINUTE or each >= minutes_since
    ]
    assert len(set(covered)) == len(covered)
    assert set(range(-(-start // HOUR) * HOUR, NOW, MINUTE)) <= set(covered)
    assert not covered or min(covered) > start - HOUR
    assert not covered or max(covered) < NOW + HOUR


def test_days_are_read_as_days():
    cells = cells_between(NOW - 7 * DAY, NOW, NOW - 2 * DAY)
    assert 5 <= len(cells[DAY]) <= 6
    assert len(cells[HOUR]) < 48
    assert len(cells[MINUTE]) < 60


def test_what_did_not_arrive_in_the_allowed_time_waits_too_long():
    assert (overdue(10, 4), overdue(3, 4)) == (6, 0)
