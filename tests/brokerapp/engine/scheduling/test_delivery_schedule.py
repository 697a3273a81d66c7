"""Test schedules and jobs: what headers request, and when that is due."""

import time
from datetime import UTC, datetime

import pytest

from brokerapp.engine.scheduling.delivery_schedule import DeliverySchedule, read_schedule
from brokerapp.engine.scheduling.scheduled_job import JobPurpose, ScheduledJob
from brokerapp.errors import RequestRefused
from brokerapp.model.message import Message

NOW = int(datetime(2026, 7, 15, 10, 30, 20).timestamp() * 1000)
AT_31 = int(datetime(2026, 7, 15, 10, 31).timestamp() * 1000)
MINUTE = 60_000


def asked(**headers):
    return read_schedule({f"AMQ_SCHEDULED_{name}": value for name, value in headers.items()})


def times(schedule, count, now=NOW):
    """When it is due, if each time is kept."""
    found, due = [], schedule.first(now)
    while len(found) < count:
        found.append(due)
        following = schedule.after(due, due)
        if following is None:
            break
        due, schedule = following
    return found


def test_messages_without_these_headers_are_not_scheduled():
    assert read_schedule({}) is None
    assert asked(REPEAT="3") is None
    assert asked(DELAY="", CRON=" ") is None


def test_a_delay_is_waited_for_once():
    assert times(asked(DELAY="2000"), 5) == [NOW + 2000]


def test_a_period_alone_is_a_delay():
    assert times(asked(PERIOD="2000"), 5) == [NOW + 2000]


@pytest.mark.scenario("SH-01")
def test_repeats_follow_the_first_each_a_period_later():
    assert times(asked(DELAY="100", PERIOD="500", REPEAT="9"), 99) == [NOW + 100 + 500 * n for n in range(10)]


def test_a_row_without_end_goes_on():
    assert len(times(asked(PERIOD="500", REPEAT="-1"), 99)) == 99


def test_a_moment_may_be_named():
    assert times(asked(TIME=str(NOW + 7)), 5) == [NOW + 7]
    assert times(asked(TIME=str(NOW + 7), PERIOD="10", REPEAT="1"), 5) == [NOW + 7, NOW + 17]


def test_what_was_missed_is_not_made_up_for():
    due, left = asked(DELAY="100", PERIOD="500", REPEAT="9").after(NOW + 100, NOW + 60_000)
    assert (due, left.repeat) == (NOW + 60_500, 8)
    assert asked(CRON="* * * * *").after(AT_31, AT_31 + 3 * MINUTE + 5)[0] == AT_31 + 4 * MINUTE


def test_cron_names_minutes_and_may_begin_a_row():
    plain, row = asked(CRON="* * * * *"), asked(CRON="* * * * *", DELAY="10", PERIOD="20", REPEAT="2")
    assert times(plain, 3) == times(row, 3) == [AT_31, AT_31 + MINUTE, AT_31 + 2 * MINUTE]
    assert (plain.starts_repetitions, row.starts_repetitions) == (False, True)
    assert times(row.row, 9, now=AT_31) == [AT_31 + 10, AT_31 + 30, AT_31 + 50]


@pytest.fixture
def central_europe(monkeypatch):
    """Local time there: in 2026 the clock goes from 3:00 back to 2:00 on the 25th of October, at 1:00 UTC."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("text", ["* * * * *", "*/10 2 * * *", "59 2 * * *", "0 0 * * *"])
def test_in_the_hour_that_comes_twice_the_next_time_is_to_come(central_europe, text):
    begin = int(datetime(2026, 10, 25, 0, 0, 20, tzinfo=UTC).timestamp() * 1000)
    for now in range(begin, begin + 150 * MINUTE, MINUTE):
        assert asked(CRON=text).first(now) > now
    in_second = begin + 70 * MINUTE
    assert asked(CRON="* * * * *").first(in_second) == in_second + 40_000


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("*/20 * * * *", ["2:00", "2:20", "2:40", "2:00", "2:20", "2:40", "3:00", "3:20", "3:40"]),
        ("30 */2 * * *", ["2:30", "2:30"]),
        ("15 * 25 OCT *", ["2:15", "2:15", "3:15"]),
        ("30 2 * * *", ["2:30"]),
        ("*/20 2-3 * * *", ["2:00", "2:20", "2:40", "3:00", "3:20", "3:40"]),
    ],
)
def test_the_hour_that_comes_twice_has_its_minutes_twice_unless_they_are_those_of_a_named_hour(
    central_europe, text, times
):
    now = int(datetime(2026, 10, 24, 23, 59, 30, tzinfo=UTC).timestamp() * 1000)  # half a minute before two
    end, found = now + 180 * MINUTE, []
    while (now := asked(CRON=text).first(now)) < end:
        found.append(now)
    assert [f"{datetime.fromtimestamp(each / 1000):%-H:%M}" for each in found] == times


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"DELAY": "soon"}, "AMQ_SCHEDULED_DELAY:soon is not a whole number from 0"),
        ({"DELAY": "-5"}, "AMQ_SCHEDULED_DELAY:-5 is not a whole number from 0"),
        ({"DELAY": "1.5"}, "is not a whole number"),
        ({"DELAY": "9" * 30}, "is not a whole number"),
        ({"PERIOD": "x", "DELAY": "1"}, "AMQ_SCHEDULED_PERIOD:x"),
        ({"DELAY": "1", "REPEAT": "-2"}, "AMQ_SCHEDULED_REPEAT:-2 is not a whole number from -1"),
        ({"DELAY": "1", "REPEAT": "-1"}, "AMQ_SCHEDULED_REPEAT:-1 needs AMQ_SCHEDULED_PERIOD of at least 100"),
        ({"CRON": "* * *"}, "is not five fields"),
        ({"TIME": "tomorrow"}, "AMQ_SCHEDULED_TIME:tomorrow"),
    ],
)
def test_what_is_wrong_is_named(headers, said):
    with pytest.raises(RequestRefused, match=said):
        asked(**headers)


def test_a_minute_that_never_comes_is_refused():
    with pytest.raises(RequestRefused, match="never matches"):
        asked(CRON="0 0 30 2 *").first(NOW)


@pytest.mark.parametrize(
    "job",
    [
        ScheduledJob(JobPurpose.SEND, "/queue/a,/topic/b", Message("1", b"message-id:1\n", b"x\ny\n\n")),
        ScheduledJob(
            JobPurpose.SEND, "a", Message("1", b"message-id:1\n", b""), DeliverySchedule(1, 2, -1, "* * * * *", 5)
        ),
        ScheduledJob(
            JobPurpose.RETURN,
            "queue://a",
            Message("1", b"message-id:1\n", b"", True, 7),
            original="/topic/t",
            shown="/queue/s",
        ),
    ],
)
def test_a_job_is_read_as_it_was_recorded(job):
    assert ScheduledJob.load(job.record()) == job
    assert ScheduledJob.purpose_of(job.record()) is job.purpose
