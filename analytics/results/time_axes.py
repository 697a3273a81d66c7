"""Compute ticks and labels of time axes, for charts on pages (Plotly) and in mails (matplotlib). Pure.

Charts contain times in UTC. Their renderer names the reader's time zone: ticks are at round times of that zone, which
the axis names. The script of the page uses the same table (`for_page`), as it computes new ticks when the user zooms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

MINUTE, HOUR, DAY = 60, 3600, 86_400
_SECONDS, _CLOCK, _DATE = "%H:%M:%S", "%H:%M", "%-d %b"
#: Steps between ticks in seconds, with their format for both strftime and Plotly.
STEPS = (
    *((seconds, _SECONDS) for seconds in (1, 2, 5, 10, 15, 30)),
    *((minutes * MINUTE, _CLOCK) for minutes in (1, 2, 5, 10, 15, 30)),
    *((hours * HOUR, _CLOCK) for hours in (1, 2, 3, 6, 12)),
    *((days * DAY, _DATE) for days in (1, 2, 7, 14, 28, 91, 364)),
)
#: Most ticks of a wide chart, and of a narrow one.
MOST, MOST_NARROW = 7, 4
#: Origin of the steps: midnight of a Monday.
_ORIGIN = datetime(2001, 1, 1)


def step_of(seconds: float, most: int = MOST) -> tuple[int, str]:
    """Return the shortest step between ticks with which a time range has at most this many, and their format."""
    return next((each for each in STEPS if seconds / each[0] <= most), STEPS[-1])


def tick_marks(first: datetime, last: datetime, zone: str = "UTC", most: int = MOST) -> list[tuple[datetime, str]]:
    """Return the ticks of a range, round times of a zone, with labels; the first of each day names the day, too."""
    step, form = step_of((last - first).total_seconds(), most)
    found, before = [], ""
    for moment in _round_moments(first, last, ZoneInfo(zone), timedelta(seconds=step)):
        below = f"{moment:%Y}" if form == _DATE else f"{moment:{_DATE}}"
        found.append((moment, f"{moment:{form}}" if below == before else f"{moment:{form}}\n{below}"))
        before = below
    return found


def _round_moments(first: datetime, last: datetime, zone: ZoneInfo, step: timedelta) -> Iterator[datetime]:
    """Yield the multiples of a step in the zone's local time, those of skipped or repeated hours once."""
    local = first.astimezone(zone).replace(tzinfo=None)
    clock = _ORIGIN + -(-(local - _ORIGIN) // step) * step
    before = None
    while (moment := clock.replace(tzinfo=zone)).astimezone(UTC) <= last:
        if first <= moment and (before is None or moment.astimezone(UTC) > before):
            before = moment.astimezone(UTC)
            yield moment.astimezone(UTC).astimezone(zone)
        clock += step


def zone_label(first: datetime, last: datetime, zone: str = "UTC") -> str:
    """Return the label for a time zone: its abbreviation, or its name where that changes."""
    names = {each.astimezone(ZoneInfo(zone)).tzname() for each in (first, last)}
    [name] = names if len(names) == 1 else [zone]
    return name if name[:1].isalpha() else zone


def hover_format(times: Sequence[str]) -> str:
    """Return the time format of tooltips: with seconds for slots shorter than a minute."""
    return f"{_DATE}, {_SECONDS if any(map(_has_seconds, times)) else _CLOCK}"


def _has_seconds(text: str) -> bool:
    return text[16:19] not in ("", ":00", "Z")


def range_of(figure: dict[str, Any]) -> tuple[datetime, datetime] | None:
    """Return the first and the last time of a chart over time; None for another chart."""
    if figure.get("layout", {}).get("xaxis", {}).get("type") != "date":
        return None
    ends = [parse_moment(each) for trace in figure["data"] for each in (*list(trace["x"])[:1], *list(trace["x"])[-1:])]
    return (min(ends), max(ends)) if ends else None


def parse_moment(text: str) -> datetime:
    """Parse a time of a chart; in UTC unless it has another zone."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def for_page(figures: Iterable[dict[str, Any]], zone: str) -> dict[str, Any]:
    """Return the data for the page's script that draws time axes in a time zone."""
    ranges = [found for figure in figures if (found := range_of(figure))]
    label = zone_label(min(first for first, _ in ranges), max(last for _, last in ranges), zone) if ranges else zone
    return {"steps": [list(each) for each in STEPS], "most": [MOST, MOST_NARROW], "zone": zone, "label": label}
