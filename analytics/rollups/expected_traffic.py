"""Compute the expected traffic of destinations from the hourly rollups, without Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analytics.model.anomalies import expected_ranges
from analytics.model.recording_gaps import RecordingCoverage, find_gaps
from analytics.model.seasonal_forecast import DAY_HOURS, LEAST_DAILY, LEAST_WEEKLY, MOST_HOURS, fit, recorded_hours
from analytics.model.traffic_comparison import ExpectedHour, TrafficHour, hour_to_judge
from analytics.rollups.queries import WHOLE_BROKER, RollupQueries
from analytics.rollups.store import HOUR

#: Hours that are read: those that a range is made from.
HISTORY_HOURS = MOST_HOURS
#: Days of history that ranges need.
LEAST_DAYS = LEAST_DAILY // DAY_HOURS


@dataclass(frozen=True, slots=True)
class HourlyTraffic:
    """The arrivals at destinations in each hour; NaN before the first one and where nothing was recorded."""

    end: int  #: start of the first hour after them, in hours since the epoch
    destinations: Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class ExpectedTraffic:
    """The expected ranges of hours in succession; none if there is too little history."""

    first: int  #: hours since the epoch
    ranges: Sequence[ExpectedHour]
    recorded_hours: int

    @property
    def end(self) -> int:
        """Return the hour after the last range, in hours since the epoch."""
        return self.first + len(self.ranges)

    def at(self, hour: int) -> ExpectedHour | None:
        """Return the expected range of an hour, None if there is none."""
        return self.ranges[hour - self.first] if self.first <= hour < self.end else None

    def continued(self, later: ExpectedTraffic, kept_hours: int) -> ExpectedTraffic:
        """Return the later ranges after those of the hours before them, at most so many."""
        first = max(self.first, later.first - kept_hours)
        if not later.ranges or not first < later.first <= self.end:
            return later
        before = self.ranges[first - self.first : later.first - self.first]
        return ExpectedTraffic(first, (*before, *later.ranges), later.recorded_hours)


def read_hourly_traffic(past: RollupQueries, end: int, destinations: Sequence[str]) -> HourlyTraffic:
    """Read the traffic of the HISTORY_HOURS before `end`, in hours since the epoch."""
    first = end - HISTORY_HOURS
    unknown = _unrecorded(past, first, end)
    found = {name: np.zeros(HISTORY_HOURS) for name in destinations}
    begins: dict[str, int] = {}
    for start, name, arrived, *_ in past.flows(first * HOUR, end * HOUR, HOUR, list(found)):
        hour = start // HOUR - first
        found[name][hour] = arrived
        if arrived:
            begins[name] = min(begins.get(name, hour), hour)
    for name, values in found.items():
        values[unknown] = np.nan
        values[: begins.get(name, HISTORY_HOURS)] = np.nan  # a new destination is not one that was silent for weeks
    return HourlyTraffic(end, found)


def _unrecorded(past: RollupQueries, first: int, end: int) -> np.ndarray:
    """Return for each hour whether nothing is known of it. An idle broker that holds no messages records nothing."""
    noted = {start // HOUR - first: depth for start, _, _, _, depth in
             past.flows(first * HOUR, end * HOUR, HOUR, [WHOLE_BROKER])}  # fmt: skip
    waiting, depth = [], 0
    for hour in range(end - first):
        depth = noted.get(hour) if noted.get(hour) is not None else depth
        waiting.append(depth)
    begins = [hour * HOUR for hour in range(first, end)]
    return np.array(find_gaps(begins, HOUR, end * HOUR, RecordingCoverage(noted, (), ()), waiting), bool)


def expect(values: np.ndarray, end: int, past_days: int, hours: int) -> ExpectedTraffic:
    """Return the expected ranges of so many hours from `end` on, and of the days before.

    `values` are hourly figures that end before `end`. Each past day is expected from the hours before it alone.
    """
    known = recorded_hours(values)
    model = fit(values, end)
    if model is None:
        return ExpectedTraffic(end, (), known)
    before = expected_ranges(values, end, past_days) if past_days else np.zeros((0, 3))
    ranges = np.concatenate((before, model.expected(end, hours)))
    return ExpectedTraffic(end - len(before), _whole(ranges), known)


def replay_days(values: np.ndarray, end: int, days: int) -> list[TrafficHour]:
    """Return the recorded hours of the last days that have an expected range, as they would have been compared.

    Days are left out that would have been compared with a daily pattern only, if later ones have a weekly one.
    """
    known = recorded_hours(values)
    if known >= LEAST_WEEKLY + DAY_HOURS:
        days = min(days, (known - LEAST_WEEKLY) // DAY_HOURS)
    ranges = expected_ranges(values, end, days)
    first = end - len(ranges)
    return [
        TrafficHour((first + number) * HOUR, int(observed), expected)
        for number, (observed, expected) in enumerate(
            zip(values[len(values) - len(ranges) :].tolist(), _whole(ranges), strict=True)
        )
        if not math.isnan(observed)
    ]


def compare_traffic(past: RollupQueries, expected: Mapping[str, ExpectedTraffic], until: int) -> dict[str, TrafficHour]:
    """Compare the last complete hour of destinations, or the current one if it exceeds its range already.

    `until`: seconds since the epoch up to which events are recorded. Hours without records and destinations without a
    range are left out.
    """
    current = until // HOUR
    last = None if _unrecorded(past, current - DAY_HOURS, current)[-1] else current - 1
    counts = {(start // HOUR, name): arrived for start, name, arrived, *_ in
              past.flows((current - 1) * HOUR, until + 1, HOUR, list(expected))}  # fmt: skip

    def hour_of(name: str, hour: int | None) -> TrafficHour | None:
        if hour is None or (found := expected[name].at(hour)) is None:
            return None
        return TrafficHour(hour * HOUR, counts.get((hour, name), 0), found, is_complete=hour < current)

    hours = {name: hour_to_judge(hour_of(name, current), hour_of(name, last)) for name in expected}
    return {name: hour for name, hour in hours.items() if hour is not None}


def compare_hours(past: RollupQueries, destination: str, expected: ExpectedTraffic, hours: range) -> list[TrafficHour]:
    """Compare complete hours of a destination, in hours since the epoch, with their ranges.

    Hours without records and hours without a range are left out.
    """
    hours = range(max(hours.start, expected.first), min(hours.stop, expected.end))
    if not hours:
        return []
    before = hours.start - DAY_HOURS  # depths of the hours before tell whether the first ones were recorded
    unknown = _unrecorded(past, before, hours.stop)[DAY_HOURS:]
    counts = {start // HOUR: arrived for start, _, arrived, *_ in
              past.flows(hours.start * HOUR, hours.stop * HOUR, HOUR, [destination])}  # fmt: skip
    return [
        TrafficHour(hour * HOUR, counts.get(hour, 0), expected.ranges[hour - expected.first])
        for hour, is_unknown in zip(hours, unknown, strict=True)
        if not is_unknown
    ]


def _whole(ranges: np.ndarray) -> list[ExpectedHour]:
    """Return ranges in whole messages: each end is rounded outwards, as anomalies are compared."""
    return [ExpectedHour(math.floor(low), round(middle), math.ceil(high)) for low, middle, high in ranges.tolist()]


def busiest(past: RollupQueries, end: int, days: int, most: int) -> list[str]:
    """Return the destinations with most arrivals in the last days, at most so many."""
    counts: dict[str, int] = {}
    for _, name, arrived, *_ in past.flows((end - days * DAY_HOURS) * HOUR, end * HOUR, DAY_HOURS * HOUR,
                                           past.destinations()):  # fmt: skip
        counts[name] = counts.get(name, 0) + arrived
    return sorted((name for name in counts if counts[name]), key=lambda name: (-counts[name], name))[:most]
