"""Choose what a time range is read from: daily rows, hourly rows, and raw events for the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from analytics.requests.request import TimeWindow
from analytics.tables.definitions import DAY_US, HOUR_US

#: Seconds of a time range above which tables are read.
LONGEST_RAW_SECONDS = 86_400
#: Seconds above which slots are days.
LONGEST_HOURLY_SECONDS = 14 * 86_400
_HOUR, _DAY = HOUR_US // 1_000_000, DAY_US // 1_000_000


@dataclass(frozen=True, slots=True)
class AvailableDay:
    """What tables have of one day, of all brokers."""

    hours: frozenset[int]  #: hours of the day whose hourly rows can be read
    is_merged: bool = False  #: whether the daily rows can be read
    #: Hours with rows that are counted from the stream: hour -> where a range must end, at the earliest, to have them.
    current: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """What time ranges are read from."""

    days: tuple[int, ...]  #: starts of days, microseconds since the epoch
    hours: tuple[int, ...]  #: starts of hours
    raw: tuple[TimeWindow, ...]
    current: tuple[int, ...] = ()  #: starts of hours with rows that are counted from the stream


def table_slot_seconds(window: TimeWindow, slot: int, longest_fine: float = LONGEST_RAW_SECONDS) -> int:
    """Return the slot of a chart, at least an hour for windows over `longest_fine` seconds, a day for the longest."""
    if window.seconds <= longest_fine:
        return slot
    return max(slot, _DAY if window.seconds > LONGEST_HOURLY_SECONDS else _HOUR)


def select(
    windows: Sequence[TimeWindow], slot: int, days: Mapping[int, AvailableDay], hourly_only: bool = False
) -> Selection:
    """Choose the levels for time ranges whose rows are counted by slots of so many seconds.

    `days`: what can be read, by the start of the day. `hourly_only`: for tables without daily rows.
    """
    is_long = sum(each.seconds for each in windows) > LONGEST_RAW_SECONDS
    if not is_long or slot % _HOUR:
        return Selection((), (), tuple(windows))
    whole_days: list[int] = []
    hours: list[int] = []
    current: list[int] = []
    for window in windows:
        for day_us in range(window.since_us // DAY_US * DAY_US, window.until_us, DAY_US):
            found = days.get(day_us)
            if found is None:
                continue
            is_inside = window.since_us <= day_us and day_us + DAY_US <= window.until_us
            if is_inside and found.is_merged and slot % _DAY == 0 and not hourly_only:
                whole_days.append(day_us)
                continue
            starts = (day_us + hour * HOUR_US for hour in sorted(found.hours))
            hours += [each for each in starts if window.since_us <= each and each + HOUR_US <= window.until_us]
            ends = ((day_us + hour * HOUR_US, end) for hour, end in sorted(found.current.items()))
            current += [each for each, end in ends if window.since_us <= each and end <= window.until_us]
    covered = [
        *((each, each + DAY_US) for each in whole_days),
        *((each, each + HOUR_US) for each in (*hours, *current)),
    ]
    raw = tuple(span for window in windows for span in _outside(window, sorted(covered)))
    return Selection(tuple(whole_days), tuple(hours), raw, tuple(current))


def _outside(window: TimeWindow, covered: Iterable[tuple[int, int]]) -> Iterable[TimeWindow]:
    """Yield the parts of a window that these ranges, in order, do not cover."""
    at = window.since_us
    for since, until in covered:
        if until <= window.since_us or since >= window.until_us:
            continue
        if at < since:
            yield TimeWindow(at, since)
        at = max(at, until)
    if at < window.until_us:
        yield TimeWindow(at, window.until_us)
