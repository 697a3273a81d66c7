"""When a report is due: a crontab line in a time zone, in words, across changes of the clock, and after downtime. Pure.

Clocks that are set forward skip an hour: what was due in it is due right after. Clocks that are set back have an hour
twice: what is due at a time of day is due in the first one only, what is due every hour is due in both. These are the
rules of Debian's cron, as cronsim has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from brokerapp.errors import RequestRefused

#: A run that starts so late is not a missed one: the process that starts them was busy, or was started again.
PUNCTUAL = timedelta(minutes=10)
#: Missed runs that are caught up with, at most: the latest.
MAX_CAUGHT_UP = 24
#: Missed runs that are counted.
MAX_COUNTED = 10_000
_SECOND = timedelta(seconds=1)


class MissedRunPolicy(StrEnum):
    """How to make up for editions that were due while Sluice was not running."""

    ONCE = "once"  #: the latest is made up for
    ALL = "all"  #: each is, with its own window
    SKIP = "skip"  #: none is


@dataclass(frozen=True, slots=True)
class ReportSchedule:
    """A crontab line (five fields) in a time zone (a name such as Europe/Berlin)."""

    cron: str
    zone: str = "UTC"

    @staticmethod
    def parse(cron: str, zone: str) -> ReportSchedule:
        """Read both; raises RequestRefused, which names the part that is wrong."""
        if zone not in zones():
            raise RequestRefused(f"{zone[:60]!r} is not a time zone: expected a name such as Europe/Berlin or UTC")
        cron = " ".join(cron.split())
        try:
            if len(cron.split()) != 5:
                raise CronSimError(f"it has {len(cron.split())} fields, not 5")
            if next(CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC)), None) is None:
                raise CronSimError("it never matches a day")
        except CronSimError as error:
            expected = "expected minute, hour, day of month, month and day of week, such as 0 7 * * 1-5"
            raise RequestRefused(f"{cron[:60]!r} is not a crontab expression ({error}): {expected}") from None
        return ReportSchedule(cron, zone)

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Every moment at which it is due after this one, in UTC."""
        for each in CronSim(self.cron, moment.astimezone(ZoneInfo(self.zone))):
            yield each.astimezone(UTC)

    def next(self, moment: datetime, count: int = 3) -> list[datetime]:
        """Return the next moments, in its own time zone."""
        return [each.astimezone(ZoneInfo(self.zone)) for each in islice(self.after(moment), count)]

    def __str__(self) -> str:
        return self.words

    @property
    def words(self) -> str:
        """Describe the schedule in words, such as `every day at 07:00, Europe/Berlin`."""
        rhythm = ReportFrequency.of(self.cron)
        if rhythm is not None:
            return f"{rhythm.words}, {self.zone}"
        explained = CronSim(self.cron, datetime(2026, 1, 1)).explain()
        return f"{explained[:1].lower()}{explained[1:]}, {self.zone}"


@cache
def zones() -> frozenset[str]:
    """Return the names of time zones."""
    return frozenset(available_timezones())


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The editions to generate now, and when the schedule is due next."""

    run: tuple[datetime, ...]  #: the moments to run for
    missed: int  #: moments that were passed over
    next: datetime | None  #: when it is due again; None for never


def plan(timing: ReportSchedule, due: datetime, now: datetime, policy: MissedRunPolicy) -> SchedulePlan:
    """Plan the runs of a report that is due since `due`, the first unhandled time."""
    moments = timing.after(due - _SECOND)
    passed = list(islice(takewhile(lambda moment: moment <= now, moments), MAX_COUNTED))
    punctual = [moment for moment in passed if now - moment <= PUNCTUAL]
    match policy:
        case MissedRunPolicy.ALL:
            run = passed[-MAX_CAUGHT_UP:]
        case MissedRunPolicy.ONCE:
            run = passed[-1:]
        case MissedRunPolicy.SKIP:
            run = punctual[-1:]
    return SchedulePlan(tuple(run), len(passed) - len(run), next(timing.after(now), None))


# -- in words

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
LAST_DAY = "L"
#: Rhythms that have words, in the order of the form.
HOURLY, DAILY, WEEKDAYS, WEEKLY, MONTHLY = "hourly", "daily", "weekdays", "weekly", "monthly"
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_FIXED = re.compile(r"(\d+) (\d+|\*) (\d+|L|\*) \* ([0-7](?:,[0-7])*|1-5|\*)")


@dataclass(frozen=True, slots=True)
class ReportFrequency:
    """A schedule as the form offers it: hourly, daily, on working days, weekly or monthly."""

    kind: str
    time: str = "07:00"  #: of an hourly one only the minute counts
    days: tuple[int, ...] = (1,)  #: of the week, for a weekly one; 0 is Sunday
    day: str = "1"  #: of the month, for a monthly one; L for the last

    @property
    def cron(self) -> str:
        """Return the crontab line; raises RequestRefused."""
        if (clock := _CLOCK.fullmatch(self.time)) is None:
            raise RequestRefused(f"{self.time[:20]!r} is not a time of day: expected hours and minutes, such as 07:00")
        if self.kind == WEEKLY and not (self.days and all(0 <= day <= 6 for day in self.days)):
            raise RequestRefused("choose at least one day of the week")
        if self.kind == MONTHLY and not (self.day == LAST_DAY or (self.day.isdecimal() and 1 <= int(self.day) <= 31)):
            raise RequestRefused(f"{self.day[:20]!r} is not a day of the month: expected 1 to 31, or the last")
        minute, hour = int(clock[2]), int(clock[1])
        rest = {
            HOURLY: f"{minute} * * * *",
            DAILY: f"{minute} {hour} * * *",
            WEEKDAYS: f"{minute} {hour} * * 1-5",
            WEEKLY: f"{minute} {hour} * * {','.join(map(str, sorted(set(self.days))))}",
            MONTHLY: f"{minute} {hour} {self.day} * *",
        }
        if self.kind not in rest:
            raise RequestRefused(f"{self.kind[:20]!r} is not a frequency: expected one of {', '.join(rest)}")
        return rest[self.kind]

    @property
    def words(self) -> str:
        """Describe the schedule in words, such as `every Monday at 07:00`."""
        match self.kind:
            case "hourly":
                return f"every hour, {int(self.time[3:])} minutes past" if self.time[3:] != "00" else "every full hour"
            case "daily":
                return f"every day at {self.time}"
            case "weekdays":
                return f"Monday to Friday at {self.time}"
            case "weekly":
                return f"every {' and '.join(DAYS[day] for day in self.days)} at {self.time}"
        day = "on the last day" if self.day == LAST_DAY else f"on day {self.day}"
        return f"{day} of every month at {self.time}"

    @staticmethod
    def of(cron: str) -> ReportFrequency | None:
        """Return the frequency of a crontab line; None for a line that no frequency describes."""
        if (found := _FIXED.fullmatch(cron)) is None:
            return None
        minute, hour, day, week = found.groups()
        if int(minute) > 59 or (hour != "*" and int(hour) > 23):
            return None
        time = f"{0 if hour == '*' else int(hour):02}:{int(minute):02}"
        match hour, day, week:
            case "*", "*", "*":
                return ReportFrequency(HOURLY, time)
            case "*", _, _:
                return None
            case _, "*", "*":
                return ReportFrequency(DAILY, time)
            case _, "*", "1-5":
                return ReportFrequency(WEEKDAYS, time)
            case _, "*", _:
                return ReportFrequency(WEEKLY, time, tuple(sorted({int(each) % 7 for each in week.split(",")})))
            case _, _, "*":
                return ReportFrequency(MONTHLY, time, day=day)
        return None
