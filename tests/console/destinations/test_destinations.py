"""Test lists of queues and topics, their pages, and the operations of an admin."""

import json
from dataclasses import replace

import pytest
from django.urls import reverse

from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.waiting import wait_until


@pytest.fixture
def shop(console, wait_for_mirror):
    """Three queues with one, two and three messages."""
    for count, name in enumerate(("shop.a", "shop.b", "shop.c"), start=1):
        if not gateway().run(exists(name)):
            console.send(f"/queue/{name}", *"x" * count)
        wait_for_mirror(name, count)
    return console


async def exists(name: str) -> bool:
    _, stats, _ = await gateway().admin.stats()
    return any(each.destination == Destination.queue(name) for each in stats)


def names_on(response) -> list[str]:
    return [row.destination.name for row in response.context["page"].rows]


def test_the_list_shows_jmx_names_and_numbers(browser_of, shop):
    text = browser_of("viewer").get(reverse("queues")).content.decode()
    for name in ("QueueSize", "EnqueueCount", "DequeueCount", "InFlightCount", "ConsumerCount", "DispatchCount"):
        assert name in text
    assert 'data-cell="QueueSize">3</td>' in text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?q=shop", ["shop.a", "shop.b", "shop.c"]),
        ("?q=SHOP.B", ["shop.b"]),
        ("?q=shop&sort=-QueueSize", ["shop.c", "shop.b", "shop.a"]),
        ("?q=shop&sort=-name", ["shop.c", "shop.b", "shop.a"]),
        ("?q=shop&show=dlq", []),
        ("?q=shop&sort=Nonsense&page=x&size=7", ["shop.a", "shop.b", "shop.c"]),
    ],
)
def test_the_server_filters_and_sorts(query, expected, admin, shop):
    assert names_on(admin.get(reverse("queues") + query)) == expected


def test_the_filter_gets_the_list_alone(admin, shop):
    response = admin.get(reverse("queues") + "?q=shop", headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert names_on(response) == ["shop.a", "shop.b", "shop.c"]


def test_nothing_that_matches_is_told_from_nothing_at_all(admin, shop):
    assert "No matching queues" in admin.get(reverse("queues") + "?q=zzz").content.decode()


def test_topics_have_a_list_of_their_own(admin, console):
    console.send("/topic/prices", "1")
    wait_until(lambda: "prices" in names_on(admin.get(reverse("topics"))), "the topic in the list")


def test_finding_a_full_name_goes_straight_there(admin, shop):
    response = admin.get(reverse("find") + "?q=shop.b")
    assert response["Location"] == reverse("queue", kwargs={"name": "shop.b"})


def test_finding_a_part_of_several_names_lists_them(admin, shop):
    assert [each.name for each in admin.get(reverse("find") + "?q=shop").context["found"]] == [
        "shop.a",
        "shop.b",
        "shop.c",
    ]


def test_a_queue_page_shows_its_consumers_and_what_feeds_it(admin, console):
    client = console.client()
    client.subscribe("/queue/Consumer.A.VirtualTopic.Fed", "1")
    url = reverse("queue", kwargs={"name": "Consumer.A.VirtualTopic.Fed"})
    response = wait_until(
        lambda: (got := admin.get(url, {"tab": "consumers"})).status_code == 200 and got.context["consumers"] and got,
        "a consumer",
    )
    peer, *_ = response.context["consumers"][0]
    assert peer.stats.user == "ada"
    feeders = admin.get(url, {"tab": "routing"}).context["feeders"]
    assert [feed.source for feed in feeders] == [Destination.topic("VirtualTopic.Fed")]


@pytest.mark.parametrize("tab", ["", "consumers", "producers", "routing", "policy", "history", "nonsense"])
def test_every_tab_of_a_queue_and_of_a_topic_can_be_seen(browser_of, shop, tab):
    viewer = browser_of("viewer")
    shop.send("/topic/shop.news", "x")
    topic = reverse("topic", args=["shop.news"])
    wait_until(lambda: viewer.get(topic).status_code == 200, "the topic")
    for url in (reverse("queue", args=["shop.a"]), topic):
        assert viewer.get(url, {"tab": tab}).status_code == 200


def test_the_policy_tab_says_what_the_most_specific_entry_sets(browser_of, shop):
    from brokerapp.model.definitions import PolicyEntry

    definitions = gateway().definitions()
    entries = (
        PolicyEntry(Destination.queue("shop.>"), queue_prefetch=5),
        PolicyEntry(Destination.queue("shop.a"), queue_prefetch=7, prioritized_messages=True),
    )
    before = gateway().define(replace(definitions, policies=entries), "test", "policies")
    text = browser_of("viewer").get(reverse("queue", args=["shop.a"]), {"tab": "policy"}).content.decode()
    gateway().define(replace(before, policies=definitions.policies), "test", "as before")
    assert "queue://shop.a" in text
    assert "queuePrefetch" in text
    assert ">7<" in text
    assert "prioritizedMessages" in text


# -- what a user keeps of a list, and what is done to several at once


def test_a_star_is_mine_alone_and_brings_its_chip(browser_of, shop):
    mine, other = browser_of("viewer"), browser_of("support")
    star = reverse("star")
    assert mine.post(star, {"subject": "queue://shop.b"}).status_code == 302
    assert names_on(mine.get(reverse("queues"), {"show": "starred"})) == ["shop.b"]
    assert names_on(other.get(reverse("queues"), {"show": "starred"})) == []
    unstarred = mine.post(star, {"subject": "queue://shop.b"}, headers={"HX-Request": "true"})
    assert json.loads(unstarred["HX-Trigger"]) == {"starred": {"by": -1}}  # by which the chip counts on
    assert names_on(mine.get(reverse("queues"), {"show": "starred"})) == []


def test_a_saved_view_leads_back_to_what_it_showed(browser_of, shop):
    viewer = browser_of("viewer")
    saved = viewer.post(
        reverse("save-view", args=["queues"]), {"name": "full shop", "query": "?q=shop&sort=-QueueSize"}
    )
    assert saved["Location"] == reverse("queues") + "?q=shop&sort=-QueueSize"
    [(view, is_on)] = viewer.get(saved["Location"]).context["menu"]["views"]
    assert (view.name, is_on) == ("full shop", True)
    assert not browser_of("support").get(reverse("queues")).context["menu"]["views"]
    viewer.post(reverse("forget-view", args=[view.pk]))
    assert not viewer.get(reverse("queues")).context["menu"]["views"]


def test_what_unseen_queues_hold_is_not_told_before_several_are_purged(browser_of, shop):
    scoped = browser_of("operator", "shop.b")
    asked = scoped.post(reverse("queues-bulk"), {"action": "purge", "name": ["shop.a", "shop.b"]})
    assert asked.context["held"] == 2


def test_several_are_paused_and_resumed_at_once_each_with_its_entry(browser_of, shop):
    operator = browser_of("operator")
    names = ["shop.a", "shop.b"]
    for action, paused in (("pause", True), ("resume", False)):
        text = operator.post(reverse("queues-bulk"), {"action": action, "name": names}, follow=True).content.decode()
        assert f"2 queues {action}d." in text
        shown = operator.get(reverse("queues"), {"show": "paused"})
        assert (names_on(shown) == names) is paused
        assert AuditEntry.objects.filter(action=action, outcome="done").count() == 2


def test_what_is_gone_for_good_is_done_after_its_count_was_typed(browser_of, shop):
    shop.send("/queue/bulk.a", "1", "2")
    shop.send("/queue/bulk.b", "1")
    operator = browser_of("operator")
    wait_until(lambda: names_on(operator.get(reverse("queues"), {"q": "bulk."})) == ["bulk.a", "bulk.b"], "both queues")
    asked = {"action": "delete", "name": ["bulk.a", "bulk.b"]}
    assert "Type the number of queues to confirm" in operator.post(reverse("queues-bulk"), asked).content.decode()
    assert (
        "The number does not match 2" in operator.post(reverse("queues-bulk"), {**asked, "typed": "3"}).content.decode()
    )
    assert (
        "2 queues deleted."
        in operator.post(reverse("queues-bulk"), {**asked, "typed": "2"}, follow=True).content.decode()
    )
    assert names_on(operator.get(reverse("queues"), {"q": "bulk."})) == []


def test_of_several_only_those_in_scope_are_touched_and_the_others_are_named(browser_of, shop):
    operator = browser_of("operator", "shop.a")
    asked = {"action": "pause", "name": ["shop.a", "shop.b"]}
    text = operator.post(reverse("queues-bulk"), asked, follow=True).content.decode()
    assert "1 queue paused." in text
    assert "shop.b: Requires permission: pause and resume queues" in text
    assert AuditEntry.objects.filter(outcome="denied", object="queue://shop.b").exists()
    gateway().pause(Destination.queue("shop.a"), False)


def test_a_name_that_does_not_exist_is_not_found(admin, console):
    assert admin.get(reverse("queue", kwargs={"name": "never.was"})).status_code == 404
    assert admin.get(reverse("topic", kwargs={"name": "never.was"})).status_code == 404


def test_an_admin_creates_a_queue(admin, console):
    assert admin.post(reverse("new-queue"), {"name": " made.here "})["Location"] == reverse("queues")
    assert "made.here" in names_on(admin.get(reverse("queues")))
    assert AuditEntry.objects.get().object == "queue://made.here"
    again = admin.post(reverse("new-queue"), {"name": "made.here"}, follow=True).content.decode()
    assert "Queue made.here already exists." in again
    assert not gateway().create(Destination.queue("made.here"))


@pytest.mark.parametrize("name", ["a//", "a b", "ä", "a:b", "1"])
def test_any_other_text_is_a_name_as_in_activemq(name, admin, console, wait_for_mirror):
    assert admin.post(reverse("send"), {"destination": name, "body": "x", "persistent": "true"}).status_code == 200
    wait_for_mirror(name, 1)
    assert admin.get(reverse("messages", kwargs={"name": name})).context["page"].scanned == 1
    gateway().delete(Destination.queue(name))


WRONG_NAMES = [
    ("", "give it a name"), ("orders.>", "pattern"), ("*", "pattern"), ("a,b", "comma"), ("a?x=1", "options"),
    ("/queue/a", "give the name alone"), ("topic://a", "give the name alone"), ("a\x07", "control characters"),
    ("a" * 1025, "1024 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reason"), WRONG_NAMES)
def test_a_name_that_cannot_be_is_refused_with_the_reason(name, reason, admin, console):
    response = admin.post(reverse("new-queue"), {"name": name})
    assert response.status_code == 400
    assert reason in response.content.decode()


def test_purging_needs_the_name_typed(admin, console, wait_for_mirror):
    console.send("/queue/to.purge", "1", "2")
    wait_for_mirror("to.purge", 2)
    url = reverse("purge", kwargs={"name": "to.purge"})
    assert "Purge 2 messages" in admin.get(url).content.decode()
    assert admin.post(url, {"name": "to.purg"}).status_code == 400
    assert admin.post(url, {"name": "to.purge"})["Location"] == reverse("queue", kwargs={"name": "to.purge"})
    assert gateway().browse(Destination.queue("to.purge"), 0, 10, None).messages == []
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.before, entry.after) == ("purge", {"QueueSize": 2}, {"removed": 2})


def test_the_way_to_a_queue_leads_through_what_its_name_shares_with_others(admin, console, wait_for_mirror):
    console.send("/queue/shop.orders.eu", "1")
    wait_for_mirror("shop.orders.eu", 1)
    steps = (">Queues</a>", '/queues/?q=shop.">shop</a>', '/queues/?q=shop.orders.">orders</a>')
    page = admin.get("/queues/shop.orders.eu/").content.decode()
    assert all(each in page for each in steps)
    below = admin.get("/queues/shop.orders.eu/messages/").content.decode()
    assert all(each in below for each in (*steps, '/queues/shop.orders.eu/">eu</a>'))


def test_a_queue_is_deleted_after_its_name_was_typed(admin, console, wait_for_mirror):
    console.send("/queue/to.delete", "1")
    wait_for_mirror("to.delete", 1)
    admin.post(reverse("delete-queue", kwargs={"name": "to.delete"}), {"name": "to.delete"})
    assert "to.delete" not in names_on(admin.get(reverse("queues")))


def test_a_queue_with_a_consumer_stays_and_the_refusal_is_recorded(admin, console):
    console.client().subscribe("/queue/busy", "1")
    wait_until(lambda: gateway().run(exists("busy")), "the queue")
    response = admin.post(reverse("delete-queue", kwargs={"name": "busy"}), {"name": "busy"})
    assert response.status_code == 409
    assert AuditEntry.objects.get().outcome == "refused"


def test_a_queue_is_paused_and_resumed_by_who_may(browser_of, admin, shop):
    pausing, resuming = reverse("pause-queue", args=["shop.a"]), reverse("resume-queue", args=["shop.a"])
    assert browser_of("viewer").post(pausing).status_code == 403
    assert "is paused" in admin.post(pausing, follow=True).content.decode()
    assert "Resume" in admin.get(reverse("queue", args=["shop.a"])).content.decode()
    assert "resumed" in admin.post(resuming, follow=True).content.decode()
    assert AuditEntry.objects.filter(action="pause").exists()


def test_remembered_selectors_are_shown_and_forgotten(admin, shop, monkeypatch):
    remembered = {"colour = 'red'": 1_700_000_000_000}
    monkeypatch.setattr(type(gateway()), "selectors_of", lambda self, queue: remembered)
    page = admin.get(reverse("queue", args=["shop.a"]), {"tab": "routing"}).content.decode()
    assert "colour = &#x27;red&#x27;" in page
    answer = admin.post(reverse("delete-selector", args=["shop.a"]), {"selector": "colour = 'red'"}, follow=True)
    assert "already removed" in answer.content.decode()


#: Names that pages and operations have in their addresses, too.
SHADOWED = (
    "x/messages",
    "a/b/purge",
    "messages/1/body",
    "x/delete",
    "x/",
    "/x",
    "//",
    ".",
    "..",
    "new",
    "bulk",
    "a/../b",
)


def test_an_address_with_bare_slashes_in_a_name_leads_to_the_page_of_that_name(admin, console):
    for old, new in (
        ("/queues/in/eu/", "/queues/in~1eu/"),
        ("/queues/in/eu/messages/?end=1", "/queues/in~1eu/messages/?end=1"),
        ("/queues/in/eu/de/messages/7/", "/queues/in~1eu~1de/messages/7/"),
        ("/topics/in/%C3%A9%3F/", "/topics/in~1%C3%A9%3F/"),
    ):
        answer = admin.get(old)
        assert (answer.status_code, answer["Location"]) == (302, new)
    assert admin.post("/queues/in/eu/purge").status_code == 404, "nothing is done by an old address"
    assert admin.get("/queues/in/eu/nothing").status_code == 404
    assert admin.get("/nothing/in/eu/").status_code == 404
    assert admin.get(f"/queues/{'a/' * 500}").status_code == 404, "not tried for long"


def test_pages_and_operations_of_queues_called_like_pages_are_reached(admin, console):
    mirror()
    for name in SHADOWED:
        gateway().create(Destination.queue(name))
    wait_until(lambda: {*map(Destination.queue, SHADOWED)} <= mirror().current().stats.keys(), "all in the picture")
    for name in SHADOWED:
        queue, segment = Destination.queue(name), _segment(name)
        assert admin.get(reverse("messages", kwargs={"name": name})).context["destination"] == queue
        assert admin.get(reverse("queue", kwargs={"name": name})).context["destination"] == queue
        assert admin.get(f"/api/v1/queues/{segment}/messages").json()["items"] == []
        assert admin.get(f"/api/v1/destinations/queue/{segment}").json()["name"] == name
        assert admin.delete(f"/api/v1/destinations/queue/{segment}").status_code == 200
        with pytest.raises(DestinationNotFound):
            gateway().browse(queue, 0, 1, None)
    assert admin.get(reverse("new-queue")).status_code == 200


def _segment(name: str) -> str:
    """The name as it stands in addresses."""
    return reverse("queue", kwargs={"name": name}).removeprefix("/queues/").removesuffix("/")


@pytest.mark.parametrize("named", ["Orders.*", "y.>", "/topic/prices.>"])
def test_page_and_api_send_to_no_name_that_cannot_be_created(admin, console, named):
    page = admin.post(reverse("send"), {"destination": named, "body": "x"})
    assert page.status_code == 400
    assert "makes a pattern, which names many" in page.context["error"]
    wanted = {"destination": named, "body": "x"}
    program = caller(token_of("admin", "send"))
    answer = program.post("/api/v1/messages", wanted, content_type="application/json")
    assert answer.status_code == 422
    assert "makes a pattern, which names many" in answer.json()["detail"]
