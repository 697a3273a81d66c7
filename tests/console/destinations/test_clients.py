"""Test connections and subscriptions: lists, details, closing and deleting."""

import time
from urllib.parse import quote

import pytest
from django.urls import reverse

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import (
    ConnectionDetails,
    ConnectionStats,
    ConsumerStats,
    DestinationStats,
    NodeStatus,
)
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.openwire.commands import (
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    OpenWireDestination,
    ProducerId,
    ProducerInfo,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.wire_format_options import WireFormatOptions
from console.alerts import active_alerts
from console.alerts.delivery.models import AlertFiring, AlertRule
from console.alerts.evaluation import evaluate
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot
from console.destinations.clients.clients import (
    CONNECTION_TABLE,
    ConnectionView,
    consumers_of,
    current_connections,
    producers_of,
    visible_connections,
)
from console.destinations.clients.connection_list import connection_rows
from console.destinations.clients.jms_sessions import JmsSessions
from console.destinations.clients.topic_subscriptions import SUBSCRIPTION_TABLE, build_subscriptions
from tests.protocol.openwire_client import OpenWireSocket
from tests.waiting import wait_until


def test_a_client_and_its_subscription_are_listed_and_its_page_says_more(browser_of, console):
    viewer = browser_of("viewer")
    client = console.client()
    client.subscribe("/queue/watched", "1", ack="client", headers={"activemq.prefetchSize": "7", "selector": "n > 5"})
    client.send("/queue/sent.to", "x")
    peer = wait_until(
        lambda: next((each for each in current_connections() if each.consumers and each.details.producing_to), None),
        "the client",
    )
    page = viewer.get(reverse("connections")).content.decode()
    assert ">ada<" in page
    assert peer.stats.remote_address in page
    text = viewer.get(reverse("connection", args=[peer.stats.id])).content.decode()
    places = [f'href="{reverse("queue", args=[name])}"' for name in ("watched", "sent.to")]
    for said in (*places, "n &gt; 5", ">7<", "Heart-beats"):
        assert said in text


def test_a_queue_says_who_consumes_and_who_sends(browser_of, console, wait_for_mirror):
    console.client().subscribe("/queue/busy.here", "1", ack="client")
    console.client().send("/queue/busy.here", "x", persistent="true")
    wait_for_mirror("busy.here", 1)
    wait_until(lambda: producers_of(current_connections(), Destination.queue("busy.here")), "the producer")
    viewer = browser_of("viewer")
    for tab, head in (("consumers", "Prefetch"), ("producers", "Other destinations")):
        text = viewer.get(reverse("queue", args=["busy.here"]), {"tab": tab}).content.decode()
        assert head in text
        assert ">ada<" in text


def test_a_connection_is_closed_by_who_may_and_the_trail_says_whose(browser_of, console):
    client = console.client()
    client.send("/queue/closing", "x", receipt="1")
    peer = wait_until(
        lambda: next((each for each in current_connections() if each.details.producing_to), None), "the client"
    )
    url = reverse("close-connection", args=[peer.stats.id])
    operator = browser_of("operator")
    assert "is disconnected" in operator.get(url).content.decode()
    assert browser_of("support").post(url).status_code == 403
    assert operator.post(url).status_code == 302
    wait_until(lambda: not client.is_connected(), "the client to be cut off")
    entry = AuditEntry.objects.get(action="close connection")
    assert (entry.outcome, entry.before["user"]) == ("done", "ada")
    assert operator.get(url).status_code == 404


def test_a_scope_that_holds_only_a_part_of_what_a_client_uses_does_not_close_it(browser_of, console):
    client = console.client()
    client.send("/queue/mine.one", "x")
    client.send("/queue/theirs.one", "x")
    peer = wait_until(
        lambda: next((each for each in current_connections() if len(each.details.producing_to) == 2), None),
        "the client",
    )
    url = reverse("close-connection", args=[peer.stats.id])
    assert browser_of("operator", "mine.>").post(url).status_code == 403
    assert client.is_connected()


def test_a_user_whose_scope_holds_nothing_is_not_told_that_there_is_nothing(browser_of, console, wait_for_mirror):
    client = console.client()
    client.subscribe("/topic/theirs.news", "t")
    client.send("/queue/theirs.one", "x", persistent="true")
    wait_for_mirror("theirs.one", 1)
    wait_until(lambda: any(each.destinations for each in current_connections()), "the connection")
    wait_until(lambda: Destination.topic("theirs.news") in mirror().current().stats, "the topic")
    assert gateway().definitions().virtual_destinations, "VirtualTopic.> is there by default"
    limited = browser_of("support", "nothing.>")
    for page, what in {
        "queues": "queues", "topics": "topics", "connections": "connections", "subscribers": "subscriptions",
        "routing": "routing definitions",
    }.items():  # fmt: skip
        text = limited.get(reverse(page)).content.decode()
        assert f"No visible {what}" in text, page
        assert "hidden: your permissions are for other" in text
        assert "theirs" not in text
        for claim in ("Connect any STOMP client", "has been removed", "yet</h2>"):
            assert claim not in text


@pytest.fixture
def offline(console):
    """A durable subscription that nobody consumes, with two messages."""
    import stomp

    client = stomp.Connection12([("127.0.0.1", console.port)])
    client.connect("ada", "lovelace", wait=True, headers={"client-id": "shop"})
    client.subscribe("/topic/prices", "1", headers={"activemq.subscriptionName": "all prices", "receipt": "r"})
    log = Destination(DestinationKind.SUBSCRIPTION, "shop:all%20prices")
    wait_until(
        lambda: (known := mirror().picture.subscriptions.get(log)) and known.ConsumerCount, "it and its consumer"
    )
    client.disconnect()
    wait_until(lambda: mirror().picture.subscriptions[log].ConsumerCount == 0, "nobody to consume it")
    console.send("/topic/prices", "1", "2")
    wait_until(lambda: mirror().picture.subscriptions[log].QueueSize == 2, "the messages")
    return log


def test_a_queue_beside_topics_of_one_subscription_leads_to_the_page_of_a_queue(admin, console):
    import stomp

    client = stomp.Connection12([("127.0.0.1", console.port)])
    client.connect("ada", "lovelace", wait=True)
    client.subscribe("/topic/mixed.t,/queue/mixed.q", "1")

    def page() -> str:
        return admin.get(reverse("subscribers"), {"q": "mixed"}).content.decode()

    wait_until(lambda: "mixed.t" in page(), "the subscription")
    found = page()
    client.disconnect()
    assert 'href="/topics/mixed.t/"' in found
    assert 'href="/queues/mixed.q/"' in found
    assert "/topics/mixed.q" not in found


def test_a_durable_subscription_that_is_offline_is_listed_with_what_waits_and_deleted_by_its_name(browser_of, offline):
    operator = browser_of("operator")
    page = operator.get(reverse("subscribers"), {"show": "offline"})
    [row] = page.context["page"].rows
    assert (row.client_id, row.name, row.state, row.pending) == ("shop", "all prices", "offline", 2)
    assert 0 <= row.lag < 60
    assert row.since_ms
    url = reverse("delete-subscription", args=[offline.name])
    assert operator.post(url, {"name": "other"}).status_code == 400
    assert operator.post(url, {"name": "all prices"}).status_code == 302
    assert offline not in mirror().picture.subscriptions
    assert AuditEntry.objects.get(action="delete subscription").after == {"removed": 2}


def test_subscribers_and_connections_have_stars_and_views_as_queues_have(browser_of, offline, console):
    viewer, other = browser_of("viewer"), browser_of("support")
    console.client()
    client = wait_until(current_connections, "the client")[0].subject
    for page, subject, name in (
        ("subscribers", str(offline), lambda row: row.log),
        ("connections", client, lambda row: row.subject),
    ):
        found = viewer.post(reverse("star"), {"subject": subject})["Location"]
        assert {name(row) for row in viewer.get(found).context["page"].rows} == {subject}
        assert 'aria-pressed="true"' in viewer.get(found).content.decode()
        assert not other.get(found).context["page"].rows
        query = {"name": "mine", "query": "?sort=-flight&show=starred&page=7&x=y"}
        saved = viewer.post(reverse("save-view", args=[page]), query)["Location"]
        assert saved == f"{reverse(page)}?show=starred&sort=-flight"
        assert [(view.name, is_on) for view, is_on in viewer.get(saved).context["menu"]["views"]] == [("mine", True)]
    assert viewer.post(reverse("save-view", args=["jobs"]), {"name": "mine"}).status_code == 404


@pytest.mark.parametrize("subject", ["", "queue://", "jobs://1", "orders", f"client://{'x' * 2000}"])
def test_what_has_no_list_to_be_found_in_is_not_starred(browser_of, subject):
    assert browser_of("viewer").post(reverse("star"), {"subject": subject}).status_code == 409


def test_what_is_kept_is_browsed_by_who_may_browse_its_topics_and_read_as_there(browser_of, offline, console):
    console.send("/topic/prices", "secret body", region="eu")
    wait_until(lambda: mirror().picture.subscriptions[offline].QueueSize >= 3, "the third message")
    url, operator = reverse("subscription-messages", args=[offline.name]), browser_of("operator")
    rows = operator.get(url).context["rows"]
    assert len(rows) >= 3
    [row] = operator.get(url, {"selector": "region = 'eu'"}).context["rows"]
    assert "secret body" in operator.get(url, {"seq": row.message.seq}).content.decode()
    assert operator.get(url, {"selector": "region ="}).status_code == 200
    support, guest = browser_of("support"), browser_of("operator", "other.>", name="guest")
    assert "secret body" not in support.get(url, {"seq": row.message.seq}).content.decode()
    assert guest.get(url).status_code == 403
    assert operator.get(reverse("subscription-messages", args=["no:body"])).status_code == 404
    api = f"/api/v1/subscriptions/{quote(offline.name)}/messages"
    [told] = operator.get(api, {"selector": "region = 'eu'"}).json()["items"]
    assert (told["body"], told["seq"]) == ("secret body", row.message.seq)
    assert "secret body" not in support.get(api).content.decode()
    assert guest.get(api).status_code == 403
    assert operator.get("/api/v1/subscriptions/no:body/messages").status_code == 404


def test_alerts_tell_of_its_backlog_and_of_how_long_it_is_offline(browser_of, offline):
    for metric, threshold in (("backlog", 1), ("offline", 3600)):
        AlertRule.objects.create(name=metric, metric=metric, threshold=threshold, pattern="prices", author="ada")
    evaluate(mirror().picture, time.time())
    assert [each.rule_name for each in AlertFiring.objects.all()] == ["backlog"]
    evaluate(mirror().picture, time.time() + 7200)
    assert [each.sentence for each in AlertFiring.objects.filter(rule_name="offline")] == [
        f"{offline}: time offline is 2 h, above 1 h"
    ]
    active_alerts.invalidate()
    firings = {name: browser_of("viewer", scope, name=name) for name, scope in (("in", "prices"), ("out", "news.>"))}
    counts = [each.get(reverse("queues")).context["bell"]["count"] for each in firings.values()]
    active_alerts.invalidate()
    assert counts == ["2", ""], "who sees one of its topics may know of it"


# -- pure


def peer(id: str, *destinations: str, since: int = 1, producing: tuple[str, ...] = (), **more) -> ConnectionView:
    consumer = ConsumerStats(id, "1", list(destinations), prefetch=10, **more)
    full = ConnectionDetails(
        ConnectionStats(id, id, "127.0.0.1:1", "ada", "1.2", since).to_json(),
        [{name: getattr(consumer, name) for name in consumer.__dataclass_fields__}] if destinations else [],
        list(producing),
    )
    return ConnectionView.from_stats(full)


def test_connections_of_all_nodes_are_in_the_order_of_their_start():
    def node(*ids: tuple[str, int]) -> NodeStatus:
        stats = [ConnectionStats(id, id, "127.0.0.1:1", "ada", "1.2", since).to_json() for id, since in ids]
        return NodeStatus("n", "b", 0, 0, connections=stats)

    picture = BrokerSnapshot(nodes=(node(("late", 9), ("early", 1)), node(("other", 10))))
    assert [each.stats.id for each in connection_rows(picture)] == ["early", "late", "other"]


def test_who_subscribed_to_a_pattern_receives_from_what_it_covers():
    peers = [peer("one", "queue://a.b"), peer("wide", "queue://a.>"), peer("topic", "topic://a.b")]
    assert [each.stats.id for each, _ in consumers_of(peers, Destination.queue("a.b"))] == ["one", "wide"]
    assert [each.stats.id for each, _ in consumers_of(peers, Destination.topic("a.b"))] == ["topic"]


def test_a_scope_shows_only_who_uses_what_is_in_it():
    peers = [peer("in", "queue://a.b"), peer("sends", producing=("queue://a.c",)), peer("out", "queue://z")]
    assert [each.stats.id for each in visible_connections(peers, lambda one: one.name.startswith("a."))] == [
        "in",
        "sends",
    ]


def test_subscribers_are_durable_active_durable_offline_and_non_durable():
    away, here = (Destination(DestinationKind.SUBSCRIPTION, name) for name in ("c:away", "c:here"))
    kept = {
        log: SubscriptionIdentity("c", log.name.partition(":")[2], (Destination.topic("t"),)) for log in (away, here)
    }
    numbers = {away: DestinationStats(away, QueueSize=4), here: DestinationStats(here, ConsumerCount=1)}
    peers = [peer("plain", "topic://t", pending=2), peer("named", "topic://t", log=str(here)), peer("q", "queue://t")]
    found = build_subscriptions(peers, numbers, kept, {str(away): 5_000}, {away: 7_000})
    assert {(each.name, each.state, each.pending) for each in found} == {
        ("1", "plain", 2),
        ("away", "offline", 4),
        ("here", "active", 0),
    }
    assert next(each for each in found if each.name == "away").oldest_ms == 7_000


def test_a_table_is_paged_sorted_searched_and_chosen_by_its_url():
    peers = [peer(f"c{number:03}", "queue://a", since=number, slow=False) for number in range(120)]
    page = CONNECTION_TABLE.page(peers, {"sort": "-client", "page": "3"})
    assert [each.stats.id for each in page.rows] == [f"c{number:03}" for number in range(19, -1, -1)]
    assert page.url(page=2) == "?sort=-client&page=2"
    assert CONNECTION_TABLE.page(peers, {"q": "C11"}).total == 10
    assert CONNECTION_TABLE.page(peers, {"show": "slow"}).total == 0
    assert CONNECTION_TABLE.page(peers, {"sort": "nonsense", "page": "99", "show": "x"}).number == 3
    assert SUBSCRIPTION_TABLE.page([], {}).existing == 0


def test_a_star_on_a_client_holds_whatever_the_id_of_its_connection():
    peers = [peer("first", "queue://a"), peer("second", "queue://a")]
    page = CONNECTION_TABLE.page(peers, {"show": "starred"}, frozenset({"client://second", "client://gone"}))
    assert [(row.stats.id, subject, is_starred) for row, subject, is_starred in page.marked] == [
        ("second", "client://second", True)
    ]
    assert [(label, count) for label, count, _, is_on in page.chips if is_on] == [("Favorites", 1)]


def test_nobody_connected_leads_to_a_way_to_connect(browser_of, console, settings):
    wait_until(lambda: not current_connections(), "nobody is connected")
    text = browser_of("viewer").get(reverse("connections")).content.decode()
    assert f'stomp.Connection12([("127.0.0.1", {settings.SLUICE.client_ports["stomp"]})])' in text
    assert 'data-copy="snippet"' in text


def test_a_jms_client_shows_its_sessions_producers_and_consumers(browser_of, console, admin):
    with OpenWireSocket(console.openwire_port) as client:
        client.agree(WireFormatOptions())
        client.connect(
            connection_id=ConnectionId("ID:shop-1:1"), client_id="shop", user_name="ada", password="lovelace"
        )
        orders, prices = OpenWireDestination(t.QUEUE, "jms.orders"), OpenWireDestination(t.TOPIC, "jms.prices")
        for session, destination in ((1, orders), (3, prices)):
            id = ConsumerId("ID:shop-1:1", session, 1)
            client.ask(ConsumerInfo(consumer_id=id, destination=destination, prefetch_size=10))
        producer = ProducerId("ID:shop-1:1", 1, 2)
        client.ask(ProducerInfo(producer_id=producer, destination=OpenWireDestination(t.QUEUE, "jms.bills")))
        view = wait_until(
            lambda: next((each for each in current_connections() if each.details.producers), None), "the client"
        )
        assert (view.protocol, view.name) == ("OpenWire 12", "shop")
        assert view.jms.count == 3
        assert [(session, each.destinations) for session, each in view.jms.consumers] == [
            ("1", ["queue://jms.orders"]), ("3", ["topic://jms.prices"]),
        ]  # fmt: skip
        assert view.jms.producers == [("2", [Destination.queue("jms.bills")])]
        page = browser_of("viewer").get(reverse("connection", args=[view.stats.id])).content.decode()
        assert "OpenWire 12" in page
        assert page.count('data-label="Session"') == 3
        mirrored = wait_until(
            lambda: [each for each in admin.get("/api/v1/connections").json()["items"] if each["client_id"] == "shop"],
            "it in the mirror",
        )
        assert mirrored[0]["protocol"] == "OpenWire 12"


def test_subscriptions_of_a_jms_client_are_named_by_session_and_those_of_its_library_left_out():
    ids = [f"ID:shop-1:1:{session}:1" for session in ("-1", "2")]
    consumers = tuple(ConsumerStats("c", id, ["topic://prices"]) for id in ids)
    for version, names in (("OpenWire 12", ["session 2, consumer 1"]), ("1.2", ids)):
        stats = ConnectionStats("c", "shop", "127.0.0.1:1", "ada", version, 0)
        peer = ConnectionView(stats, ConnectionDetails(stats.to_json()), consumers)
        assert [each.name for each in build_subscriptions([peer], {}, {}, {}, {})] == names


def test_sessions_are_told_by_ids_and_those_of_the_library_stand_last():
    consumers = [ConsumerStats("c", f"ID:a-1:1:{number}:1", ["topic://a"]) for number in ("-1", "10", "2")]
    producers = [{"id": "ID:a-1:1:2:1", "destinations": ["queue://a"]}]
    found = JmsSessions.of(producers, ["queue://a", "queue://b"], consumers)
    assert [session for session, _ in found.consumers] == ["2", "10", ""]
    assert found.producers == [("2", [Destination.queue("a")]), ("", [Destination.queue("b")])]
    assert found.count == 2
