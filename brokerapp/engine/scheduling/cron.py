"""Parse the five fields of a cron schedule, and find the next minute that they match. Pure.

    minute hour day-of-month month day-of-week

A field is `*`, `5`, `1-5`, `*/10`, `1-30/5`, `MON-FRI`, or several of these by comma. As cron
has it: when both days are restricted (neither begins with `*`), one that fits is enough; 0 and 7 are Sunday.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from brokerapp.errors import RequestRefused

#: Years in which a date must come: the 29th of February may take eight.
YEARS = 8
#: Longest text that is read.
MAX_TEXT = 200

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"], start=1
    )
}
_DAYS = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}
_NO_NAMES: dict[str, int] = {}
#: Field, its least and greatest value, its names.
_FIELDS = (
    ("minute", 0, 59, _NO_NAMES),
    ("hour", 0, 23, _NO_NAMES),
    ("day of month", 1, 31, _NO_NAMES),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,3}))?").fullmatch


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes that five fields name, in local time."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  #: 0 is Sunday
    either_day: bool  #: a day of month or of week is enough
    every_hour: bool  #: hours are counted rather than named (`*`, `*/2`): one that comes twice has its minutes twice

    def next_after(self, moment: datetime) -> datetime | None:
        """The first of its minutes after a local time; None when there is none."""
        at = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = at.year + YEARS
        while at.year <= end:
            if at.month not in self.months:
                at = (at.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif not self._fits(at):
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
            elif at.hour not in self.hours:
                at = at.replace(minute=0) + timedelta(hours=1)
            elif at.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at
        return None

    def _fits(self, day: datetime) -> bool:
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> Cron:
    """Read five fields; raises RequestRefused, which names the field and the rule."""
    fields = text[:MAX_TEXT].split()
    if len(fields) != len(_FIELDS) or len(text) > MAX_TEXT:
        raise RequestRefused(
            f"cron {text[:MAX_TEXT]!r} is not five fields: minute, hour, day of month, month, day of week"
        )
    minutes, hours, days, months, weekdays = (
        _values(field, *about) for field, about in zip(fields, _FIELDS, strict=True)
    )
    either = not (fields[2].startswith("*") or fields[4].startswith("*"))
    every_hour = fields[1].startswith("*")
    return Cron(text, minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either, every_hour)


def _values(field: str, name: str, least: int, greatest: int, names: dict[str, int]) -> frozenset[int]:
    """The values one field stands for."""
    found: set[int] = set()
    for part in field.split(","):
        match = _PART(part)
        if match is None:
            raise RequestRefused(f"cron: {part!r} is not a value, range or step of {name}")
        star, first, last, step = match.groups()
        start = least if star else _value(first, name, least, greatest, names)
        end = greatest if star or (step and not last) else start
        if last:
            end = _value(last, name, least, greatest, names)
        if end < start or (step and int(step) == 0):
            raise RequestRefused(f"cron: {part!r} is an empty range of {name}")
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def _value(text: str, name: str, least: int, greatest: int, names: dict[str, int]) -> int:
    value = names.get(text.upper())
    if value is None and text.isdecimal() and len(text) <= 2:
        value = int(text)
    if value is None or not least <= value <= greatest:
        raise RequestRefused(
            f"cron: {text[:20]!r} is not a valid {name}: {least} to {greatest}" + (" or a name" if names else "")
        )
    return value
