"""Test the route preview, why a message does not reach a destination, and the selector tester."""

import json

import pytest
from django.urls import reverse

from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import compile_selector
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.routing.definitions.changes import DefinitionChange
from console.routing.drafts.draft_service import create_draft
from console.routing.preview.sample_message import SampleMessage, read_headers

Q, T = Destination.queue, Destination.topic
SPLIT = CompositeDestination(
    Q("orders"),
    (ForwardTarget(T("VirtualTopic.Eu"), "region = 'eu' AND amount > 100"), ForwardTarget(Q("rest"))),
    forward_only=True,
)


@pytest.fixture
def defined(console):
    """A composite into a virtual topic with one consumer queue."""
    current = gateway().definitions()
    gateway().define(Definitions(current.version, (VirtualTopic("VirtualTopic.>"), SPLIT)), "test", "start over")
    console.follows(gateway().definitions().version)
    console.send("/queue/Consumer.A.VirtualTopic.Eu", "<order total='5'/>", region="us", amount="7")
    mirror().wait_until(lambda picture: Q("Consumer.A.VirtualTopic.Eu") in picture.stats)
    return console


def ask(client, **form):
    return client.post(reverse("route-preview"), form)


def words(response) -> list[tuple[str, str]]:
    return [(each.target.name, each.result) for each in response.context["preview"].steps]


def test_every_hop_is_told_with_each_clause(admin, defined):
    response = ask(admin, destination="queue://orders", headers="region: eu\namount: 250")
    assert words(response) == [
        ("VirtualTopic.Eu", "forwarded"),
        ("Consumer.A.VirtualTopic.Eu", "copied"),
        ("VirtualTopic.Eu", "delivered to the topic's subscribers"),
        ("rest", "forwarded"),
        ("orders", "keeps no local copy"),
    ]
    found = response.context["preview"]
    assert [part.reason for part in found.steps[0].clause.clauses] == ["region is 'eu'", "amount is '250'"]
    places = {each.destination.name: (each.exists, each.sentence) for each in found.targets}
    assert places["rest"] == (False, "would be created")
    assert places["Consumer.A.VirtualTopic.Eu"] == (True, "no consumers, message is stored")
    text = response.content.decode()
    assert "would be created" in text
    assert "?destination=queue%3A%2F%2Forders" in text, "it can be linked to"


def test_false_and_unknown_are_told_apart(admin, defined):
    assert words(ask(admin, destination="orders", headers="region: us\namount: 250"))[0][1].endswith("is false")
    response = ask(admin, destination="orders", headers="region: eu")
    assert words(response)[0][1].endswith("is unknown")
    assert "amount is missing" in response.content.decode()


WHY = [
    (
        "Consumer.A.VirtualTopic.Eu",
        "At orders, Composite queue orders: not forwarded: the selector is false: region is 'us'",
    ),
    ("elsewhere", "No definition copies or forwards to elsewhere"),
    ("orders", "keeps no local copy"),
    ("rest", "A copy is delivered to rest."),
    ("Consumer.B.VirtualTopic.Eu", "which does not receive this message"),
]


@pytest.mark.parametrize(("wanted", "reason"), WHY)
def test_why_it_does_not_come_to_a_queue_is_told(wanted, reason, admin, defined):
    response = ask(admin, destination="queue://orders", headers="region: us\namount: 1", why=wanted)
    assert any(reason in sentence for sentence in response.context["reasons"]), response.context["reasons"]


def test_a_queue_that_would_be_fed_but_is_not_there_is_told_so(admin, defined):
    response = ask(admin, destination="topic://VirtualTopic.Eu", why="Consumer.B.VirtualTopic.Eu")
    assert "Consumer.B.VirtualTopic.Eu does not exist. Its first consumer creates it" in response.context["reasons"][0]


def test_the_selector_of_a_subscription_is_shown_as_its_client_wrote_it(admin, defined):
    selector = "convert_string_expressions:n = '2'"
    subscription = SubscriptionIdentity("preview", "typed", (T("prices"),), selector)
    gateway().run(gateway().admin.create_subscription(subscription))
    message = {"destination": "topic://prices", "headers": {"n": "2"}}
    asked = json.dumps(message | {"types": {"n": "int"}})
    answer = admin.post("/api/v1/routing/preview", asked, content_type="application/json").json()
    assert [(each["selector"], each["outcome"]) for each in answer["steps"]] == [("n = '2'", True)]


def test_a_message_is_picked_from_a_queue(admin, defined, browser_of):
    queue = Q("Consumer.A.VirtualTopic.Eu")
    seq = gateway().browse(queue, 0, 1, None).messages[0].seq
    query = f"?queue={queue.name}&seq={seq}"
    response = admin.get(reverse("route-preview") + query)
    assert response.context["sample"].values["region"] == "us"
    assert response.context["start"] == queue
    assert browser_of("viewer").get(reverse("route-preview") + query).status_code == 403
    support = browser_of("support").get(reverse("route-preview") + query)
    assert "total" not in support.context["sample"].body
    assert admin.get(reverse("route-preview") + f"?queue={queue.name}&seq=99999999").status_code == 200


def test_a_draft_is_previewed_before_it_is_in_force(admin, defined):
    change = DefinitionChange(None, CompositeDestination(Q("later"), (ForwardTarget(Q("there")),)))
    draft = create_draft("admin", "later", [change], gateway().definitions().version)
    assert ask(admin, destination="queue://later").context["preview"].steps == []
    response = ask(admin, destination="queue://later", draft=str(draft.pk))
    assert [each.destination.name for each in response.context["preview"].targets] == ["there"]
    assert gateway().definitions().virtual_destinations[-1] == SPLIT
    assert "later" in admin.get(reverse("routing") + f"?draft={draft.pk}").content.decode()


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"destination": "queue://a", "headers": "no header"}, "Line 1 is not a header"),
        ({"destination": "queue://a.>"}, "not to a pattern"),
        ({"destination": "queue://a::b::c"}, "there is one ::"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_the_reason(form, reason, admin, defined):
    response = ask(admin, **form)
    assert response.status_code == 400
    assert reason in response.content.decode()


def test_headers_are_read_from_lines():
    assert read_headers("a: 1\n\nb=x:y\nc: a=b\na: 2") == {"a": "1", "b": "x:y", "c": "a=b"}


# -- the tester


def test_a_selector_is_tested_clause_by_clause(admin, defined):
    url = reverse("selector-tester")
    response = admin.post(url, {"selector": "region = 'eu' AND amount > 5", "headers": "region: eu"})
    assert response.context["clause"].value is None
    assert "amount is missing" in response.content.decode()
    wrong = admin.post(url, {"selector": "region = ", "headers": ""}).content.decode()
    assert "At position 9: " in wrong
    assert "region =<mark> </mark>" in wrong
    body = {"selector": "XPATH '//order'", "headers": "", "body": "<order/>"}
    assert admin.post(url, body).context["clause"].value is True
    strict = {"selector": "n = 5", "headers": "n: 5", "strict": "on"}
    assert admin.post(url, strict).context["clause"].value is False


def test_a_preview_tells_nothing_of_what_lies_beyond_ones_scope(defined, browser_of):
    guest = browser_of("viewer", "elsewhere.>")
    page = guest.get(reverse("route-preview"))
    assert all("elsewhere" in name for name in page.context["names"])
    assert guest.post(reverse("route-preview"), {"destination": "/queue/salaries"}).status_code == 403


def test_the_tester_of_a_leg_begins_with_the_last_message_of_its_source(admin, defined, browser_of):
    url = reverse("selector-tester") + "?near=topic://VirtualTopic.Eu&selector=amount > 5"
    response = admin.get(url, headers={"HX-Request": "true"})
    assert response.context["sample"].values["amount"] == "7"
    assert response.context["clause"].value is True
    assert "<html" not in response.content.decode()
    viewer = browser_of("viewer").get(url, headers={"HX-Request": "true"})
    assert viewer.context["sample"].values == {}, "who may not browse gets no message"
    scoped = browser_of("support", "other.>", name="scoped").get(url, headers={"HX-Request": "true"})
    assert scoped.context["sample"].values == {}


# -- messages of JMS clients


def test_properties_with_a_type_are_those_of_a_jms_message():
    read = read_headers("type: order\ntype (long): 77\namount (int): +5\nregion (string): 5\nweird (x): 1")
    assert read == {
        "type": "order", "sluice-property.type": "77", "amount": "5", "region": "5", "weird (x)": "1",
        JMS_HEADER: "text type=l amount=i",
    }  # fmt: skip
    with pytest.raises(ValueError, match="Line 2: property 'n': 'x' is not an int"):
        read_headers("a: 1\nn (int): x")


def test_a_copy_of_a_jms_message_shows_types_and_no_line_of_the_broker_and_is_read_as_it_was():
    headers = {"type": "order", "JMSXGroupSeq": "3", "sluice-property.type": "77", "amount": "5", "region": "5",
               JMS_HEADER: "map type=l amount=i any=o", "sluice-jms-transaction": "t", "any": "00"}  # fmt: skip
    sample = SampleMessage.of(BrowsedMessage(1, "ID:1", "/queue/a", None, headers, b"\x00", 1))
    assert sample.headers == "type (long): 77\namount (int): 5\nregion (string): 5\ntype: order\nJMSXGroupSeq: 3"
    assert sample.body == ""
    again = read_headers(sample.headers)
    matches = compile_selector("amount > 4 AND region = 5 AND type = 77").matches
    assert matches(again) is matches(headers) is False  # text is not compared with numbers
    matches = compile_selector("amount > 4 AND region = '5' AND type = 77").matches
    assert matches(again) is matches(headers) is True


def test_the_api_tests_selectors_on_typed_properties(admin, console):
    asked = {"selector": "amount > 4", "headers": {"amount": "5"}}
    for types, value in (({"amount": "int"}, True), ({"amount": "string"}, False)):
        document = json.dumps({**asked, "types": types})
        answer = admin.post("/api/v1/routing/selector", document, content_type="application/json")
        assert answer.json()["value"] is value, answer.content
    wrong = json.dumps({**asked, "types": {"n": "int"}})
    answer = admin.post("/api/v1/routing/selector", wrong, content_type="application/json")
    assert "'n' is not one of the headers" in answer.json()["detail"]
