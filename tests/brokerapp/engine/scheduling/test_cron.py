"""Test cron fields, and the next minute that they match."""

from datetime import datetime

import pytest

from brokerapp.engine.scheduling.cron import parse_cron
from brokerapp.errors import RequestRefused

#: A Wednesday.
NOW = datetime(2026, 7, 15, 10, 30, 20)


@pytest.mark.scenario("SH-01")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-07-15 10:31"),
        ("30 10 * * *", "2026-07-16 10:30"),
        ("31 10 * * *", "2026-07-15 10:31"),
        ("0 * * * *", "2026-07-15 11:00"),
        ("*/15 * * * *", "2026-07-15 10:45"),
        ("5/20 * * * *", "2026-07-15 10:45"),
        ("10-20/5 12 * * *", "2026-07-15 12:10"),
        ("0,45,50 * * * *", "2026-07-15 10:45"),
        ("0 0 1 * *", "2026-08-01 00:00"),
        ("0 0 31 * *", "2026-07-31 00:00"),
        ("0 0 31 9-12 *", "2026-10-31 00:00"),
        ("0 12 1 JAN *", "2027-01-01 12:00"),
        ("0 12 1 jan,mar-apr *", "2027-01-01 12:00"),
        ("0 9 * * MON-FRI", "2026-07-16 09:00"),
        ("0 9 * * SAT", "2026-07-18 09:00"),
        ("0 9 * * 0", "2026-07-19 09:00"),
        ("0 9 * * 7", "2026-07-19 09:00"),
        ("0 9 * * 5-7", "2026-07-17 09:00"),
        ("0 9 20 * FRI", "2026-07-17 09:00"),  # either day is enough
        ("0 9 */2 * FRI", "2026-07-17 09:00"),  # but not where one is a `*`: both
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59"),
    ],
)
def test_the_next_minute(text, expected):
    assert parse_cron(text).next_after(NOW) == datetime.fromisoformat(expected)


def test_minutes_follow_each_other():
    cron, at, found = parse_cron("0 0 29 2 *"), NOW, []
    for _ in range(3):
        found.append(at := cron.next_after(at))
    assert [each.year for each in found] == [2028, 2032, 2036]


def test_a_day_that_never_comes_has_no_minute():
    assert parse_cron("0 0 30 2 *").next_after(NOW) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("* * * *", "not five fields"),
        ("* * * * * *", "not five fields"),
        ("60 * * * *", "'60' is not a valid minute: 0 to 59"),
        ("* 24 * * *", "'24' is not a valid hour: 0 to 23"),
        ("* * 0 * *", "'0' is not a valid day of month: 1 to 31"),
        ("* * * 13 *", "'13' is not a valid month: 1 to 12 or a name"),
        ("* * * FOO *", "'FOO' is not a valid month"),
        ("* * * * 8", "'8' is not a valid day of week: 0 to 7 or a name"),
        ("JAN * * * *", "'JAN' is not a valid minute"),
        ("5-1 * * * *", "'5-1' is an empty range of minute"),
        ("*/0 * * * *", "an empty range of minute"),
        ("*/00 * * * *", "an empty range of minute"),
        ("1-5/000 * * * *", "an empty range of minute"),
        ("1, * * * *", "'' is not a value"),
        ("-1 * * * *", "'-1' is not a value"),
        ("1-2-3 * * * *", "'1-2-3' is not a value"),
        ("*" * 300, "not five fields"),
    ],
)
def test_what_is_wrong_is_named(text, said):
    with pytest.raises(RequestRefused, match=said):
        parse_cron(text)
