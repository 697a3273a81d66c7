"""Forecast hourly figures from their weekly or daily pattern, with intervals. Pure.

Figures are compared as logarithms (of 1 + figure), since what varies is a share of the traffic, not a number of
messages. A figure is the sum of three parts: the median of the same hour of the week in past weeks (the pattern), the
level of the last days, and for forecasts the deviation of the last hours, which fades. Intervals are quantiles of the
errors that the same method would have made in the past: each week is predicted from the others. Medians and quantiles
ignore outages and bursts in the history that are rarer than one hour in twenty.
docs/decisions/0028-forecasts.md compares this with other methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HOUR = 3600
DAY_HOURS, WEEK_HOURS = 24, 168
#: Hours of history from which on the weekly pattern is used, and from which on the daily one: a pattern that was seen
#: once cannot be told from chance, and of three days two agree.
LEAST_WEEKLY, LEAST_DAILY = 2 * WEEK_HOURS, 3 * DAY_HOURS
#: Hours of history that are used: older weeks say less of the present.
MOST_HOURS = 8 * WEEK_HOURS
#: The share of hours in a history that must be recorded.
LEAST_RECORDED = 0.5
#: Hours whose deviations give the level, and the deviation that forecasts start from.
LEVEL_HOURS, RECENT_HOURS = WEEK_HOURS, 3
#: Errors of the hours of the pattern with the most similar figures make one distribution, of at least so many errors.
SIMILAR_ERRORS = 120
#: Neighbours in this order that share the quantiles of one of them, to save time.
SAME_ERRORS = 4
#: No forecast is above so many times the greatest figure of the history: logarithms make a rare backlog astronomical.
GREATEST = 2.0
#: Quantiles of the intervals of 90% and 50%, and the median.
LOW, LOWER, MIDDLE, UPPER, HIGH = range(5)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Quantiles of errors from which the expected range is computed, and their distance from the median in standard
#: deviations of a normal distribution. Outages and bursts may be one hour in ten of the history.
_RANGE_QUANTILES, _RANGE_DISTANCE = (0.1, 0.9), 1.2816
#: The expected range ends so many standard deviations above and below the median. docs/analyses.md has the false
#: alarms and detected incidents of others.
RANGE_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True)
class SeasonalModel:
    """The pattern of a figure, its level and the errors of the past, in logarithms."""

    end: int  #: start of the first hour after the history, in hours since the epoch
    period: int  #: WEEK_HOURS or DAY_HOURS
    hours: int  #: hours of history that were used
    pattern: np.ndarray  #: by the hour of the period; hour 0 is the first of the epoch's
    level: float
    recent: float  #: deviation of the last hours
    persistence: float  #: share of a deviation that is left after an hour
    errors: np.ndarray  #: QUANTILES of errors for each hour of the period
    range_errors: np.ndarray  #: _RANGE_QUANTILES of errors for each hour of the period
    most: float  #: logarithm of the highest forecast

    @property
    def is_weekly(self) -> bool:
        """Return whether weekdays are told apart."""
        return self.period == WEEK_HOURS

    def forecast(self, hours: int) -> np.ndarray:
        """Return QUANTILES of so many hours after the history: an array of shape (hours, 5)."""
        ahead = np.arange(1, hours + 1)
        fades = self.persistence**ahead
        at = np.arange(self.end, self.end + hours) % self.period
        width = np.sqrt(1 - fades**2)
        middle = self.pattern[at] + self.level + self.recent * fades + self.errors[at, MIDDLE] * (1 - fades)
        spread = self.errors[at] - self.errors[at, MIDDLE, None]
        return _figures(np.minimum(middle[:, None] + spread * width[:, None], self.most))

    def expected(self, first: int, hours: int, deviations: float = RANGE_DEVIATIONS) -> np.ndarray:
        """Return low end, median and high end of the expected range: an array of shape (hours, 3).

        `first` is in hours since the epoch. The last hours are not considered: an outage would be expected to last.
        The range is at least as wide as that of counts of independent messages (Poisson).
        """
        at = np.arange(first, first + hours) % self.period
        middle = self.pattern[at] + self.level + self.errors[at, MIDDLE]
        below, above = (
            np.abs(self.range_errors[at, end] - self.errors[at, MIDDLE]) / _RANGE_DISTANCE for end in (0, 1)
        )
        ends = np.stack((middle - deviations * below, middle, middle + deviations * above), axis=1)
        found = _figures(np.minimum(ends, self.most))
        chance = deviations * np.sqrt(found[:, 1] + 1)
        found[:, 0] = np.maximum(np.minimum(found[:, 0], found[:, 1] - chance), 0)
        found[:, 2] = np.maximum(found[:, 2], found[:, 1] + chance)
        return found


def recorded_hours(values: np.ndarray) -> int:
    """Return the hours from the first recorded one on; values are NaN where nothing was recorded."""
    known = np.flatnonzero(~np.isnan(values))
    return len(values) - int(known[0]) if len(known) else 0


def fit(values: np.ndarray, end: int) -> SeasonalModel | None:
    """Fit the pattern of hourly figures that end with the hour before `end`, in hours since the epoch.

    Values are NaN where nothing was recorded. Returns None for a history that is too short or mostly not recorded.
    """
    length = min(recorded_hours(values), MOST_HOURS)
    period = WEEK_HOURS if length >= LEAST_WEEKLY else DAY_HOURS
    if length < LEAST_DAILY:
        return None
    length = length // period * period
    logs = np.log1p(np.maximum(values[-length:], 0))
    if np.isnan(logs).mean() > 1 - LEAST_RECORDED:
        return None
    rows = logs.reshape(-1, period)
    shift = (end - length) % period  # the hour of the period in which rows begin
    levels = _levels(rows)
    level_hours = LEVEL_HOURS if period == WEEK_HOURS else DAY_HOURS
    flat = rows - levels[:, None]
    pattern = _filled(_median(flat))
    level = float(_median((rows - pattern).ravel()[-level_hours:]))
    errors = _errors_of_past(rows, levels)
    quantiles = _quantiles(errors, pattern)
    deviations = (rows - pattern - levels[:, None]).ravel()
    return SeasonalModel(
        end,
        period,
        length,
        np.roll(pattern, shift),
        level,
        float(np.nan_to_num(_median(deviations[-RECENT_HOURS:] + levels[-1] - level))),
        _persistence(deviations),
        np.roll(quantiles[:, : len(QUANTILES)], shift, axis=0),
        np.roll(quantiles[:, len(QUANTILES) :], shift, axis=0),
        float(np.log1p(GREATEST * np.nanmax(np.expm1(logs)))),
    )


def _levels(rows: np.ndarray) -> np.ndarray:
    """Return the level of each week or day, relative to the mean of all."""
    pattern = _median(rows)
    return np.nan_to_num(_median(rows - pattern, axis=1))


def _errors_of_past(rows: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the errors of predicting each week or day from the others, and the level of the one before."""
    errors = np.empty_like(rows)
    for number in range(len(rows)):
        others = np.delete(rows - levels[:, None], number, axis=0)
        before = levels[number - 1] if number else levels[1]
        errors[number] = rows[number] - _filled(_median(others)) - before
    return errors


def _quantiles(errors: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """Return QUANTILES and _RANGE_QUANTILES of errors for each hour of the period, of hours with similar figures."""
    count, period = errors.shape
    similar = min(period, -(-SIMILAR_ERRORS // count))
    order = np.argsort(pattern, kind="stable")
    wanted = (*QUANTILES, *_RANGE_QUANTILES)
    found = np.zeros((period, len(wanted)))
    for rank in range(0, period, SAME_ERRORS):
        first = min(max(0, rank - similar // 2), period - similar)
        near = errors[:, order[first : first + similar]]
        near = near[~np.isnan(near)]
        if len(near):
            found[order[rank : rank + SAME_ERRORS]] = np.quantile(near, wanted)
    return found


def _persistence(deviations: np.ndarray) -> float:
    """Return the correlation of deviations with those an hour later, from 0 to 0.98. Outliers are limited."""
    spread = np.nan_to_num(_median(np.abs(deviations))) * 4
    limited = np.clip(deviations, -spread, spread)
    before, after = limited[:-1], limited[1:]
    known = ~np.isnan(before) & ~np.isnan(after)
    scale = float(np.sum(before[known] ** 2))
    return min(max(float(np.sum(before[known] * after[known])) / scale, 0.0), 0.98) if scale else 0.0


def _filled(pattern: np.ndarray) -> np.ndarray:
    """Fill hours that were never recorded with the median of the others."""
    return np.where(np.isnan(pattern), np.nan_to_num(_median(pattern)), pattern)


def _median(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return the median of recorded values, NaN without any. numpy.nanmedian takes thirty times as long."""
    ordered = np.sort(values, axis=axis)  # NaN last
    last = np.sum(~np.isnan(values), axis=axis, keepdims=True) - 1
    low, high = (np.take_along_axis(ordered, np.maximum(each, 0), axis) for each in (last // 2, last - last // 2))
    return np.squeeze((low + high) / 2, axis=axis)


def _figures(logs: np.ndarray) -> np.ndarray:
    """Return figures from logarithms; none is below 0."""
    return np.maximum(np.expm1(logs), 0.0)
