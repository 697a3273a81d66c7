"""Slots: the equal stretches of time by which a chart counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from analytics.requests.request import TimeWindow

MINUTE = 60
#: Points of a chart: wider windows are counted by a coarser slot, and shorter ones than so many minutes by a finer one.
MAX_POINTS, FEWEST_POINTS = 400, 15
FINE = (5, 10, 15, 30)
LENGTHS = tuple(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440))


def slot_seconds(window: TimeWindow, points: int = MAX_POINTS) -> int:
    """The shortest slot from a minute on that keeps a chart of this window readable; less of windows of few minutes.

    Slots begin at multiples of it since the epoch.
    """
    if window.seconds < FEWEST_POINTS * MINUTE:
        return next((each for each in reversed(FINE) if window.seconds / each >= FEWEST_POINTS), FINE[0])
    return next((each for each in LENGTHS if window.seconds / each <= points), LENGTHS[-1])


def slot_starts(window: TimeWindow, slot: int) -> list[int]:
    """Seconds since the epoch: the slots of the window, also those in which nothing happened."""
    first = window.since_us // 1_000_000 // slot * slot
    return list(range(first, -(-window.until_us // 1_000_000), slot))


def whole_slots(window: TimeWindow, slot: int) -> list[int]:
    """Return the slots that lie in the window as a whole; all slots where no two do.

    A count of a part of a slot would look like a drop.
    """
    found = slot_starts(window, slot)
    inside = [each for each in found if window.since_us <= each * 1_000_000 <= window.until_us - slot * 1_000_000]
    return inside if len(inside) > 1 else found


def moments(seconds: Iterable[int]) -> list[str]:
    """Seconds since the epoch as ISO 8601, for charts."""
    return pc.strftime(pa.array(list(seconds), pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ").to_pylist()


def series(
    rows: pa.Table, column: str, window: TimeWindow, slot: int, *, by: str = "destination", at: str = "slot"
) -> tuple[list[str], dict[str, list[float]]]:
    """Times and, for each value of `by` that has any, the values at each whole slot; zero where there is no row."""
    begins = whole_slots(window, slot)
    place = {start: index for index, start in enumerate(begins)}
    seconds = pc.divide(rows[at].cast(pa.int64()), 1_000_000).to_pylist()
    found: dict[str, list[float]] = {}
    for second, name, value in zip(seconds, rows[by].to_pylist(), rows[column].to_pylist(), strict=True):
        if value and second in place:
            found.setdefault(name, [0] * len(begins))[place[second]] += value
    return moments(begins), found


def slot_name(seconds: int) -> str:
    """Name the length of a slot: `minute`, `15 minutes`, `hour`, `6 hours`, `day`."""
    for length, name in ((86400, "day"), (3600, "hour"), (MINUTE, "minute")):
        if seconds % length == 0:
            count = seconds // length
            return name if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"


def greatest(series: Mapping[str, list[float]], count: int) -> dict[str, list[float]]:
    """Return the series with the greatest sums, the greatest first."""
    ordered = sorted(series, key=lambda name: (-sum(series[name]), name))
    return {name: series[name] for name in ordered[:count]}
