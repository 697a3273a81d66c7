"""Test that due rows are queued once, again after a lost worker, and given up after some attempts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from brokerapp.errors import StoreUnavailable
from console.alerts.delivery import retry_schedule
from console.alerts.delivery.models import AlertDelivery, AlertFiring

NOW = timezone.now()
LOST = 60


@pytest.fixture
def asked(monkeypatch) -> list[int]:
    """Keys of the rows that workers were asked for."""
    found = []
    monkeypatch.setattr(retry_schedule, "enqueue", lambda task, key: found.append(key))
    return found


@pytest.fixture
def rows(db):
    """Two rows that are due, one that is not yet and one that is done with."""
    firing = AlertFiring.objects.create(
        rule_name="deep", subject="queue://q", state="firing", since=NOW, value=9, worst=9
    )
    for ago, state in ((10, "queued"), (20, "queued"), (-30, "queued"), (10, "sent")):
        AlertDelivery.objects.create(
            firing=firing, kind="mail", event="fired", target=f"{ago}@{state}", due=NOW - timedelta(seconds=ago),
            state=state,
        )  # fmt: skip
    return AlertDelivery.objects.filter(state="queued")


def test_workers_are_asked_for_what_is_due_the_longest_first(rows, asked):
    retry_schedule.enqueue_due(rows, "due", "task", NOW, LOST, most=1)
    retry_schedule.enqueue_due(rows, "due", "task", NOW, LOST)
    assert [AlertDelivery.objects.get(pk=key).target for key in asked] == ["20@queued", "10@queued"]
    retry_schedule.enqueue_due(rows, "due", "task", NOW, LOST)
    assert len(asked) == 2  # a worker has each of them
    retry_schedule.enqueue_due(rows, "due", "task", NOW + timedelta(seconds=LOST), LOST)
    assert len(asked) == 5  # lost, as nothing was heard of them; and the third is due by now


def test_without_workers_the_rest_is_left_for_later(rows, monkeypatch):
    def nobody(task: str, key: int) -> None:
        raise StoreUnavailable("no worker could be asked")

    monkeypatch.setattr(retry_schedule, "enqueue", nobody)
    retry_schedule.enqueue_due(rows, "due", "task", NOW, LOST)
    assert rows.filter(due__lte=NOW).count() == 1


def test_attempts_are_further_and_further_apart_until_it_has_failed():
    assert [retry_schedule.next_attempt_at(attempt, (10, 60), NOW) for attempt in (1, 2, 3)] == [
        NOW + timedelta(seconds=10), NOW + timedelta(seconds=60), None,
    ]  # fmt: skip
