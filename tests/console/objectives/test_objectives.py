"""Test objectives: what is measured from rollups, who sees and changes them, and rules that watch them."""

from dataclasses import replace

import numpy as np
import pytest
from django.urls import reverse

from analytics.archive.broker_archive import BrokerArchive
from analytics.model.service_level import MINUTE
from analytics.rollups.counters import NUMBERS, CounterCell, DepthNote, EventCounts
from analytics.rollups.log_histogram import buckets_of
from analytics.rollups.queries import RollupQueries
from analytics.rollups.store import RollupStore
from brokerapp.model.stats_records import NodeStatus
from console.access.permissions import visible
from console.alerts import evaluation
from console.alerts.active_alerts import is_visible
from console.alerts.delivery.models import AlertFiring, AlertRule
from console.alerts.evaluation import evaluate
from console.alerts.metrics import AlertMetric
from console.alerts.readings import MetricReadings
from console.alerts.rules import AlertCondition, evaluate_rule
from console.audit.models import AuditEntry
from console.broker.snapshot import BrokerSnapshot, apply_tick, initial_snapshot
from console.objectives.attainment import measure_at
from console.objectives.models import Objective
from console.objectives.targets import Target
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.api.test_api import call
from tests.console.conftest import make_user

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
    assert (found.queues, found.attainment, found.is_met) == (2, 0.95, True)
    assert found.budget_left == pytest.approx(0)
    assert found.burn_rates[300] == pytest.approx(5 / 95 / 0.05)


@pytest.mark.parametrize(
    ("pattern", "queues"), [(">", 1), ("ActiveMQ.*", 0), ("ActiveMQ.DLQ", 1), ("orders.failed", 1)]
)
def test_wildcards_do_not_cover_dead_letter_queues(rolled_up, pattern, queues):
    names = (A, "queue://ActiveMQ.DLQ", "queue://DLQ.orders", "queue://orders.failed")
    past = rolled_up({(name, 2): cell({60: 5}) for name in names})
    found = measure_at(past, replace(TARGET, pattern=pattern), NOW, {"queue://orders.failed"})
    assert found.queues == queues


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


FORM = {"name": "Orders in time", "pattern": "queue://orders.>", "percent": "95", "seconds": "30", "days": "7"}


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
        ("pattern", "topic://x", "Objectives are for queues"), ("pattern", "", "required"),
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


BODY = {"name": "Orders in time", "pattern": "orders.>", "percent": 95, "seconds": 30, "days": 7}
