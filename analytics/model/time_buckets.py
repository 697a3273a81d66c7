"""Divide time ranges into the slots of a chart: periods of equal length."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from analytics.requests.request import TimeWindow

MINUTE = 60
#: Most points of a chart, beyond which slots are longer; and fewest, below which they are shorter than a minute.
MAX_POINTS, FEWEST_POINTS = 400, 15
FINE_SLOTS = (5, 10, 15, 30)
SLOTS = tuple(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440))


def slot_seconds(window: TimeWindow, points: int = MAX_POINTS) -> int:
    """Return the shortest slot that keeps a chart of this window readable, in seconds.

    It is a minute or more, less for windows of a few minutes. Slots begin at its multiples since the epoch.
    """
    if window.seconds < FEWEST_POINTS * MINUTE:
        return next((each for each in reversed(FINE_SLOTS) if window.seconds / each >= FEWEST_POINTS), FINE_SLOTS[0])
    return next((each for each in SLOTS if window.seconds / each <= points), SLOTS[-1])


def slot_starts(window: TimeWindow, slot: int) -> list[int]:
    """Return the starts of the window's slots, in seconds since the epoch, empty slots included."""
    first = window.since_us // 1_000_000 // slot * slot
    return list(range(first, -(-window.until_us // 1_000_000), slot))


def whole_slots(window: TimeWindow, slot: int) -> list[int]:
    """Return the slots that lie in the window as a whole; all slots where no two do.

    A count of a part of a slot would look like a drop.
    """
    found = slot_starts(window, slot)
    inside = [each for each in found if window.since_us <= each * 1_000_000 <= window.until_us - slot * 1_000_000]
    return inside if len(inside) > 1 else found


def iso_times(seconds: Iterable[int]) -> list[str]:
    """Format seconds since the epoch as ISO 8601, for charts."""
    return pc.strftime(pa.array(list(seconds), pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ").to_pylist()


def series(
    rows: pa.Table, column: str, window: TimeWindow, slot: int, *, by: str = "destination", at: str = "slot"
) -> tuple[list[str], dict[str, list[float]]]:
    """Return the times of the whole slots and, for each value of `by`, its values in them; 0 where there is no row."""
    begins = whole_slots(window, slot)
    place = {start: index for index, start in enumerate(begins)}
    seconds = pc.divide(rows[at].cast(pa.int64()), 1_000_000).to_pylist()
    found: dict[str, list[float]] = {}
    for second, name, value in zip(seconds, rows[by].to_pylist(), rows[column].to_pylist(), strict=True):
        if value and second in place:
            found.setdefault(name, [0] * len(begins))[place[second]] += value
    return iso_times(begins), found


def slot_name(seconds: int) -> str:
    """Name the length of a slot: `minute`, `15 minutes`, `hour`, `6 hours`, `day`."""
    for length, name in ((86400, "day"), (3600, "hour"), (MINUTE, "minute")):
        if seconds % length == 0:
            count = seconds // length
            return name if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"
