"""Test objectives: what is measured from rollups, who sees and changes them, and rules that watch them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import stomp
from django.urls import reverse

from analytics.archive.broker_archive import BrokerArchive
from analytics.model.service_level import MINUTE
from analytics.rollups.counters import NUMBERS, CounterCell, DepthNote, EventCounts
from analytics.rollups.log_histogram import buckets_of
from analytics.rollups.queries import RollupQueries
from analytics.rollups.store import RollupStore
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import NodeStatus
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.access.permissions import visible
from console.alerts import backtest_service, evaluation
from console.alerts.active_alerts import is_visible
from console.alerts.delivery.models import AlertFiring, AlertRule
from console.alerts.evaluation import evaluate
from console.alerts.metrics import AlertMetric
from console.alerts.readings import MetricReadings
from console.alerts.rules import AlertCondition, evaluate_rule
from console.audit.models import AuditEntry
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot, apply_tick, initial_snapshot
from console.objectives import attainment
from console.objectives.attainment import KnownDestinations, measure_at
from console.objectives.models import Objective
from console.objectives.past_attainment import measure_past, replay_range
from console.objectives.targets import Target
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.api.test_api import call
from tests.console.conftest import make_user
from tests.waiting import wait_until

NOW = 1_760_000_430 // 60 * 60 + 30
A, B, OTHER = "queue://orders.a", "queue://orders.b", "queue://billing"
TARGET = Target("orders.>", 95, 30, 7)


def cell(acks=(), **counts) -> CounterCell:
    """Acks by their seconds, and other counts."""
    found = CounterCell()
    for seconds, count in dict(acks).items():
        found.latency[int(buckets_of(np.array([seconds * 1e6]))[0])] = count
    for name, count in counts.items():
        found.numbers[NUMBERS.index(name)] = count
    return found


@pytest.fixture
def rolled_up(tmp_path):
    """A function that stores cells by destination and minutes ago, and depths; the queries of it."""

    def store(cells, depths=()):
        archive = BrokerArchive(tmp_path / "archive", "b")
        archive.folder.mkdir(parents=True)
        kept = RollupStore(archive.folder)
        rows = {(name, "", NOW // MINUTE - ago): each for (name, ago), each in cells.items()}
        notes = [DepthNote((NOW - 60 * ago) * 1_000_000, name, depth, "changed") for name, ago, depth in depths]
        kept.add([EventCounts(rows, notes)], 1)
        kept.close()
        return RollupQueries(archive.folder)

    return store


def test_acks_in_time_and_later_and_failures_of_matching_queues_are_counted(rolled_up):
    past = rolled_up({
        (A, 2): cell({1: 80, 29: 10, 60: 5}), (B, 3000): cell({2: 100}, dead_letter=4, drop=3, never_stored=2),
        (A, 8 * 1440): cell({60: 1000}), (OTHER, 2): cell({60: 1000}), ("topic://orders.t", 2): cell({60: 1000}),
    })  # fmt: skip
    found = measure_at(past, TARGET, NOW)
    assert found.outcomes == replace(found.outcomes, within=190, late=5, failed=5, overdue=0)
    assert (found.counted, found.attainment, found.is_met) == (2, 0.95, True)
    assert found.budget_left == pytest.approx(0)
    assert found.burn_rates[300] == pytest.approx(5 / 95 / 0.05)


@pytest.mark.parametrize(
    ("pattern", "queues"), [(">", 1), ("ActiveMQ.*", 0), ("ActiveMQ.DLQ", 1), ("orders.failed", 1)]
)
def test_wildcards_do_not_cover_dead_letter_queues(rolled_up, pattern, queues):
    names = (A, "queue://ActiveMQ.DLQ", "queue://DLQ.orders", "queue://orders.failed")
    past = rolled_up({(name, 2): cell({60: 5}) for name in names})
    known = KnownDestinations({"queue://orders.failed"})
    found = measure_at(past, replace(TARGET, pattern=pattern), NOW, known)
    assert found.counted == queues


def test_messages_that_wait_longer_than_allowed_miss_the_objective_before_they_are_acknowledged(rolled_up):
    past = rolled_up({(A, 2): cell(forward=5), (A, 0): cell(forward=10)}, [(A, 2, 5), (A, 1, 25)])
    found = measure_at(past, TARGET, NOW)
    assert found.outcomes.overdue == 15  # ten came in the last 90 seconds
    assert (found.attainment, found.is_met) == (0.0, False)
    assert (found.fast_burn, found.slow_burn) == (pytest.approx(20), pytest.approx(20))


def test_a_burst_that_ended_burns_no_longer(rolled_up):
    past = rolled_up({(A, 20): cell({60: 50}), (A, 1): cell({1: 50})})
    found = measure_at(past, TARGET, NOW)
    assert found.burn_rates[3600] == pytest.approx(10)
    assert (found.burn_rates[300], found.fast_burn) == (0.0, 0.0)


def test_without_rollups_nothing_is_known(tmp_path):
    found = measure_at(RollupQueries(tmp_path), TARGET, NOW)
    assert (found.attainment, found.is_met, found.budget_left, found.fast_burn) == (None, None, None, 0.0)


def identity(name: str, *topics: str, durable=True) -> SubscriptionIdentity:
    """A subscription of the client `billing`, or a shared one."""
    return SubscriptionIdentity(
        "billing", name, tuple(map(Destination.topic, topics)), durable=durable, shared=not durable
    )


@pytest.mark.parametrize(
    ("pattern", "subscription", "late"),
    [
        (">", "", 31),
        ("prices.>", "", 11),
        ("prices.eu", "", 1),
        (">", "billing:all", 20),
        ("prices.>", "billing:all", 0),
    ],
)
def test_an_objective_of_durable_subscriptions_counts_those_whose_topics_all_match(
    rolled_up, pattern, subscription, late
):
    subscriptions = {
        "subscription://billing:eu": (identity("eu", "prices.eu"), 1),
        "subscription://billing:two": (identity("two", "prices.eu", "prices.us"), 10),
        "subscription://billing:all": (identity("all", ">"), 20),
        "subscription://billing:gone:nonDurable": (identity("gone", "prices.eu", durable=False), 100),
    }
    others = {("subscription://billing:deleted", 2): cell({60: 1000}), ("queue://prices.eu", 2): cell({60: 1000})}
    past = rolled_up({(log, 2): cell({60: count}) for log, (_, count) in subscriptions.items()} | others)
    known = KnownDestinations(subscriptions={log: each for log, (each, _) in subscriptions.items()})
    target = replace(TARGET, pattern=pattern, kind=DestinationKind.SUBSCRIPTION, subscription=subscription)
    assert measure_at(past, target, NOW, known).outcomes.late == late


def test_an_objective_of_queues_counts_no_subscriptions(rolled_up):
    past = rolled_up({(name, 2): cell({60: 5}) for name in (A, "subscription://orders.billing:all")})
    assert measure_at(past, replace(TARGET, pattern=">"), NOW).counted == 1


@pytest.fixture
def hours_of_orders(rolled_up):
    """Queries of 50 hours: 100 messages a minute, late for 80 minutes, and a queue that fills for a while."""
    cells = {(A, ago): cell({60 if 10 <= ago < 90 else 1: 100}, forward=100) for ago in range(1, 50 * 60)}
    cells |= {(B, ago): cell(forward=4000) for ago in range(600, 610)}
    filling = [(B, ago, 4000 * (610 - ago)) for ago in range(609, 599, -1)]
    full = [(B, ago, 40_000) for ago in range(590, 480, -30)]
    return rolled_up(cells, [*filling, *full, (B, 470, 0)])


def test_an_objective_had_at_each_minute_of_the_past_what_was_measured_then(hours_of_orders):
    target = replace(TARGET, days=2)
    times = replay_range(hours_of_orders, target, NOW, 6 * 3600)
    found = dict(measure_past(hours_of_orders, target, [A, B], times, with_period=True))
    assert (NOW - times[0]) // 3600 == 41  # two days, less the six hours of the longest burn rate
    filling = range(times[-1] - 610 * 60, times[-1] - 590 * 60, 60)
    for at in {*times[::97], times[-1]} - set(filling):
        assert found[at].burn_rates == pytest.approx(measure_at(hours_of_orders, target, at).burn_rates), at
    late = [found[at].outcomes.overdue for at in filling]
    assert late == [measure_at(hours_of_orders, target, at - 1).outcomes.overdue for at in filling]
    assert max(late) == 40_000
    assert found[times[-1]].outcomes == measure_at(hours_of_orders, target, times[-1]).outcomes


@pytest.mark.parametrize(
    ("metric", "threshold", "fired", "hours"),
    [(AlertMetric.BURN_FAST, 14.4, 2, 47), (AlertMetric.BURN_SLOW, 19.9, 0, 42), (AlertMetric.BUDGET, 60, 2, 47)],
)
def test_a_rule_on_objectives_is_tested_on_the_minutes_of_two_days(
    admin, console, hours_of_orders, monkeypatch, metric, threshold, fired, hours
):
    monkeypatch.setattr(backtest_service, "rollups", lambda: hours_of_orders)
    monkeypatch.setattr(backtest_service, "time", SimpleNamespace(time=lambda: NOW))
    Objective.objects.create(name="orders", pattern="orders.>", percent=95, seconds=30, days=7, author="ada")
    rule = {"name": "Burns", "metric": metric, "pattern": ">", "threshold": threshold, "hold": 0}
    rule |= {"below": "1"} if metric is AlertMetric.BUDGET else {}
    page = " ".join(admin.post(reverse("test-alert"), rule).content.decode().split())
    assert f"in the last {hours} hours" in page
    assert "1 objective checked" in page
    told = call(caller(token_of("admin", "see", "alert")), "post", "/alerts/test", rule)
    assert (told["total"], round(told["minutes"] / 60), told["cannot"]) == (fired, hours, "")
    assert {each["subject"] for each in told["episodes"]} <= {"objective orders"}
    assert (told["total"] > 0) == ("Would have fired" in page)
    elsewhere = call(caller(token_of("admin", "see", "alert")), "post", "/alerts/test", {**rule, "pattern": "billing"})
    assert "No objective" in elsewhere["cannot"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (AlertCondition(AlertMetric.BURN_FAST, 14.4), {"objective orders": 20}),
        (AlertCondition(AlertMetric.BURN_SLOW, 21), {}),
        (AlertCondition(AlertMetric.BUDGET, 10, below=True), {"objective orders": 0}),
        (AlertCondition(AlertMetric.BURN_FAST, 14.4, "queue://orders.>"), {"objective orders": 20}),
        (AlertCondition(AlertMetric.BURN_FAST, 14.4, "orders.a"), {}),
    ],
)
def test_a_rule_watches_the_objectives_whose_queues_it_covers(rolled_up, condition, expected):
    found = measure_at(rolled_up({(A, 1): cell({60: 5})}), TARGET, NOW)
    readings = MetricReadings(NOW, BrokerSnapshot(), objectives={"orders": found})
    assert evaluate_rule(condition, readings).breaking == pytest.approx(expected)
    assert "objective" in str(condition)


FORM = {
    "name": "Orders in time",
    "kind": "queue",
    "pattern": "queue://orders.>",
    "percent": "95",
    "seconds": "30",
    "days": "7",
}


def test_an_objective_is_created_changed_and_deleted_with_audit_entries(admin, console):
    assert "No objectives" in admin.get(reverse("objectives")).content.decode()
    assert admin.post(reverse("new-objective"), FORM).status_code == 302
    objective = Objective.objects.get()
    assert str(objective.target) == "95% of messages of orders.> acknowledged within 30 s, over 7 days"
    page = admin.get(reverse("objectives")).content.decode()
    assert "Orders in time" in page
    assert "No messages" in page
    url = reverse("edit-objective", args=[objective.pk])
    form = admin.get(url).content.decode()
    assert "Attainment" in form
    assert 'value="orders.&gt;"' in form
    assert admin.post(url, {**FORM, "percent": "99.9"}).status_code == 302
    assert Objective.objects.get().percent == 99.9
    assert admin.post(reverse("delete-objective", args=[objective.pk])).status_code == 302
    assert not Objective.objects.exists()
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert [each for each in actions if "objective" in each] == [
        "create objective", "change objective", "delete objective",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("percent", "100", "99.999"), ("seconds", "0", "1"), ("days", "61", "60"),
        ("pattern", "topic://x", "choose durable subscriptions"), ("pattern", "", "required"),
    ],
)  # fmt: skip
def test_an_invalid_objective_is_refused_with_the_rule(admin, console, field, value, rule):
    response = admin.post(reverse("new-objective"), {**FORM, field: value})
    assert response.status_code == 400
    assert rule in response.content.decode()
    assert not Objective.objects.exists()


def test_an_objective_is_seen_only_by_users_who_see_all_its_queues(browser_of, console, admin):
    hidden = Objective.objects.create(name="All", pattern=">", percent=95, seconds=30, days=7, author="ada")
    shown = Objective.objects.create(name="Some", pattern="orders.eu.>", percent=95, seconds=30, days=7, author="ada")
    narrow = browser_of("operator", "orders.>")
    page = narrow.get(reverse("objectives")).content.decode()
    assert ("Some" in page, "95% of messages of &gt;" in page) == (True, False)
    assert narrow.get(reverse("edit-objective", args=[shown.pk])).status_code == 200
    assert narrow.get(reverse("edit-objective", args=[hidden.pk])).status_code == 404
    assert narrow.post(reverse("new-objective"), {**FORM, "pattern": "billing"}).status_code == 403
    assert browser_of("viewer").post(reverse("new-objective"), FORM).status_code == 403


def test_an_alert_about_an_objective_fires_and_is_seen_only_by_users_who_see_all_its_queues(
    browser_of, console, admin, rolled_up, settings, monkeypatch
):
    past = rolled_up({(A, 1): cell({60: 5})})
    monkeypatch.setattr(evaluation, "measure", lambda target: measure_at(past, target, NOW))
    Objective.objects.create(name="orders", pattern="orders.>", percent=95, seconds=30, days=7, author="ada")
    AlertRule.objects.create(name="Burns", metric="burn-fast", pattern="queue://orders.>", threshold=14.4, author="ada")
    node = NodeStatus("n", "b", 0, 0)
    evaluate(apply_tick(initial_snapshot(NOW, 1, [], BrokerSnapshot()), NOW, [node]), NOW)
    firing = AlertFiring.objects.get()
    assert firing.sentence == "objective orders: burn rate over 1 h and 5 min is 20x, above 14.4x"
    assert firing.topics == ["queue://orders.>"]
    sees = {
        scope: is_visible(firing, visible(make_user("viewer", scope, name=scope))) for scope in ("orders.>", "orders.a")
    }
    assert sees == {"orders.>": True, "orders.a": False}
    Objective.objects.all().delete()
    evaluate(apply_tick(initial_snapshot(NOW, 1, [], BrokerSnapshot()), NOW + 10, [node]), NOW + 10)
    assert AlertFiring.objects.get().state == "ended"


def test_programs_create_read_change_and_delete_objectives(console, db):
    program = caller(token_of("admin", "see", "alert"))
    made = call(program, "post", "/objectives", {**BODY, "percent": 99}, 201)
    assert made["sentence"] == "99% of messages of orders.> acknowledged within 30 s, over 7 days"
    assert (made["measured"]["attainment"], made["measured"]["burn_rates"]["3600"]) == (None, 0.0)
    url = f"/objectives/{made['id']}"
    assert "days" in call(program, "put", url, {**BODY, "days": 100}, 409)["detail"]
    assert call(program, "put", url, {**BODY, "days": 30})["days"] == 30
    assert [each["days"] for each in call(program, "get", "/objectives")] == [30]
    assert call(program, "get", url)["pattern"] == "orders.>"
    call(program, "delete", url, status=204)
    call(program, "get", url, status=404)


def test_an_objective_of_a_durable_subscription_is_measured_by_what_the_broker_knows_of_it(
    console, browser_of, rolled_up, monkeypatch
):
    client = stomp.Connection12([("127.0.0.1", console.port)])
    client.connect("ada", "lovelace", wait=True, headers={"client-id": "billing"})
    client.subscribe("/topic/rates", "1", headers={"activemq.subscriptionName": "all rates"})
    log = Destination(DestinationKind.SUBSCRIPTION, "billing:all%20rates")
    wait_until(lambda: log in mirror().picture.subscriptions, "the subscription")
    past = rolled_up({(str(log), 2): cell({60: 5})})
    monkeypatch.setattr(attainment, "rollups", lambda: past)
    monkeypatch.setattr(attainment, "time", SimpleNamespace(time=lambda: NOW))
    program = caller(token_of("admin", "see", "alert"))
    body = {**BODY, "kind": "subscription", "pattern": "topic://rates", "subscription": "billing:all rates"}
    made = call(program, "post", "/objectives", body, 201)
    assert made["sentence"].startswith("95% of messages of durable subscription billing:all rates to rates ")
    assert (made["measured"]["queues"], made["measured"]["subscriptions"], made["measured"]["late"]) == (0, 1, 5)
    for wrong, rule in (
        ({"pattern": "queue://rates"}, "topics"),
        ({"kind": "queue", "pattern": "rates"}, "Leave the subscription empty"),
    ):
        assert rule in call(program, "put", f"/objectives/{made['id']}", {**body, **wrong}, 409)["detail"]
    readers = {"topic://rates": "viewer", "queue://>": "operator"}
    seen = {
        scope: "Orders in time" in browser_of(role, scope).get(reverse("objectives")).content.decode()
        for scope, role in readers.items()
    }
    assert seen == {"topic://rates": True, "queue://>": False}
    client.disconnect()


BODY = {"name": "Orders in time", "pattern": "orders.>", "percent": 95, "seconds": 30, "days": 7}
