"""Update the stored expected traffic from the rollups of the archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.conf import settings

from analytics.archive.broker_archive import BrokerArchive
from analytics.rollups.expected_traffic import ExpectedTraffic, busiest, expect, read_hourly_traffic
from analytics.rollups.queries import RollupQueries
from analytics.rollups.store import HOUR
from console.broker.rollups import rollups
from console.traffic_ranges.models import TrafficRange

#: Destinations with ranges, those with most traffic in ACTIVE_DAYS: each takes 10 ms a day, and 80 ms the first time.
MAX_DESTINATIONS = 500
ACTIVE_DAYS = 7
#: Hours for which ranges are made in advance: a day, and hours in which the task may be late.
AHEAD_HOURS = 27
#: A destination is updated when fewer hours than these are left.
LEAST_AHEAD_HOURS = 3
#: Past days of which ranges are kept, as charts show them.
KEPT_DAYS = 7
#: Destinations whose history is read at a time: 1,300 hours each.
_BATCH = 50


def recorded_until() -> int | None:
    """Return the time up to which all traffic is recorded, in seconds since the epoch; None without an archive."""
    fresh_us = BrokerArchive(settings.SLUICE.archive, settings.SLUICE.broker_name).fresh_until_us
    return None if fresh_us is None else fresh_us // 1_000_000


def update_ranges() -> int:
    """Update the ranges that end soon; return how many destinations were updated."""
    until = recorded_until()
    return 0 if until is None else update_from(rollups(), until // HOUR)


def update_from(past: RollupQueries, end: int) -> int:
    """Update the ranges that end soon after `end`, the first hour that is not complete, in hours since the epoch."""
    stored = {row.destination: row.expected for row in TrafficRange.objects.all()}
    names = dict.fromkeys((*busiest(past, end, ACTIVE_DAYS, MAX_DESTINATIONS), *stored))
    due = [name for name in names if name not in stored or stored[name].end < end + LEAST_AHEAD_HOURS]
    for part in _batches(due[:MAX_DESTINATIONS]):
        traffic = read_hourly_traffic(past, end, part)
        for name, values in traffic.destinations.items():
            known = stored.get(name)
            has_past = known is not None and len(known.ranges) > 0
            found = expect(values, end, 0 if has_past else KEPT_DAYS, AHEAD_HOURS)
            _store(name, known.continued(found, KEPT_DAYS * 24) if known is not None and has_past else found)
    return len(due)


def _store(name: str, found: ExpectedTraffic) -> None:
    if not found.recorded_hours:  # its history has ended
        TrafficRange.objects.filter(destination=name).delete()
        return
    values = {"first": found.first, "ranges": found.ranges, "recorded_hours": found.recorded_hours}
    TrafficRange.objects.update_or_create(destination=name, defaults=values)


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _BATCH):
        yield names[start : start + _BATCH]
