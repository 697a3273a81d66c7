"""Test a search through all queues as a job: progress, results, cancellation, permissions and masking."""

import itertools
import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from brokerapp.errors import StoreUnavailable
from brokerapp.model.destination import Destination
from console.access.models import Assignment, MaskingRule
from console.broker.gateway import gateway
from console.messages.search import worker
from console.messages.search.models import MessageSearch
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.conftest import waiting_tasks

_numbers = itertools.count()


@pytest.fixture
def filled(console, wait_for_mirror, monkeypatch):
    """Three queues, each with one message of the same order, which this is; pages are smaller than the queues."""
    monkeypatch.setattr(worker, "PAGE", 4)
    wanted = f"4711-{next(_numbers)}"
    for name, count in (("search.small", 3), ("search.large", 10), ("other.secret", 5)):
        for number in range(count):
            console.send(f"/queue/{name}", str(number), order=wanted if number == 1 else f"{name}-{number}")
        wait_for_mirror(name, count)
    yield f"order:{wanted}"
    for name in ("search.small", "search.large", "other.secret"):
        gateway().run(gateway().admin.purge(Destination.queue(name)))


def started(client, text):
    waiting_tasks("default")  # what earlier tests asked for
    response = client.post(reverse("start-search"), {"q": text})
    search = MessageSearch.objects.latest("created")
    assert response["Location"] == reverse("search", args=[search.id])
    assert waiting_tasks("default") == [("console.search_on", [str(search.id)])]
    return search


def finish(search):
    while worker.run_slice(str(search.id)) not in MessageSearch.FINAL:
        waiting_tasks("default")
    search.refresh_from_db()


def found(search):
    return sorted((each.place, each.why) for each in search.hits.all())


def test_a_search_goes_through_every_queue_to_its_end(admin, filled):
    search = started(admin, filled)
    assert search.expected >= 18
    finish(search)
    assert (search.state, search.progress, search.position) == ("done", 1.0, len(search.queues))
    places = {"queue://search.small", "queue://search.large", "queue://other.secret"}
    assert {place for place, _ in found(search)} >= places
    page = admin.get(reverse("search", args=[search.id])).content.decode()
    assert "search.large" in page
    assert 'hx-trigger="every 1s"' not in page


def test_progress_and_results_are_shown_while_it_runs_and_a_killed_worker_loses_nothing(admin, filled, monkeypatch):
    search, pages = started(admin, filled), iter([None, None])

    def killed(*_):
        if next(pages, "killed") == "killed":
            raise RuntimeError("killed")
        return real(*_)

    real = worker._page
    monkeypatch.setattr(worker, "_page", killed)
    with pytest.raises(RuntimeError):  # the third page: as if the process had ended there
        worker.run_slice(str(search.id))
    part = admin.get(reverse("search", args=[search.id]), headers={"hx-request": "true"}).content.decode()
    assert 'hx-trigger="every 1s"' in part
    search.refresh_from_db()
    assert 0 < search.scanned < search.expected
    monkeypatch.setattr(worker, "_page", real)
    assert worker.run_slice(str(search.id)) == "not mine"
    MessageSearch.objects.update(lease=timezone.now() - timedelta(seconds=1))
    finish(search)
    assert len(found(search)) == len(set(found(search)))
    assert {place for place, _ in found(search)} >= {"queue://search.small", "queue://search.large"}


def test_a_cancelled_search_stops_and_keeps_what_it_found(admin, filled, monkeypatch):
    search, real = started(admin, filled), worker._page

    def cancelled(*_):
        admin.post(reverse("cancel-search", args=[search.id]))
        return real(*_)

    monkeypatch.setattr(worker, "_page", cancelled)
    assert worker.run_slice(str(search.id)) == "cancelled"
    search.refresh_from_db()
    assert search.position < len(search.queues)
    assert "Cancelled" in admin.get(reverse("search", args=[search.id])).content.decode()


def test_a_search_sees_what_its_user_may_browse_while_it_runs_and_nobody_else_sees_it(browser_of, filled):
    support = browser_of("support", "search.>", name="narrow")
    search = started(support, filled)
    assert {name for name, _ in search.queues} == {"queue://search.small", "queue://search.large"}
    Assignment.objects.filter(user=search.user).update(scopes=["search.small"])
    finish(search)
    assert found(search) == [("queue://search.small", "order")]
    assert browser_of("admin").get(reverse("search", args=[search.id])).status_code == 404
    Assignment.objects.filter(user=search.user).update(scopes=["elsewhere"])
    page = support.get(reverse("search", args=[search.id]))
    assert "search.small" not in page.content.decode()


def test_a_masked_property_finds_nothing(browser_of, filled, db):
    MaskingRule.objects.create(order=1, scope=">", place="header", pattern="order", action="remove")
    search = started(browser_of("support"), filled)
    finish(search)
    assert found(search) == []


def test_a_token_searches_within_what_it_includes(filled, db):
    program = caller(token_of("admin", "browse", scopes=("search.small",)))
    answer = program.post("/api/v1/searches", json.dumps({"q": filled}), content_type="application/json").json()
    search = MessageSearch.objects.get(id=answer["id"])
    waiting_tasks("default")
    search.queues.append(("queue://other.secret", False))
    search.save()
    finish(search)
    told = program.get(f"/api/v1/searches/{search.id}").json()
    assert (told["state"], [each["place"] for each in told["hits"]]) == ("done", ["queue://search.small"])


def test_a_disabled_user_s_search_ends(admin, filled):
    search = started(admin, filled)
    search.user.is_active = False
    search.user.save()
    finish(search)
    assert (search.state, search.note) == ("failed", "The user is disabled.")


def test_a_store_that_is_away_only_delays_a_search(admin, filled, monkeypatch):
    search, real = started(admin, filled), worker._page
    monkeypatch.setattr(worker, "_page", lambda *_: (_ for _ in ()).throw(StoreUnavailable("the store is away")))
    assert worker.run_slice(str(search.id)) == "queued"
    monkeypatch.setattr(worker, "_page", real)
    finish(search)
    assert search.state == "done"


def test_a_user_runs_two_searches_at_a_time(admin, filled):
    for _ in range(2):
        started(admin, filled)
    assert admin.post(reverse("start-search"), {"q": "x"})["Location"] == "/find?q=x"
    assert MessageSearch.objects.count() == 2


def test_a_quick_search_that_stopped_early_offers_to_search_all_queues(admin, filled, monkeypatch):
    monkeypatch.setattr("console.messages.search.lookup.QUEUE_SECONDS", 0.0)
    page = admin.get(reverse("find-messages"), {"q": filled}).content.decode()
    assert "Search all queues" in page
    assert reverse("start-search") in page
