"""Format times for pages, emails and results: `21 Nov 2026, 12:05 UTC`.

Where no zone is named it is the one of whoever reads (preferences/timezones.py). How long ago it was: figures.ago.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone

_DAY, _MINUTE, _SECOND = "%-d %b %Y", "%H:%M", "%H:%M:%S"
#: Time ranges below this length are shown to the second: minutes would hide where they start.
_SHORT = timedelta(minutes=10)


def format_time(moment: datetime | None, zone: str = "") -> str:
    """Return a time to the minute: 21 Nov 2026, 12:05 UTC; "" for None."""
    return f"{_local(moment, zone):{_DAY}, {_MINUTE} %Z}" if moment else ""


def format_exact_time(moment: datetime | None, zone: str = "") -> str:
    """Return a time to the second: 21 Nov 2026, 12:05:33 UTC; "" for None."""
    return f"{_local(moment, zone):{_DAY}, {_SECOND} %Z}" if moment else ""


def format_day(moment: datetime) -> str:
    """Return a date: 21 Nov 2026."""
    return f"{_local(moment):{_DAY}}"


def format_time_without_zone(moment: datetime) -> str:
    """Return a time without its zone, where the column or page names it: 21 Nov 2026, 12:05:33."""
    return f"{_local(moment):{_DAY}, {_SECOND}}"


def format_period(since: datetime, until: datetime, zone: str = "") -> str:
    """Return a time range: 21 Nov 2026, 12:05 to 13:05 UTC; with seconds for one of a few minutes."""
    first, last = _local(since, zone), _local(until, zone)
    clock = _SECOND if until - since < _SHORT else _MINUTE
    if (first.date(), first.tzname()) == (last.date(), last.tzname()):
        return f"{first:{_DAY}, {clock}} to {last:{clock} %Z}"
    return f"{first:{_DAY}, {clock} %Z} to {last:{_DAY}, {clock} %Z}"


def format_weekday_time(moment: datetime) -> str:
    """Return a time with its weekday, in its own zone: Sat 21 Nov 2026, 12:05 UTC."""
    return f"{moment:%a {_DAY}, {_MINUTE} %Z}"


def _local(moment: datetime, zone: str = "") -> datetime:
    return moment.astimezone(ZoneInfo(zone)) if zone else timezone.localtime(moment)
