"""Generate hourly traffic and depths of several weeks: patterns, trend, holidays, noise, bursts and outages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DAY, WEEK = 24, 168
#: Hours since the epoch of a Monday, 2026-01-05 00:00 UTC.
MONDAY = 490_992
_HOURS = np.arange(24)


def _peak(at: float, width: float) -> np.ndarray:
    distance = np.minimum(np.abs(_HOURS - at), 24 - np.abs(_HOURS - at))
    return np.exp(-((distance / width) ** 2) / 2)


_WORK = 0.06 + _peak(10.5, 2.2) + 0.9 * _peak(15, 2.2)
_SHOP = 0.1 + 0.4 * _peak(12.5, 2) + _peak(20, 2.5)
_NIGHTLY = 0.02 + 1.5 * _peak(2, 0.6)
_FLAT = np.ones(24)


@dataclass(frozen=True, slots=True)
class TrafficKind:
    """One kind of traffic. The shares are of a usual hour, the pattern has 168 hours."""

    name: str
    per_hour: float
    week: np.ndarray
    noise: float  #: standard deviation of the logarithm of an hour
    persistence: float = 0.6  #: share of an hour's deviation that is left in the next one
    growth: float = 0.0  #: a week


def _week(workday: np.ndarray, saturday: np.ndarray, sunday: np.ndarray) -> np.ndarray:
    return np.concatenate([*[workday] * 5, saturday, sunday])


KINDS = (
    TrafficKind("office hours", 20_000, _week(_WORK, _WORK * 0.15, _WORK * 0.1), 0.15),
    TrafficKind("shop", 5_000, _week(_SHOP, _SHOP * 1.4, _SHOP * 1.6), 0.2, growth=0.03),
    TrafficKind("nightly batch", 50_000, _week(_NIGHTLY, _NIGHTLY, _NIGHTLY * 0.3), 0.3, 0.2),
    TrafficKind("steady", 3_600, _week(_FLAT, _FLAT, _FLAT), 0.05),
    TrafficKind("sparse", 3, _week(_WORK, _WORK * 0.3, _WORK * 0.3), 0.3),
    TrafficKind("growing", 2_000, _week(_WORK, _WORK * 0.5, _WORK * 0.4), 0.2, growth=0.12),
)


@dataclass(frozen=True, slots=True)
class Incident:
    """A time in which traffic is not as usual: the factor by which it is changed."""

    first: int
    hours: int
    factor: float


@dataclass(frozen=True, slots=True)
class GeneratedSeries:
    """Hourly figures, NaN where nothing was recorded, and what happened in them."""

    values: np.ndarray
    incidents: tuple[Incident, ...]
    start: int = MONDAY


def traffic(
    kind: TrafficKind, weeks: int, rng: np.random.Generator, incidents: tuple[Incident, ...] = (), dirty: bool = True
) -> GeneratedSeries:
    """Generate the traffic of so many weeks. `dirty`: with holidays, bursts, outages and gaps at random."""
    hours = weeks * WEEK
    at = np.arange(hours)
    usual = kind.week[at % WEEK] * kind.per_hour * (1 + kind.growth) ** (at / WEEK)
    deviation = np.zeros(hours)
    steps = rng.normal(0, kind.noise * np.sqrt(1 - kind.persistence**2), hours)
    for hour in range(1, hours):
        deviation[hour] = kind.persistence * deviation[hour - 1] + steps[hour]
    unknown = np.zeros(hours, bool)
    if dirty:
        incidents = (*_random_incidents(weeks, rng), *incidents)
        for day in np.flatnonzero(rng.random(weeks * 7) < 1 / 56):  # holidays are as Sundays
            usual[day * DAY : (day + 1) * DAY] *= 0.3
        for first in np.flatnonzero(rng.random(hours) < 0.3 / WEEK):  # nothing was recorded
            unknown[first : first + int(rng.integers(1, 7))] = True
    for each in incidents:
        usual[each.first : each.first + each.hours] *= each.factor
    values = rng.poisson(usual * np.exp(deviation)).astype(float)
    values[unknown] = np.nan
    return GeneratedSeries(values, incidents)


def _random_incidents(weeks: int, rng: np.random.Generator) -> list[Incident]:
    """Generate two bursts and half an outage in three weeks."""
    found = []
    for first in np.flatnonzero(rng.random(weeks * WEEK) < 0.67 / WEEK):
        found.append(Incident(int(first), int(rng.integers(1, 3)), float(rng.uniform(3, 10))))
    for first in np.flatnonzero(rng.random(weeks * WEEK) < 0.17 / WEEK):
        found.append(Incident(int(first), int(rng.integers(1, 7)), 0.0))
    return found


def depths(arrivals: GeneratedSeries, capacity: float) -> GeneratedSeries:
    """Return the depths at the ends of hours of a queue whose consumers process so many messages an hour at most."""
    depth, found = 0.0, []
    for came in np.nan_to_num(arrivals.values):
        depth = max(0.0, depth + came - capacity) + came * 0.002  # some are always in flight
        found.append(round(depth))
    values = np.array(found, float)
    values[np.isnan(arrivals.values)] = np.nan
    return GeneratedSeries(values, arrivals.incidents, arrivals.start)
