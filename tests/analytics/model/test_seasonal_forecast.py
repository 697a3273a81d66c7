"""Forecasts and expected ranges follow the weekly or daily pattern, and ignore what was rare in the past."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analytics.model.anomalies import ABOVE, BELOW, expected_ranges, find_anomalies
from analytics.model.seasonal_forecast import (
    DAY_HOURS,
    GREATEST,
    HIGH,
    LEAST_DAILY,
    LEAST_WEEKLY,
    LOW,
    LOWER,
    MIDDLE,
    UPPER,
    WEEK_HOURS,
    fit,
    recorded_hours,
)
from benchmarks.analytics.generated_weeks import KINDS, MONDAY, traffic

OFFICE = KINDS[0]
WEEK = np.repeat([1000, 1000, 1000, 1000, 1000, 100, 50], 24) * np.tile(1 + np.arange(24) % 12, 7)


def weeks(count):
    return np.tile(WEEK.astype(float), count)


def test_a_pattern_without_noise_is_forecast_exactly():
    for length in (LEAST_WEEKLY, LEAST_WEEKLY + 30, 5 * WEEK_HOURS + 7):
        model = fit(weeks(7)[:length], MONDAY + length)
        assert model.is_weekly
        ahead = model.forecast(WEEK_HOURS)
        assert ahead[:, MIDDLE] == pytest.approx(weeks(8)[length : length + WEEK_HOURS], rel=1e-6)
        assert ahead[:, LOW] == pytest.approx(ahead[:, HIGH], rel=1e-6)


def test_less_than_two_weeks_use_the_daily_pattern_and_less_than_three_days_none():
    assert fit(weeks(1)[: LEAST_DAILY - 1], MONDAY) is None
    model = fit(weeks(1)[:LEAST_DAILY], MONDAY + LEAST_DAILY)
    assert (model.is_weekly, model.period, model.hours) == (False, DAY_HOURS, LEAST_DAILY)
    assert fit(weeks(2)[:-1], MONDAY).period == DAY_HOURS


def test_hours_before_the_first_recorded_one_do_not_count_and_a_mostly_unrecorded_history_is_refused():
    values = weeks(3)
    values[: WEEK_HOURS + 1] = np.nan
    assert recorded_hours(values) == 2 * WEEK_HOURS - 1
    assert not fit(values, MONDAY).is_weekly
    assert recorded_hours(np.full(5, np.nan)) == 0
    values[WEEK_HOURS + 2 :: 2] = np.nan
    values[-200:] = np.nan
    assert fit(values, MONDAY) is None


def test_an_outage_and_a_holiday_in_the_past_change_a_forecast_little():
    values = traffic(OFFICE, 4, np.random.default_rng(3), dirty=False).values
    usual = fit(values, MONDAY + len(values)).forecast(WEEK_HOURS)[:, MIDDLE]
    values[30:36] = 0
    values[200:224] *= 0.1
    values[400:404] = np.nan
    changed = fit(values, MONDAY + len(values)).forecast(WEEK_HOURS)[:, MIDDLE]
    assert np.abs(changed - usual).sum() < 0.08 * usual.sum()


def test_intervals_hold_about_as_many_hours_as_they_say():
    inside = np.zeros(2)
    for seed in range(12):
        values = traffic(OFFICE, 5, np.random.default_rng(seed), dirty=False).values
        ahead, truth = fit(values[:-WEEK_HOURS], MONDAY + 4 * WEEK_HOURS).forecast(WEEK_HOURS), values[-WEEK_HOURS:]
        for place, (low, high) in enumerate(((LOWER, UPPER), (LOW, HIGH))):
            inside[place] += np.mean((truth >= ahead[:, low]) & (truth <= ahead[:, high])) / 12
    assert 0.4 < inside[0] < 0.7
    assert 0.82 < inside[1] < 0.97


@settings(max_examples=40, deadline=None)
@given(
    values=arrays(float, st.integers(0, 500), elements=st.one_of(st.just(np.nan), st.integers(0, 10**12).map(float))),
    end=st.integers(0, 10**6),
)
def test_any_history_has_an_ordered_finite_forecast_or_none(values, end):
    model = fit(values, end)
    if model is None:
        return
    for found in (model.forecast(30), model.expected(end, 30)):
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        assert (np.diff(found, axis=1) >= -1e-6 * (1 + found[:, 1:])).all()
    assert model.forecast(30).max() <= GREATEST * np.nanmax(values) + 1


def test_silence_and_a_burst_are_anomalies_and_usual_hours_are_none():
    values = traffic(OFFICE, 5, np.random.default_rng(5), dirty=False).values
    monday = 4 * WEEK_HOURS
    values[monday + 9 : monday + 12] = 0
    values[monday + 34 : monday + 36] *= 5
    expected = expected_ranges(values, MONDAY + len(values))
    assert len(expected) == WEEK_HOURS
    silence, burst = find_anomalies(values[-WEEK_HOURS:], expected, MONDAY + monday)
    assert (silence.first, silence.hours, silence.direction, silence.observed) == (MONDAY + monday + 9, 3, BELOW, 0)
    assert (burst.first, burst.hours, burst.direction) == (MONDAY + monday + 34, 2, ABOVE)
    assert silence.low < silence.expected < silence.high < burst.observed


def test_each_day_is_expected_from_the_days_before_it_alone():
    values = traffic(OFFICE, 4, np.random.default_rng(6), dirty=False).values
    before = expected_ranges(values, MONDAY + len(values))
    values[-DAY_HOURS:] = 0
    assert (expected_ranges(values, MONDAY + len(values)) == before).all()
    assert len(expected_ranges(values[: LEAST_DAILY + 2 * DAY_HOURS], MONDAY)) == 2 * DAY_HOURS
    assert len(expected_ranges(values[:LEAST_DAILY], MONDAY)) == 0


def test_hours_that_were_not_recorded_are_no_anomalies():
    values = weeks(3)
    values[-20:-10] = np.nan
    assert find_anomalies(values[-WEEK_HOURS:], expected_ranges(values, MONDAY), MONDAY - WEEK_HOURS) == []
