"""Compare the recent and the past traffic of destinations with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from analytics.model.traffic_comparison import ExpectedHour, TrafficHour
from analytics.rollups.expected_traffic import (
    LEAST_DAYS,
    compare_hours,
    compare_traffic,
    read_hourly_traffic,
    replay_days,
)
from analytics.rollups.store import HOUR, MINUTE
from brokerapp.errors import BrokerError
from console.broker.rollups import rollups
from console.traffic_ranges.models import TrafficRange
from console.traffic_ranges.range_updates import recorded_until

#: Seconds behind now after which the records say nothing of the current traffic.
LATE_SECONDS = 300
#: Seconds that the rollups may be behind the archive.
ROLLUP_SECONDS = 30
#: Days that a backtest replays.
REPLAYED_DAYS = 28


class RecordingBehind(BrokerError):
    """The archive lacks the traffic of the last minutes, so nothing can be said of it."""

    code = "recording-behind"


def current_traffic(now: float) -> dict[str, TrafficHour]:
    """Return the last hour of each destination with an expected range, from a cache of a minute.

    Raises RecordingBehind if the recording does not reach until now.
    """
    return _compared(str(rollups().path), int(now) // MINUTE)


@lru_cache(2)
def _compared(_path: str, minute: int) -> dict[str, TrafficHour]:
    expected = {row.destination: row.expected for row in TrafficRange.objects.all() if row.ranges}
    if not expected:
        return {}
    until, now = recorded_until(), (minute + 1) * MINUTE
    if until is None or now - until > LATE_SECONDS:
        raise RecordingBehind("the archive of recorded traffic is more than five minutes behind")
    return compare_traffic(rollups(), expected, min(until, now) - ROLLUP_SECONDS)


@dataclass(frozen=True, slots=True)
class ExpectedCourse:
    """The expected ranges of the hours of a time range, and the complete hours in it that were outside theirs."""

    ranges: dict[int, ExpectedHour]  #: by the start of their hour, in seconds since the epoch
    outside: list[TrafficHour]


def expected_course(destination: str, start: int, end: int) -> ExpectedCourse:
    """Return what was expected of a destination between two times, in seconds since the epoch."""
    row = TrafficRange.objects.filter(destination=destination).first()
    if row is None or not row.ranges:
        return ExpectedCourse({}, [])
    expected, hours = row.expected, range(start // HOUR, -(-end // HOUR))
    ranges = {hour * HOUR: found for hour in hours if (found := expected.at(hour)) is not None}
    complete = range(hours.start, min(hours.stop, ((recorded_until() or 0) - ROLLUP_SECONDS) // HOUR))
    compared = compare_hours(rollups(), destination, expected, complete)
    return ExpectedCourse(ranges, [each for each in compared if each.deviation])


def replay_traffic(destinations: Sequence[str]) -> dict[str, list[TrafficHour]]:
    """Return the hours of the last REPLAYED_DAYS of destinations, each compared with what was expected that day."""
    end = (recorded_until() or 0) // HOUR
    traffic = read_hourly_traffic(rollups(), end, destinations)
    return {name: replay_days(values, end, REPLAYED_DAYS) for name, values in traffic.destinations.items()}


def nothing_expected() -> str:
    """Say why none of the destinations of a rule has an expected range."""
    if TrafficRange.objects.exists():
        return "No traffic of these destinations is recorded."
    return f"No expected range yet: they are computed once an hour, from {LEAST_DAYS} days of recorded traffic on."


def too_little_history(recorded_hours: int) -> str:
    """Say that a destination has too little history, and how much is needed."""
    days = recorded_hours // 24
    has = f"has {days} {'day' if days == 1 else 'days'}" if days else "has less than a day"
    return f"An expected range needs {LEAST_DAYS} days of recorded traffic; this {has}."
