"""Test expected traffic: how it is stored and updated, what recent hours are compared with, and rules on it."""

import numpy as np
import pytest
from django.urls import reverse

from analytics.model.traffic_comparison import ExpectedHour, TrafficHour, hour_to_judge
from analytics.rollups.expected_traffic import HISTORY_HOURS, read_hourly_traffic
from analytics.rollups.store import HOUR, MINUTE
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats, NodeStatus
from console.alerts import backtest_service
from console.alerts.backtest import replay_hours
from console.alerts.delivery.models import AlertFiring, AlertRule
from console.alerts.evaluation import evaluate
from console.alerts.forms import RuleForm
from console.alerts.metrics import AlertMetric
from console.alerts.rules import AlertCondition
from console.broker.rollups import rollups
from console.broker.snapshot import BrokerSnapshot, apply_tick, initial_snapshot
from console.metrics.charts import chart_data
from console.tasks import update_traffic_ranges
from console.traffic_ranges.comparisons import (
    ExpectedCourse,
    RecordingBehind,
    current_traffic,
    expected_course,
    replay_traffic,
)
from console.traffic_ranges.models import TrafficRange
from console.traffic_ranges.range_updates import AHEAD_HOURS, KEPT_DAYS, update_from
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.api.test_api import call
from tests.console.traffic_ranges.conftest import END, OFFICE_TO_END

A, B = "queue://orders.a", "queue://orders.b"
NOW = END * HOUR + 10 * MINUTE
RANGE = ExpectedHour(420, 500, 610)
#: Usual arrivals of the hour before END, whose usual count is about 20,000.
USUAL = OFFICE_TO_END[-1]


def changed(last: float) -> np.ndarray:
    """Return the traffic of office hours with another last hour."""
    return np.append(OFFICE_TO_END[:-1], last)


@pytest.mark.parametrize(
    ("observed", "is_complete", "shortfall", "excess"),
    [
        (12, True, 408, 0), (12, False, 0, 0), (420, True, 0, 0), (610, True, 0, 0), (700, True, 0, 90),
        (700, False, 0, 90),
    ],
)  # fmt: skip
def test_an_hour_falls_short_only_after_its_end_and_exceeds_its_range_at_once(observed, is_complete, shortfall, excess):
    hour = TrafficHour(0, observed, RANGE, is_complete)
    assert (hour.shortfall, hour.excess, hour.deviation) == (shortfall, excess, shortfall + excess)


def test_an_hour_is_described_by_what_was_observed_and_what_was_expected():
    start = 14 * HOUR
    assert str(TrafficHour(start, 1, RANGE)) == (
        "1 message from 14:00 to 15:00 UTC, expected 420 to 610 an hour (usually 500)"
    )
    assert str(TrafficHour(start, 7000, RANGE, is_complete=False)).startswith(
        "7,000 messages since 14:00 UTC, expected"
    )


def test_the_current_hour_is_judged_only_when_it_exceeds_its_range_already():
    last, low, high = (
        TrafficHour(0, 5, RANGE),
        TrafficHour(HOUR, 5, RANGE, False),
        TrafficHour(HOUR, 999, RANGE, False),
    )
    assert [hour_to_judge(each, last) for each in (low, high, None)] == [last, high, last]
    assert hour_to_judge(None, None) is None


def test_the_task_stores_the_ranges_of_past_days_and_the_next_day_and_repeats_no_work(db, recorded):
    recorded({A: OFFICE_TO_END})
    assert (update_traffic_ranges(), update_traffic_ranges()) == (1, 0)
    stored = TrafficRange.objects.get().expected
    assert (stored.first, stored.end) == (END - KEPT_DAYS * 24, END + AHEAD_HOURS)
    assert stored.at(END - 1).low < USUAL < stored.at(END - 1).high
    assert stored.at(stored.end) is None


def test_ranges_of_past_days_stay_as_they_were_expected_then(db, recorded):
    recorded({A: OFFICE_TO_END})
    update_from(rollups(), END - 25)
    before = TrafficRange.objects.get().expected
    assert update_from(rollups(), END) == 1
    after = TrafficRange.objects.get().expected
    assert (after.first, after.end) == (END - KEPT_DAYS * 24, END + AHEAD_HOURS)
    assert [after.at(hour) for hour in range(after.first, END)] == [before.at(hour) for hour in range(after.first, END)]


def test_a_new_destination_has_no_range_until_three_days_after_its_first_message(db, recorded):
    new = np.zeros(len(OFFICE_TO_END))
    new[-50:] = 1000
    recorded({A: OFFICE_TO_END, B: new})
    update_traffic_ranges()
    row = TrafficRange.objects.get(destination=B)
    assert (row.ranges, row.recorded_hours) == ([], 50)
    assert set(current_traffic(NOW)) == {A}


def test_hours_in_which_nothing_was_recorded_while_messages_waited_are_unknown(db, recorded):
    gap = OFFICE_TO_END.copy()
    gap[-5:-2] = 0
    recorded({A: gap}, depths=[(A, END - 6, 40)])
    values = read_hourly_traffic(rollups(), END, [A]).destinations[A]
    assert np.isnan(values[-5:-2]).all()
    assert values[-2:].tolist() == OFFICE_TO_END[-2:].tolist()
    assert np.isnan(values[: HISTORY_HOURS - len(OFFICE_TO_END)]).all()


@pytest.mark.parametrize(
    ("last", "current", "observed", "deviates"),
    [
        (USUAL, 0, USUAL, False), (0, 0, 0, True), (USUAL * 5, 0, USUAL * 5, True), (USUAL, USUAL * 5, USUAL * 5, True),
    ],
    ids=["as usual", "silence", "too many", "too many in the current hour"],
)  # fmt: skip
def test_the_last_hour_is_compared_with_its_range(db, recorded, last, current, observed, deviates):
    recorded({A: np.append(changed(last), current)})
    update_traffic_ranges()
    hour = current_traffic(NOW)[A]
    assert (hour.observed, bool(hour.deviation)) == (observed, deviates)


def test_an_archive_that_is_behind_says_nothing_of_the_current_traffic(db, recorded):
    recorded({A: OFFICE_TO_END})
    update_traffic_ranges()
    with pytest.raises(RecordingBehind, match="behind"):
        current_traffic(NOW + 6 * MINUTE)


def test_without_ranges_a_missing_archive_is_no_error(db, recorded):
    assert current_traffic(NOW) == {}


def picture(now: float) -> BrokerSnapshot:
    rows = [DestinationStats(Destination.parse(each)) for each in (A, B)]
    return apply_tick(initial_snapshot(now, 1, rows, BrokerSnapshot()), now, [NodeStatus("n", "b", 0, 0)])


def test_a_rule_fires_when_traffic_stops_and_says_what_was_observed_and_expected(db, recorded):
    AlertRule.objects.create(name="Stopped", metric="traffic-shortfall", pattern="orders.>", threshold=0, author="ada")
    AlertRule.objects.create(name="Too many", metric="traffic-excess", pattern="orders.>", threshold=0, author="ada")
    recorded({A: changed(12), B: OFFICE_TO_END})
    update_traffic_ranges()
    evaluate(picture(NOW), NOW)
    firing = AlertFiring.objects.get()
    assert (firing.rule_name, firing.subject, firing.state) == ("Stopped", A, "firing")
    assert firing.sentence.startswith("orders.a: 12 messages from 11:00 to 12:00 UTC, expected ")
    expected = TrafficRange.objects.get(destination=A).expected.at(END - 1)
    assert f"{expected.low:,} to {expected.high:,} an hour (usually {expected.middle:,})" in firing.sentence
    assert firing.value == expected.low - 12


def test_an_alert_stays_open_while_the_archive_is_behind(db, recorded):
    AlertRule.objects.create(name="Stopped", metric="traffic-anomaly", pattern="orders.>", threshold=0, author="ada")
    recorded({A: changed(12)})
    update_traffic_ranges()
    for now in (NOW, NOW + 10 * MINUTE):
        evaluate(picture(now), now)
        assert AlertFiring.objects.get().state == "firing"


def test_the_backtest_counts_silences_once_and_names_the_worst_hour():
    counts = [500, 10, 20, 500, 700, 500, 10]
    hours = [TrafficHour(number * HOUR, count, RANGE) for number, count in enumerate(counts)]
    found = replay_hours(AlertCondition(AlertMetric.TRAFFIC_SHORTFALL, 0), {A: hours})
    assert [(each.fired // HOUR, each.ended and each.ended // HOUR, each.worst) for each in found] == [
        (7, None, 410), (2, 4, 410),
    ]  # fmt: skip
    assert found[1].detail.startswith("10 messages from 01:00")
    both = AlertCondition(AlertMetric.TRAFFIC_ANOMALY, 0)
    assert len(replay_hours(both, {A: hours})) == 3
    held = AlertCondition(AlertMetric.TRAFFIC_ANOMALY, 0, hold=HOUR)
    assert [each.fired // HOUR for each in replay_hours(held, {A: hours})] == [3]
    minute = AlertCondition(AlertMetric.TRAFFIC_ANOMALY, 0, hold=60)  # an hour counts until the next one ends
    assert [(each.fired - 60) // HOUR for each in replay_hours(minute, {A: hours})] == [7, 5, 2]
    assert replay_hours(AlertCondition(AlertMetric.TRAFFIC_ANOMALY, 410), {A: hours}) == []


def test_weeks_of_usual_traffic_with_one_outage_give_one_alert(db, recorded):
    values = OFFICE_TO_END.copy()
    values[-26:-23] = 0  # yesterday from 10:00 to 13:00
    recorded({A: values})
    compared = replay_traffic([A])[A]
    assert len(compared) == 17 * 24  # the days with two weeks before them
    [episode] = replay_hours(AlertCondition(AlertMetric.TRAFFIC_SHORTFALL, 0), {A: compared})
    assert (episode.fired, episode.ended) == ((END - 25) * HOUR, (END - 22) * HOUR)


def test_a_time_range_has_the_ranges_of_its_hours_and_the_complete_hours_outside_theirs(db, recorded):
    values = changed(12)
    values[-3] *= 5
    recorded({A: np.append(values, 5)})
    update_traffic_ranges()
    query = {"from": (END - 24) * HOUR, "to": END * HOUR + 600}
    course = expected_course(A, query["from"], query["to"])
    assert list(course.ranges) == [hour * HOUR for hour in range(END - 24, END + 1)]
    assert [each.start // HOUR for each in course.outside] == [END - 3, END - 1]
    assert expected_course(B, query["from"], query["to"]) == ExpectedCourse({}, [])


def test_hours_without_records_are_not_marked(db, recorded):
    gap = OFFICE_TO_END.copy()
    gap[-5:-2] = 0
    recorded({A: gap}, depths=[(A, END - 6, 40)])
    update_traffic_ranges()
    assert expected_course(A, (END - 4) * HOUR, END * HOUR).outside == []


def test_charts_of_a_day_have_expected_ranges_and_those_of_minutes_have_none(admin, console, recorded, monkeypatch):
    asked = ExpectedCourse({7 * HOUR: RANGE}, [TrafficHour(7 * HOUR, 3600, RANGE)])
    monkeypatch.setattr(chart_data, "expected_course", lambda *_: asked)
    url = reverse("queue-chart", args=["orders.a"])
    found = admin.get(url, {"window": "24h"}).json()
    assert found["expected"] == [[7 * HOUR * 1000, 0.117, 0.169]]
    assert [each[:2] for each in found["outside"]] == [[7 * HOUR * 1000, 1.0]]
    assert "expected 420 to 610" in found["outside"][0][2]
    short = admin.get(url, {"window": "1h"}).json()
    whole = admin.get(reverse("chart"), {"window": "24h"}).json()
    assert [(each["expected"], each["outside"]) for each in (short, whole)] == [([], []), ([], [])]


FORM = {"name": "x", "metric": "traffic-anomaly", "pattern": "orders.>", "threshold": "0", "hold": "0"}


def test_the_page_tests_a_rule_on_the_last_weeks(browser_of, console, recorded):
    recorded({A: changed(12)})
    update_traffic_ranges()
    text = browser_of("operator").post(reverse("test-alert"), FORM).content.decode()
    assert "Would have fired" in text
    assert "in the last 17 days" in text
    assert "12 messages from 11:00 to 12:00 UTC" in text
    found = call(caller(token_of("admin", "see", "alert")), "post", "/alerts/test", {**FORM, "threshold": 0, "hold": 0})
    assert (found["looked_at"], found["cannot"]) == (1, "")
    assert found["episodes"][0]["detail"].startswith("12 messages")


def test_too_little_history_is_said_plainly(browser_of, console, recorded):
    operator = browser_of("operator")
    text = operator.post(reverse("test-alert"), FORM).content.decode()
    assert "No expected range yet: they are computed once an hour, from 3 days of recorded traffic on." in text
    TrafficRange.objects.create(destination="queue://elsewhere", first=0)
    assert "No traffic of these destinations is recorded" in operator.post(reverse("test-alert"), FORM).content.decode()
    recorded({A: np.concatenate((np.zeros(len(OFFICE_TO_END) - 50), np.full(50, 100)))})
    update_traffic_ranges()
    text = operator.post(reverse("test-alert"), FORM).content.decode()
    assert "An expected range needs 3 days of recorded traffic; this has 2 days." in text


def test_the_page_of_a_rule_counts_destinations_with_too_little_history(browser_of, console, recorded, monkeypatch):
    monkeypatch.setattr(backtest_service, "mirror", lambda: type("Mirror", (), {"current": lambda _: picture(NOW)})())
    recorded({A: OFFICE_TO_END})
    update_traffic_ranges()
    row = AlertRule.objects.create(name="x", metric="traffic-anomaly", pattern="orders.>", threshold=0, author="ada")
    page = browser_of("operator").get(reverse("edit-alert", args=[row.pk])).content.decode()
    assert "1 destination of this rule has too" in page


def test_a_rule_on_the_expected_range_cannot_be_below_a_threshold(db):
    form = RuleForm({**FORM, "below": "1"})
    assert not form.is_valid()
    assert list(form.errors) == ["below"]
