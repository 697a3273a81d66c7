"""Test shards on the pages and over the REST API, with a node on two databases of a real Valkey."""

import pytest
from django.urls import reverse

from brokerapp.model.destination import Destination
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.topology.shard_views import PAGE_SIZE
from tests.waiting import wait_until

QUEUE = "queue://orders.eu"


def database(url, number):
    """Return the URL of another database of the same server."""
    if url.startswith("unix:"):
        return f"{url}{'&' if '?' in url else '?'}db={number}"
    return f"{url.rstrip('/')}/{number}"


def post(client, name, sent=None, **arguments):
    """Return the page that a change leads to."""
    return client.post(reverse(name, kwargs=arguments), sent, follow=True).content.decode()


def in_shard(number):
    return [each.family for each in gateway().run(gateway().admin.shards.families(number))]


@pytest.fixture
def queue(console):
    gateway().run(gateway().admin.create(Destination.parse(QUEUE)))
    return QUEUE


def test_an_admin_adds_a_shard_moves_a_family_drains_the_shard_and_removes_it(queue, running_broker, admin):
    page = admin.get(reverse("shards")).content.decode()
    assert "One store" in page
    assert "Drain shard" not in page
    assert "Shard 1 added. All nodes serve it." in post(
        admin, "add-shard", {"url": database(running_broker.redis_url, 1)}
    )
    page = admin.get(reverse("shards")).content.decode()
    assert "One store" not in page
    assert page.count(">Drain shard…</button>") == 1, "shard 0 cannot be drained"
    wait_until(lambda: "2 shards" in admin.get(reverse("topology")).content.decode(), "the topology counts the shards")

    source, target = (0, 1) if QUEUE in in_shard(0) else (1, 0)
    page = post(admin, "move-family", {"family": QUEUE, "source": source, "target": target})
    assert f"Family of queue orders.eu moved to shard {target}: 0 messages, paused for " in page
    assert QUEUE in in_shard(target)
    page = post(admin, "move-family", {"family": QUEUE, "source": source, "target": target})
    assert f"is in shard {target} already." in page

    assert "Shard 1 is serving: drain it first." in post(admin, "change-shard", number=1, action="remove")
    assert "Stop draining" in post(admin, "change-shard", number=1, action="drain")
    assert "Shard 1 is serving." in post(admin, "change-shard", number=1, action="stop-draining")
    post(admin, "change-shard", number=1, action="drain")
    wait_until(lambda: not in_shard(1), "the shard is empty")
    assert "Shard 1 removed." in post(admin, "change-shard", number=1, action="remove")
    found = AuditEntry.objects.order_by("pk").values_list("action", "outcome")
    assert [each for each in found if "shard" in each[0] or "family" in each[0]] == [
        ("add shard", "done"), ("move family", "done"), ("move family", "refused"), ("remove shard", "refused"),
        ("drain shard", "done"), ("stop draining shard", "done"), ("drain shard", "done"), ("remove shard", "done"),
    ]  # fmt: skip


def test_the_api_adds_a_shard_moves_a_family_drains_the_shard_and_removes_it(queue, running_broker, admin):
    def call(method, path="", sent=None):
        answer = getattr(admin, method)(f"/api/v1/shards{path}", sent, content_type="application/json")
        return answer.status_code, answer.json() if answer.content else None

    mirror().current()  # measures rates from now on
    status, [only] = call("get")
    assert (status, only["number"], only["state"], only["destinations"]) == (200, 0, "serving", 1)
    added = call("post", "", {"url": database(running_broker.redis_url, 2)})
    number = added[1]["number"]  # the numbers of shards that were removed are not given again
    assert added == (201, {"number": number, "serving": True})
    status, moved = call("post", "/moves", {"family": QUEUE, "shard": number})
    assert (status, moved["source"], moved["target"]) == (200, 0, number)
    gateway().send({"destination": QUEUE, "body": ""}, 20, "")
    wait_until(lambda: call("get", f"/{number}/families")[1][0]["rate"] > 0, "the rate of the family is known")
    status, [family] = call("get", f"/{number}/families")
    assert (status, family["family"], family["destinations"], family["messages"]) == (200, QUEUE, 1, 20)
    assert call("get", "/77/families")[0] == 404
    status, problem = call("delete", f"/{number}")
    assert (status, "drain it first" in problem["detail"]) == (409, True)
    status, shard = call("put", f"/{number}/draining", {"draining": True})
    assert (status, shard["state"]) == (200, "draining")
    wait_until(lambda: not in_shard(number), "the shard is empty")
    assert call("delete", f"/{number}") == (204, None)


def test_a_user_with_a_scope_sees_their_families_and_no_sums(queue, browser_of):
    for scope, sees in (("orders.>", True), ("bills.>", False)):
        client = browser_of("viewer", scope, name=scope)
        page = client.get(reverse("shard", kwargs={"number": 0})).content.decode()
        assert ("orders.eu" in page, "1 more hidden" in page) == (sees, not sees)
        assert "Move family" not in page
        [shard] = client.get("/api/v1/shards").json()
        assert (shard["destinations"], shard["messages"]) == (None, None)
        families = client.get("/api/v1/shards/0/families").json()
        assert [each["family"] for each in families] == ([QUEUE] if sees else [])


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("redis://:secret@127.0.0.1:1", "The store redis://***@127.0.0.1:1 is unreachable: "),
        ("http://shop", "http"),
        ("", "expected redis://"),
    ],
)
def test_a_store_that_cannot_be_added_is_named_with_the_reason_and_without_its_password(url, error, console, admin):
    page = admin.post(reverse("add-shard"), {"url": url})
    assert page.status_code == 400
    assert error in page.content.decode()
    assert "secret" not in page.content.decode()
    assert "secret" not in str(list(AuditEntry.objects.values()))


def test_the_families_of_a_shard_are_found_by_name_and_shown_in_pages(console, admin):
    create = gateway().admin.create
    for number in range(PAGE_SIZE + 1):
        gateway().run(create(Destination.queue(f"many.{number:03}")))
    first, last = (admin.get(reverse("shard", kwargs={"number": 0}), {"page": page}) for page in (1, 2))
    assert ("many.000" in first.content.decode(), "many.050" in first.content.decode()) == (True, False)
    assert "many.050" in last.content.decode()
    found = admin.get(reverse("shard", kwargs={"number": 0}), {"q": "MANY.05"}).content.decode()
    assert ("many.050" in found, "many.049" in found) == (True, False)
    assert "No matching families" in admin.get(reverse("shard", kwargs={"number": 0}), {"q": "x"}).content.decode()
    assert admin.get(reverse("shard", kwargs={"number": 77})).status_code == 404
