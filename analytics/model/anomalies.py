"""Find hours whose figures are outside their expected range, as the history before them gives it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from analytics.model.seasonal_forecast import DAY_HOURS, LEAST_DAILY, fit, recorded_hours

#: Days before the end of the history in which anomalies are looked for.
CHECKED_DAYS = 7
BELOW, ABOVE = "below", "above"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Hours in succession that were all below, or all above, their expected range. Figures are means of these hours."""

    first: int  #: hours since the epoch
    hours: int
    direction: str  #: BELOW or ABOVE
    observed: float
    low: float
    expected: float
    high: float

    @property
    def difference(self) -> float:
        """Return by how much the hours together differ from what was expected."""
        return abs(self.observed - self.expected) * self.hours


def expected_ranges(values: np.ndarray, end: int, days: int = CHECKED_DAYS) -> np.ndarray:
    """Return the expected range of each hour of the last days: low end, median and high end.

    `values` are hourly figures that end before `end`, in hours since the epoch. Each day is expected from the hours
    before it alone. Days with too little history before them are left out: the array may be shorter, or empty.
    """
    days = min(days, (recorded_hours(values) - LEAST_DAILY) // DAY_HOURS)
    found = []
    for day in range(days, 0, -1):
        model = fit(values[: -day * DAY_HOURS], end - day * DAY_HOURS)
        if model is None:
            found.clear()
        else:
            found.append(model.expected(end - day * DAY_HOURS, DAY_HOURS))
    return np.concatenate(found) if found else np.zeros((0, 3))


def directions(values: np.ndarray, expected: np.ndarray) -> list[str]:
    """Return for each hour whether its figure is BELOW or ABOVE the range, or "". Hours without records are neither."""
    below, above = values < np.floor(expected[:, 0]), values > np.ceil(expected[:, 2])
    return [BELOW if low else ABOVE if high else "" for low, high in zip(below, above, strict=True)]


def find_anomalies(values: np.ndarray, expected: np.ndarray, first: int) -> list[Anomaly]:
    """Return the anomalies of hours that begin with `first`, in hours since the epoch, in order."""
    found = directions(values, expected)
    return [
        Anomaly(first + start, stop - start, found[start], float(values[start:stop].mean()),
                *(float(each) for each in expected[start:stop].mean(axis=0)))
        for start, stop in _runs(found)
        if found[start]
    ]  # fmt: skip


def _runs(values: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each range of equal values."""
    start = 0
    for place in range(1, len(values) + 1):
        if place == len(values) or values[place] != values[start]:
            yield start, place
            start = place
