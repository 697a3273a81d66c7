"""Definitions in the console: create, edit, delete, the checks beside the form, the picture, history."""

import itertools

import pytest
from django.urls import reverse

from brokerapp.definitions import Composite, Definitions, Leg, MirroredQueue, VirtualTopic
from brokerapp.destination import Destination
from brokerapp.snapshot import DestinationStats
from console.gateway import gateway
from console.models import AuditEntry
from console.routing.advice import advice
from console.routing.graph import feeders_of, picture_of
from console.routing.fragment import fragment_of

Q, T = Destination.queue, Destination.topic
LEGS = {"leg_kind": ["queue", "queue"], "leg_name": ["split.eu", "split.rest"], "leg_selector": ["region = 'eu'", ""]}


@pytest.fixture
def defined(console):
    """The definitions as a new broker has them, whatever other tests did."""
    current = gateway().definitions()
    gateway().define(Definitions(current.version, Definitions().virtual_destinations), "test", "start over")
    return console


def define(admin, name: str, **changes):
    data = {"name": name, "forward_only": "on", "copy_message": "on", **LEGS, **changes}
    return admin.post(reverse("new-definition", kwargs={"kind": "compositeQueue"}), data)


def defined_ids() -> list[str]:
    return [each.id for each in gateway().definitions().virtual_destinations]


def test_a_saved_composite_works_at_once(admin, defined, seen):
    assert define(admin, "split", comment="by region")["Location"] == reverse("routing")
    defined.follows(gateway().definitions().version)
    defined.send("/queue/split", "a", region="eu")
    defined.send("/queue/split", "b", region="us")
    seen("queue://split.eu", 1)
    seen("queue://split.rest", 2)
    assert "The queue is empty" in admin.get(reverse("messages", kwargs={"name": "split"})).content.decode()
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.object, entry.outcome) == ("define", "compositeQueue:split", "done")
    assert entry.after["legs"][0] == {"destination": "queue://split.eu", "selector": "region = 'eu'"}


def test_the_history_tells_who_and_what_for(admin, defined):
    define(admin, "told", comment="because we can")
    text = admin.get(reverse("routing-history")).content.decode()
    assert "because we can" in text
    assert "admin" in text


def test_every_option_of_a_virtual_topic_is_saved(admin, defined):
    options = ("selector_aware", "local", "concurrent_send", "transacted_send", "drop_on_resource_limit")
    data = {"name": "Events.>", "prefix": "App.*.", "postfix": ".q", **dict.fromkeys(options, "on")}
    admin.post(reverse("new-definition", kwargs={"kind": "virtualTopic"}), data)
    saved = gateway().definitions().virtual_destinations[-1]
    assert saved == VirtualTopic("Events.>", "App.*.", ".q", *itertools.repeat(True, 5), set_original_destination=False)


def test_a_form_starts_with_the_defaults_of_activemq(admin, defined):
    form = admin.get(reverse("new-definition", kwargs={"kind": "virtualTopic"})).context["form"]
    assert {field.name: default for field, default in form.options} == {
        "selector_aware": False, "local": False, "concurrent_send": False, "transacted_send": False,
        "drop_on_resource_limit": False, "set_original_destination": True,
    }  # fmt: skip


def test_a_mirror_is_defined_and_deleted(admin, defined):
    admin.post(reverse("new-definition", kwargs={"kind": "mirroredQueue"}), {"prefix": "Mirror.", "copy_message": "on"})
    assert defined_ids()[-1] == "mirroredQueue"
    admin.post(reverse("delete-definition") + "?id=mirroredQueue")
    assert "mirroredQueue" not in defined_ids()


def test_editing_replaces_the_definition_also_under_a_new_name(admin, defined):
    define(admin, "before")
    url = reverse("edit-definition") + "?id=compositeQueue:before"
    assert [row.name for row in admin.get(url).context["form"].legs] == ["split.eu", "split.rest"]
    admin.post(url, {"name": "after", "forward_only": "on", "copy_message": "on", **LEGS})
    assert defined_ids()[1:] == ["compositeQueue:after"]


REFUSED = [
    ("no name", {"name": ""}, "This field is required"),
    ("no target", {"leg_name": ["", ""], "leg_selector": ["", ""]}, "Add a target"),
    ("target without a name", {"leg_name": ["", "x"]}, "A target needs a name"),
    ("pattern as a target", {"leg_name": ["a.>", "x"]}, "not a pattern"),
    ("selector", {"leg_selector": ["region = ", ""]}, "At position 8"),
    ("a loop", {"leg_name": ["bad", "x"], "leg_selector": ["", ""]}, "round for ever"),
]


@pytest.mark.parametrize(("changes", "reason"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_what_cannot_work_is_refused_with_the_reason_and_nothing_changes(changes, reason, admin, defined):
    before = gateway().definitions()
    response = define(admin, **({"name": "bad"} | changes))
    assert response.status_code == 400
    assert reason in response.content.decode().replace("&#x27;", "'")
    assert gateway().definitions() == before


def test_a_name_that_is_taken_is_refused(admin, defined):
    define(admin, "taken")
    assert "defined already" in define(admin, "taken").content.decode()


def test_a_change_by_somebody_else_in_between_is_not_lost(admin, defined):
    define(admin, "mine")
    opened = gateway().definitions().version
    define(admin, "theirs")
    url = reverse("edit-definition") + "?id=compositeQueue:mine"
    response = admin.post(url, {"name": "mine", "version": str(opened), **LEGS})
    assert response.status_code == 400
    assert "read them again" in response.content.decode()
    assert gateway().definitions().version == opened + 1


def test_a_definition_that_is_gone_is_not_found(admin, defined):
    assert admin.get(reverse("edit-definition") + "?id=compositeQueue:never").status_code == 404
    assert admin.get(reverse("new-definition", kwargs={"kind": "nonsense"})).status_code == 404


def test_the_check_beside_the_form_shows_xml_and_advice(admin, defined):
    url = reverse("check-definition", kwargs={"kind": "compositeQueue"})
    text = admin.post(url, {"name": "orders", "forward_only": "on", **LEGS}).content.decode()
    assert "It can be saved" in text
    assert (
        "&lt;filteredDestination selector=&quot;region = &#x27;eu&#x27;&quot; queue=&quot;split.eu&quot;/&gt;" in text
    )
    assert "<html" not in text
    assert "orders" not in "".join(defined_ids())


def test_the_page_shows_list_and_picture(browser_of, admin, defined):
    define(admin, "shown")
    text = browser_of("viewer").get(reverse("routing")).content.decode()
    assert '<svg class="graph"' in text
    assert "split.eu" in text
    assert reverse("edit-definition") not in text


# -- the picture


def edges_of(definitions: Definitions, *existing: Destination) -> list[tuple[str, str, str]]:
    return sorted(
        (edge.source.title, edge.target.title, edge.selector) for edge in picture_of(definitions, existing).edges
    )


def test_the_picture_joins_a_virtual_topic_to_the_consumer_queues_that_exist():
    existing = [
        T("VirtualTopic.Orders"),
        Q("Consumer.A.VirtualTopic.Orders"),
        Q("Consumer.B.VirtualTopic.Late"),
        Q("plain"),
    ]
    assert edges_of(Definitions(), *existing) == [
        ("VirtualTopic.Late", "Consumer.B.VirtualTopic.Late", ""),
        ("VirtualTopic.Orders", "Consumer.A.VirtualTopic.Orders", ""),
    ]


def test_the_picture_shows_the_pattern_where_nothing_exists():
    assert edges_of(Definitions()) == [("VirtualTopic.>", "Consumer.*.VirtualTopic.>", "")]


def test_the_picture_follows_composites_through_topics_in_layers():
    composite = Composite(Q("in"), (Leg(T("VirtualTopic.X"), "a = 1"), Leg(Q("log"))))
    definitions = Definitions(0, (VirtualTopic("VirtualTopic.>"), composite))
    graph = picture_of(definitions, [Q("Consumer.A.VirtualTopic.X")])
    layers = {node.title: node.layer for node in graph.nodes}
    assert layers == {"in": 0, "VirtualTopic.X": 1, "log": 1, "Consumer.A.VirtualTopic.X": 2}


def test_nodes_of_the_picture_do_not_overlap():
    legs = tuple(Leg(Q(f"out.{number}")) for number in range(9))
    definitions = Definitions(
        0, (VirtualTopic("VirtualTopic.>"), Composite(Q("in"), legs), Composite(Q("out.3"), (Leg(Q("z")),)))
    )
    nodes = picture_of(definitions, [Q(f"Consumer.{c}.VirtualTopic.T") for c in "ABC"]).nodes
    for one, other in itertools.combinations(nodes, 2):
        assert one.layer != other.layer or abs(one.row - other.row) >= 0.999
    assert min(node.y for node in nodes) >= 0


def test_the_picture_stays_readable_with_many_consumer_queues():
    graph = picture_of(Definitions(), [Q(f"Consumer.{number}.VirtualTopic.T") for number in range(100)])
    assert [node.title for node in graph.nodes if node.is_ghost] == ["and 86 more queues"]


def test_feeders_name_source_and_selector():
    composite = Composite(Q("in"), (Leg(T("m"), "a = 1"), Leg(Q("x"))))
    definitions = Definitions(0, (composite, MirroredQueue(prefix="mirror.")))
    assert [(feed.source, feed.selector) for feed in feeders_of(T("m"), definitions)] == [(Q("in"), "a = 1")]
    assert [feed.source for feed in feeders_of(T("mirror.orders"), definitions)] == [Q("orders")]


# -- advice

STATS = {
    Q("in"): DestinationStats(Q("in"), QueueSize=7, ConsumerCount=2),
    T("VirtualTopic.X"): DestinationStats(T("VirtualTopic.X")),
}
ADVICE = [
    (Composite(Q("in"), (Leg(Q("x")),)), "2 consume from in now"),
    (Composite(Q("in"), (Leg(Q("x")),)), "7 messages are in in now"),
    (Composite(Q("a"), (Leg(Q("x"), "a = 1"),)), "What none of them matches is gone"),
    (Composite(Q("a"), (Leg(Q("x")),), send_when_not_matched=True), "never keeps anything"),
    (Composite(Q("a"), (Leg(Q("x"), "a = 1"), Leg(Q("x"), "b = 1"))), "x is a target more than once"),
    (Composite(T("VirtualTopic.X"), (Leg(Q("x")),)), "is also a virtual topic"),
    (VirtualTopic("VirtualTopic.X.*", prefix="P.*."), "its consumer queues get a copy too"),
    (VirtualTopic("VirtualTopic.X"), "those get each message once"),
    (VirtualTopic("Other.>", set_original_destination=False), "fans out to every consumer again"),
    (VirtualTopic("Other.>", selector_aware=True), "misses messages"),
    (VirtualTopic("Other.>"), "No topic that exists matches yet"),
    (MirroredQueue(), "virtual topics too"),
]


@pytest.mark.parametrize(("definition", "part"), ADVICE, ids=[each[1] for each in ADVICE])
def test_advice_is_given(definition, part):
    assert any(part in sentence for sentence in advice(definition, Definitions(), STATS))


def test_what_holds_no_surprise_gets_no_advice():
    assert advice(Composite(Q("quiet"), (Leg(Q("x")), Leg(Q("y"), "a = 1"))), Definitions(), STATS) == []
    assert advice(VirtualTopic("VirtualTopic.X"), Definitions(0, ()), STATS) == []


def test_the_xml_of_a_definition_is_the_part_of_the_file_that_says_it():
    xml = fragment_of(VirtualTopic("Events.>", prefix="App.*.", selector_aware=True))
    assert xml.startswith("<destinationInterceptors>")
    assert '<virtualTopic name="Events.&gt;" prefix="App.*." selectorAware="true"/>' in xml
