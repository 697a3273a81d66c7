"""Test schedules of reports: words and crontab lines, clock changes, downtime. Pure."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from brokerapp.errors import RequestRefused
from console.analyses.reports.schedule import MAX_CAUGHT_UP, MissedRunPolicy, ReportFrequency, ReportSchedule, plan

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def moments(cron: str, zone: str, since: str, count: int) -> list[str]:
    """The next moments in local time, with their offset."""
    after = datetime.fromisoformat(since).replace(tzinfo=ZoneInfo(zone))
    return [moment.strftime("%d %H:%M%z") for moment in ReportSchedule.parse(cron, zone).next(after, count)]


@pytest.mark.parametrize(
    ("zone", "cron", "since", "expected"),
    [
        # clocks go forward at 02:00: 02:30 is not there, so it is due right after the gap
        (BERLIN, "0 7 * * *", "2026-03-28 08:00", ["29 07:00+0200", "30 07:00+0200"]),
        (BERLIN, "30 2 * * *", "2026-03-28 03:00", ["29 03:00+0200", "30 02:30+0200"]),
        (BERLIN, "0 * * * *", "2026-03-29 00:30", ["29 01:00+0100", "29 03:00+0200", "29 04:00+0200"]),
        (NEW_YORK, "0 7 * * *", "2026-03-07 08:00", ["08 07:00-0400", "09 07:00-0400"]),
        (NEW_YORK, "30 2 * * *", "2026-03-07 03:00", ["08 03:00-0400", "09 02:30-0400"]),
        (NEW_YORK, "0 * * * *", "2026-03-08 00:30", ["08 01:00-0500", "08 03:00-0400", "08 04:00-0400"]),
        # clocks go back: what is due at a time of day is due once, what is due every hour in both hours
        (BERLIN, "0 7 * * *", "2026-10-24 08:00", ["25 07:00+0100", "26 07:00+0100"]),
        (BERLIN, "30 2 * * *", "2026-10-24 03:00", ["25 02:30+0200", "26 02:30+0100"]),
        (BERLIN, "0 * * * *", "2026-10-25 01:30", ["25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]),
        (NEW_YORK, "0 7 * * *", "2026-10-31 08:00", ["01 07:00-0500", "02 07:00-0500"]),
        (NEW_YORK, "30 1 * * *", "2026-10-31 03:00", ["01 01:30-0400", "02 01:30-0500"]),
        (NEW_YORK, "0 * * * *", "2026-11-01 00:30", ["01 01:00-0400", "01 01:00-0500", "01 02:00-0500"]),
        ("UTC", "0 6 L * *", "2026-02-01 00:00", ["28 06:00+0000", "31 06:00+0000"]),
    ],
)
def test_a_schedule_is_right_across_changes_of_the_clock(zone, cron, since, expected):
    assert moments(cron, zone, since, len(expected)) == expected


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK])
@pytest.mark.parametrize("cron", ["30 2 * * *", "0 7 * * *"])
def test_what_is_due_every_day_is_due_once_a_day_all_year(zone, cron):
    days = [
        each.date()
        for each in ReportSchedule.parse(cron, zone).next(datetime(2025, 12, 31, 12, tzinfo=ZoneInfo(zone)), 365)
    ]  # fmt: skip
    assert len(set(days)) == 365
    assert days[-1] - days[0] == timedelta(days=364)


# -- words

RHYTHMS = [
    (ReportFrequency("hourly", "00:05"), "5 * * * *", "every hour, 5 minutes past"),
    (ReportFrequency("hourly", "00:00"), "0 * * * *", "every full hour"),
    (ReportFrequency("daily", "06:30"), "30 6 * * *", "every day at 06:30"),
    (ReportFrequency("weekdays", "07:00"), "0 7 * * 1-5", "Monday to Friday at 07:00"),
    (ReportFrequency("weekly", "07:00", (1, 4)), "0 7 * * 1,4", "every Monday and Thursday at 07:00"),
    (ReportFrequency("weekly", "07:00", (0,)), "0 7 * * 0", "every Sunday at 07:00"),
    (ReportFrequency("monthly", "23:59", day="15"), "59 23 15 * *", "on day 15 of every month at 23:59"),
    (ReportFrequency("monthly", "23:59", day="L"), "59 23 L * *", "on the last day of every month at 23:59"),
]


@pytest.mark.parametrize(("rhythm", "cron", "words"), RHYTHMS)
def test_a_rhythm_has_a_crontab_line_and_words_and_is_found_again(rhythm, cron, words):
    assert (rhythm.cron, rhythm.words) == (cron, words)
    found = ReportFrequency.of(cron)
    assert (found.cron, found.words) == (cron, words)
    assert str(ReportSchedule.parse(cron, BERLIN)) == f"{words}, {BERLIN}"


@pytest.mark.parametrize(
    "cron", ["*/5 * * * *", "0 7,19 * * *", "0 7 1 1 *", "0 7 13 * 5", "0 7 * * 1-4", "75 7 * * *"]
)
def test_a_line_that_takes_more_words_stays_a_line(cron):
    assert ReportFrequency.of(cron) is None


def test_a_line_without_a_rhythm_is_explained_all_the_same():
    assert str(ReportSchedule.parse("0  7,19 * * *", "UTC")) == "at 07:00 and 19:00 every day, UTC"


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("0 7 * *", "UTC", "it has 4 fields, not 5"),
        ("0 7 * * * *", "UTC", "it has 6 fields, not 5"),
        ("61 7 * * *", "UTC", "Bad minute"),
        ("0 7 31 2 *", "UTC", "'0 7 31 2 *' is not a crontab expression"),
        ("0 7 * * *", "Berlin", "'Berlin' is not a time zone"),
        ("", "UTC", "'' is not a crontab expression"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_part_that_is_wrong(cron, zone, words):
    with pytest.raises(RequestRefused, match="expected") as refused:
        ReportSchedule.parse(cron, zone)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "rhythm",
    [
        ReportFrequency("weekly", days=()),
        ReportFrequency("daily", "25:00"),
        ReportFrequency("monthly", day="32"),
        ReportFrequency("often"),
        ReportFrequency("daily", ""),
    ],
)
def test_what_is_no_rhythm_is_refused(rhythm):
    with pytest.raises(RequestRefused):
        _ = rhythm.cron


# -- downtime

HOURLY = ReportSchedule("0 * * * *", "UTC")
DUE = datetime(2026, 5, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policy", "minutes_late", "hours", "missed"),
    [
        (MissedRunPolicy.ONCE, 0.1, [10], 0),
        (MissedRunPolicy.SKIP, 0.1, [10], 0),
        (MissedRunPolicy.ALL, 0.1, [10], 0),
        (MissedRunPolicy.ONCE, 200, [13], 3),
        (MissedRunPolicy.ALL, 200, [10, 11, 12, 13], 0),
        (MissedRunPolicy.SKIP, 200, [], 4),
        (MissedRunPolicy.SKIP, 185, [13], 3),
    ],
)
def test_what_was_due_while_nothing_ran_is_made_up_for_as_configured(policy, minutes_late, hours, missed):
    now = DUE + timedelta(minutes=minutes_late)
    found = plan(HOURLY, DUE, now, policy)
    assert ([moment.hour for moment in found.run], found.missed) == (hours, missed)
    assert found.next == now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def test_what_is_caught_up_with_has_an_end():
    found = plan(HOURLY, DUE, DUE + timedelta(days=100), MissedRunPolicy.ALL)
    assert len(found.run) == MAX_CAUGHT_UP
    assert found.missed == 100 * 24 + 1 - MAX_CAUGHT_UP
