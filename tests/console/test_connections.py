"""Who is connected."""

from django.urls import reverse

from brokerapp.destination import Destination
from brokerapp.snapshot import ConnectionStats, NodeStatus
from console.connections import connections_of, consumers_of
from console.live.picture import Picture
from tests.conftest import until


def test_a_client_and_its_subscription_are_listed(browser_of, console):
    viewer = browser_of("viewer")
    console.client().subscribe("/queue/watched", "1")
    url = reverse("connections")
    text = until(lambda: "watched" in (text := viewer.get(url).content.decode()) and text, "the subscription")
    assert reverse("queue", kwargs={"name": "watched"}) in text
    assert "1 connection" in text


def test_without_clients_the_page_says_how_to_connect(admin, console):
    until(lambda: "Nobody is connected" in admin.get(reverse("connections")).content.decode(), "the empty page")


def connection(id: str, since: int, *subscriptions: str) -> dict:
    return ConnectionStats(id, id, "127.0.0.1:1", "ada", "1.2", since, list(subscriptions)).to_json()


def test_consumers_are_found_by_name_and_by_pattern():
    rows = [
        connection("late", 2, "/queue/a.*"),
        connection("early", 1, "/queue/a.b"),
        connection("other", 3, "/topic/a.b", "/queue/c"),
    ]
    picture = Picture(nodes=(NodeStatus("n", "b", 0, 0, connections=rows),))
    assert [each.stats.id for each in connections_of(picture)] == ["early", "late", "other"]
    assert [each.stats.id for each in consumers_of(picture, Destination.queue("a.b"))] == ["early", "late"]
    assert [each.stats.id for each in consumers_of(picture, Destination.topic("a.b"))] == ["other"]
