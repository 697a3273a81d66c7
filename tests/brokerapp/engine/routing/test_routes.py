"""Test which physical destinations a message reaches, rule by rule, and that routing always ends."""

import gc
import time
from dataclasses import replace
from types import FunctionType, ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.engine.routing import route_decisions, route_walk
from brokerapp.engine.routing.cycle_detection import find_cycle
from brokerapp.engine.routing.route_decisions import MessageViews
from brokerapp.engine.routing.route_walk import MAX_HOPS, explain_route, route
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    VirtualTopic,
)
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.message import Message

queue, topic = Destination.queue, Destination.topic
HEAD = b"message-id:ID\\c1\ncolour:red\nsize:7\n"


def topology(*definitions, queues=(), interest=lambda _queue, _headers: True):
    made = RoutingTable(Definitions(1, definitions), interest)
    for name in queues:
        made.add_queue(name)
    return made


def message(head=HEAD):
    return Message("ID:1", head, b"")


def text(copy):
    """A copy as `destination < original [shown]`."""
    original = f" < {copy.original}" if copy.original else ""
    shown = f" [{copy.shown}]" if copy.shown else ""
    return f"{copy.destination}{original}{shown}"


def reached(where, destination, head=HEAD):
    """What a message sent there reaches: queues and topics, in any order but each as often as it is reached."""
    found = route(message(head), destination, where)
    return sorted(map(text, (*found.queues, *found.topics)))


def leg(name, selector=None):
    return ForwardTarget(Destination.parse(name), selector)


def composite(name, *legs, **options):
    legs = tuple(each if isinstance(each, ForwardTarget) else leg(each) for each in legs)
    return CompositeDestination(Destination.parse(name), legs, **options)


VT, DEFAULT = DEFAULT_VIRTUAL_TOPIC, (DEFAULT_VIRTUAL_TOPIC,)
PRIVATE = VirtualTopic(name="private.>", prefix="q.private.vt.*.")

#: Name, definitions, existing queues, destination sent to, what is reached.
CASES = [
    ("a queue", DEFAULT, [], "queue://a", ["queue://a"]),
    ("a topic", DEFAULT, [], "topic://a", ["topic://a"]),
    # virtual topics
    ("a virtual topic without consumer queues", DEFAULT, [], "topic://VirtualTopic.x", ["topic://VirtualTopic.x"]),
    (
        "a virtual topic with consumer queues", DEFAULT,
        ["Consumer.A.VirtualTopic.x", "Consumer.B.VirtualTopic.x", "Consumer.A.VirtualTopic.y", "other"],
        "topic://VirtualTopic.x",
        ["queue://Consumer.A.VirtualTopic.x < topic://VirtualTopic.x",
         "queue://Consumer.B.VirtualTopic.x < topic://VirtualTopic.x", "topic://VirtualTopic.x"],
    ),
    (
        "consumer queues named by wildcards", DEFAULT,
        [f"Consumer.A.VirtualTopic.{each}" for each in ("a.b", "a.>", "a.*", ">", "b.>")],
        "topic://VirtualTopic.a.b",
        [f"queue://Consumer.A.VirtualTopic.{each} < topic://VirtualTopic.a.b" for each in ("a.b", "a.>", "a.*", ">")]
        + ["topic://VirtualTopic.a.b"],
    ),
    (
        "the star of the prefix is one element", DEFAULT, ["Consumer.A.B.VirtualTopic.x", "Consumer.VirtualTopic.x"],
        "topic://VirtualTopic.x", ["topic://VirtualTopic.x"],
    ),
    (
        "another prefix", [VirtualTopic(name="VirtualTopic.>", prefix="VirtualTopicConsumers.*.")],
        ["VirtualTopicConsumers.A.VirtualTopic.x", "Consumer.A.VirtualTopic.x"], "topic://VirtualTopic.x",
        ["queue://VirtualTopicConsumers.A.VirtualTopic.x < topic://VirtualTopic.x", "topic://VirtualTopic.x"],
    ),
    (
        "a prefix without a star", [VirtualTopic(name="VirtualTopic.>", prefix="Consumer.")],
        ["Consumer.VirtualTopic.x", "Consumer.A.VirtualTopic.x"], "topic://VirtualTopic.x",
        ["queue://Consumer.VirtualTopic.x < topic://VirtualTopic.x", "topic://VirtualTopic.x"],
    ),
    (
        "a postfix", [VirtualTopic(prefix="", postfix=".qmirror")], ["Q.qmirror", "Q"], "topic://Q",
        ["queue://Q.qmirror < topic://Q", "topic://Q"],
    ),
    (
        "all topics are virtual", [VirtualTopic()], ["Consumer.A.any"], "topic://any",
        ["queue://Consumer.A.any < topic://any", "topic://any"],
    ),
    (
        "wildcard queues of other families", [PRIVATE], ["q.private.>", "q.private.vt.A.private.x", "q.>"], "topic://private.x",
        ["queue://q.private.vt.A.private.x < topic://private.x", "topic://private.x"],
    ),
    (
        "a prefix that begins with a star takes any family", [VirtualTopic(name="t.>", prefix="*.*.")],
        ["q.A.t.x", "q.>"], "topic://t.x",
        ["queue://q.> < topic://t.x", "queue://q.A.t.x < topic://t.x", "topic://t.x"],
    ),
    (
        "two virtual topics that overlap act each by itself",
        [VT, VirtualTopic(name="VirtualTopic.x", prefix="Special.*.")],
        ["Consumer.A.VirtualTopic.x", "Special.A.VirtualTopic.x"], "topic://VirtualTopic.x",
        ["queue://Consumer.A.VirtualTopic.x < topic://VirtualTopic.x",
         "queue://Special.A.VirtualTopic.x < topic://VirtualTopic.x", "topic://VirtualTopic.x", "topic://VirtualTopic.x"],
    ),
    (
        "a queue that two virtual topics feed gets the copy once",
        [VT, VirtualTopic(name="VirtualTopic.x", prefix="Consumer.A.")], ["Consumer.A.VirtualTopic.x"], "topic://VirtualTopic.x",
        ["queue://Consumer.A.VirtualTopic.x < topic://VirtualTopic.x", "topic://VirtualTopic.x", "topic://VirtualTopic.x"],
    ),
    (
        "without the original destination", [VirtualTopic(name="v.>", set_original_destination=False)],
        ["Consumer.A.v.x"], "topic://v.x",
        ["queue://Consumer.A.v.x [topic://v.x]", "topic://v.x"],
    ),
    ("a queue is never virtual", [VirtualTopic()], ["Consumer.A.x"], "queue://x", ["queue://x"]),
    (
        "advisories never fan out", [VirtualTopic()], ["Consumer.A.ActiveMQ.Advisory.Connection"],
        "topic://ActiveMQ.Advisory.Connection", ["topic://ActiveMQ.Advisory.Connection"],
    ),
    # composites
    (
        "a composite queue", [composite("queue://in", "queue://a", "topic://b")], [], "queue://in",
        ["queue://a < queue://in", "topic://b < queue://in"],
    ),
    (
        "a composite topic", [composite("topic://in", "queue://a", forward_only=False)], [], "topic://in",
        ["queue://a < topic://in", "topic://in"],
    ),
    ("a composite is of one kind", [composite("topic://in", "queue://a")], [], "queue://in", ["queue://in"]),
    ("a composite without legs swallows", [composite("queue://in")], [], "queue://in", []),
    (
        "a composite with a wildcard name", [composite("queue://in.>", "queue://all")], [], "queue://in.x.y",
        ["queue://all < queue://in.x.y"],
    ),
    (
        "two legs to one queue store one copy", [composite("queue://in", "queue://a", "queue://a")], [], "queue://in",
        ["queue://a < queue://in"],
    ),
    (
        "a chain names the hop before", [composite("queue://a", "queue://b"), composite("queue://b", "queue://c")], [], "queue://a",
        ["queue://c < queue://b"],
    ),
    (
        "a chain whose middle keeps its own",
        [composite("queue://a", "queue://b"), composite("queue://b", "queue://c", forward_only=False)],
        [], "queue://a", ["queue://b < queue://a", "queue://c < queue://b"],
    ),
    (
        "a queue that is reached by two ways gets the message once, as it comes first",
        [composite("queue://a", "queue://b", "queue://c"), composite("queue://b", "queue://c")], [], "queue://a",
        ["queue://c < queue://b"],
    ),
    (
        "a composite that feeds a virtual topic", [VT, composite("queue://in", "topic://VirtualTopic.x")],
        ["Consumer.A.VirtualTopic.x"], "queue://in",
        ["queue://Consumer.A.VirtualTopic.x < topic://VirtualTopic.x", "topic://VirtualTopic.x < queue://in"],
    ),
    (
        "a consumer queue that is a composite", [VT, composite("queue://Consumer.A.VirtualTopic.x", "queue://a", "queue://b")],
        ["Consumer.A.VirtualTopic.x"], "topic://VirtualTopic.x",
        ["queue://a < queue://Consumer.A.VirtualTopic.x", "queue://b < queue://Consumer.A.VirtualTopic.x", "topic://VirtualTopic.x"],
    ),
    (
        "a topic both virtual and composite", [VT, composite("topic://VirtualTopic.x", "queue://a")],
        ["Consumer.A.VirtualTopic.x"], "topic://VirtualTopic.x",
        ["queue://Consumer.A.VirtualTopic.x < topic://VirtualTopic.x", "queue://a < topic://VirtualTopic.x",
         "topic://VirtualTopic.x"],
    ),
    (
        "a composite leads to itself only through others",
        [composite("queue://in", "queue://in.copy"), composite("queue://in.>", "queue://other")], [], "queue://in",
        ["queue://other < queue://in"],
    ),
    # mirrors
    (
        "a mirrored queue", [MirroredQueue()], [], "queue://a", ["queue://a", "topic://VirtualTopic.Mirror.a"],
    ),
    (
        "a mirror with its own names", [MirroredQueue(prefix="m.", postfix=".x")], [], "queue://a", ["queue://a", "topic://m.a.x"],
    ),
    (
        "a mirror that a virtual topic records", [VT, MirroredQueue()], ["Consumer.A.VirtualTopic.Mirror.a"], "queue://a",
        ["queue://Consumer.A.VirtualTopic.Mirror.a < topic://VirtualTopic.Mirror.a", "queue://a",
         "topic://VirtualTopic.Mirror.Consumer.A.VirtualTopic.Mirror.a < topic://VirtualTopic.Mirror.a",
         "topic://VirtualTopic.Mirror.a"],
    ),
    ("a topic has no mirror", [MirroredQueue()], [], "topic://a", ["topic://a"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("definitions", "queues", "destination", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
@pytest.mark.scenario("VT-03", "VT-21", "VT-22", "VT-40", "CD-04", "CD-17")
def test_a_message_reaches(definitions, queues, destination, expected):
    where = topology(*definitions, queues=queues)
    for _ in range(2):  # the second time it may come from memory
        assert reached(where, Destination.parse(destination)) == sorted(expected)


@pytest.mark.parametrize(("path", "copies"), [((), 1), (("far",), 0)])
def test_a_local_virtual_topic_copies_what_no_bridge_brought(path, copies):
    where, destination = topology(VirtualTopic("v.>", local=True), queues=["Consumer.A.v.x"]), Destination.topic("v.x")
    for _ in range(2):
        found = route(replace(message(), path=path), destination, where)
        assert [str(each.destination) for each in found.queues] == ["queue://Consumer.A.v.x"] * copies
        assert [each.destination for each in found.topics] == [destination]
    moved = route(replace(message(), path=path), destination, where, is_moved=True)
    assert len(moved.queues) == 1, "what an operator moves no bridge brings"


@pytest.mark.parametrize("kind", DestinationKind)
@pytest.mark.parametrize(
    ("forward_only", "send_when_not_matched", "some_match", "keeps"),
    [
        (True, False, True, False),
        (True, False, False, False),
        (False, False, True, True),
        (False, False, False, True),
        (True, True, True, False),
        (True, True, False, True),
        (False, True, True, False),
        (False, True, False, True),
    ],
)
@pytest.mark.scenario("CD-05", "CD-06", "CD-07", "CD-08", "CD-09", "CD-10")
def test_whether_a_composite_keeps_a_message_itself(kind, forward_only, send_when_not_matched, some_match, keeps):
    own = Destination(kind, "in")
    legs = (leg("queue://red", "colour = 'red'"), leg("queue://large", "size > 100"))
    options = {"forward_only": forward_only, "send_when_not_matched": send_when_not_matched}
    where = topology(CompositeDestination(own, legs, **options))
    head = HEAD if some_match else HEAD.replace(b"red", b"blue")
    expected = [f"queue://red < {own}"] * some_match + [str(own)] * keeps
    assert reached(where, own, head) == sorted(expected)


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (None, True),
        ("colour = 'red'", True),
        ("colour = 'blue'", False),
        ("missing = 1", False),  # unknown is not true
        ("NOT (missing = 1)", False),
        ("size = 7", True),
        ("size > 6 AND colour LIKE 'r%'", True),
        ("JMSDestination = 'queue://in'", True),
    ],
)
def test_a_filtered_leg_takes_what_its_selector_says_is_true(selector, taken):
    where = topology(composite("queue://in", leg("queue://a", selector)))
    assert reached(where, queue("in")) == (["queue://a < queue://in"] if taken else [])


@pytest.mark.parametrize(("strict", "taken"), [(False, True), (True, False)])
def test_a_composite_may_ask_for_text_headers_to_be_text_only(strict, taken):
    where = topology(CompositeDestination(queue("in"), (leg("queue://a", "size = 7"),), strict=strict))
    assert bool(reached(where, queue("in"))) is taken


def test_each_message_is_filtered_by_its_own_headers():
    legs = leg("queue://red", "colour = 'red'"), leg("queue://rest", "colour <> 'red'")
    where = topology(composite("queue://in", *legs))
    for colour, expected in (("red", "red"), ("blue", "rest"), ("red", "red")):
        head = b"message-id:1\ncolour:%b\n" % colour.encode()
        assert reached(where, queue("in"), head) == [f"queue://{expected} < queue://in"]


def test_a_selector_aware_queue_is_asked_with_what_it_would_get():
    asked = []

    def interest(destination, headers):
        asked.append((str(destination), headers["destination"], headers["original-destination"], headers["colour"]))
        return destination.name.startswith("Consumer.A")

    queues = ["Consumer.A.v.x", "Consumer.B.v.x"]
    where = topology(VirtualTopic(name="v.>", selector_aware=True), queues=queues, interest=interest)
    for _ in range(2):  # the answer may be another one the next time: it is not remembered
        assert reached(where, topic("v.x")) == ["queue://Consumer.A.v.x < topic://v.x", "topic://v.x"]
    assert sorted(asked) == sorted([(f"queue://{name}", f"/queue/{name}", "/topic/v.x", "red") for name in queues] * 2)


def test_queues_that_may_drop_are_named():
    where = topology(VirtualTopic(name="v.>", drop_on_resource_limit=True), VT, queues=["Consumer.A.v.x"])
    [copy] = route(message(), topic("v.x"), where).dropping
    assert str(copy.destination) == "queue://Consumer.A.v.x"


def test_a_queue_that_one_of_two_definitions_insists_on_may_not_drop():
    dropping, insisting = VirtualTopic(name="v.>", drop_on_resource_limit=True), VirtualTopic(name="v.*")
    for definitions in ((dropping, insisting), (insisting, dropping)):
        where = topology(*definitions, queues=["Consumer.A.v.x"])
        assert route(message(), topic("v.x"), where).dropping == set()


def test_what_a_dropping_virtual_topic_reaches_through_a_composite_may_drop_too():
    forwarding = CompositeDestination(queue("Consumer.A.v.x"), (ForwardTarget(queue("far")),))
    where = topology(VirtualTopic(name="v.>", drop_on_resource_limit=True), forwarding, queues=["Consumer.A.v.x"])
    assert {str(each.destination) for each in route(message(), topic("v.x"), where).dropping} == {"queue://far"}


def test_new_and_deleted_queues_count_at_once():
    where = topology(VT)
    assert reached(where, topic("VirtualTopic.x")) == ["topic://VirtualTopic.x"]
    where.add_queue("Consumer.A.VirtualTopic.x")
    assert len(reached(where, topic("VirtualTopic.x"))) == 2
    where.remove_queue("Consumer.A.VirtualTopic.x")
    assert reached(where, topic("VirtualTopic.x")) == ["topic://VirtualTopic.x"]


def test_explaining_tells_every_hop_and_reaches_the_same():
    legs = leg("topic://VirtualTopic.x", "size > 5"), leg("queue://b", "colour = 'blue'")
    where = topology(VT, composite("queue://in", *legs), queues=["Consumer.A.VirtualTopic.x"])
    found, hops = explain_route(message().headers, queue("in"), where)
    assert sorted(map(text, (*found.queues, *found.topics))) == reached(where, queue("in"))
    assert [(str(hop.at), str(hop.target), hop.selector, hop.outcome, hop.depth) for hop in hops] == [
        ("queue://in", "topic://VirtualTopic.x", "size > 5", True, 0),
        ("topic://VirtualTopic.x", "queue://Consumer.A.VirtualTopic.x", None, True, 1),
        ("topic://VirtualTopic.x", "topic://VirtualTopic.x", None, True, 1),
        ("queue://in", "queue://b", "colour = 'blue'", False, 0),
        ("queue://in", "queue://in", None, False, 0),
    ]


# -- loops


def test_a_loop_that_was_not_seen_before_ends_with_an_error():
    where = topology(composite("queue://a", "queue://b"), composite("queue://b", "queue://a"))
    with pytest.raises(RequestRefused, match=f"after {MAX_HOPS} forwards: the definitions form a loop"):
        route(message(), queue("a"), where)


def test_definitions_that_multiply_a_message_end_with_an_error_in_good_time():
    """Each has two legs to the next two: the ways double with every step."""
    steps = [(f"queue://{side}{n}", f"queue://a{n + 1}", f"queue://b{n + 1}") for n in range(30) for side in "ab"]
    where = topology(*(composite(*step) for step in steps))
    started = time.monotonic()
    with pytest.raises(RequestRefused, match="forward"):
        route(message(), queue("a0"), where)
    assert time.monotonic() - started < 5


def test_a_virtual_topic_may_have_very_many_consumer_queues():
    queues = [f"Consumer.{number}.VirtualTopic.x" for number in range(20_000)]
    where = topology(VT, queues=queues)
    assert len(route(message(), topic("VirtualTopic.x"), where).queues) == 20_000


NAMES = st.sampled_from(["a", "b", "a.b", "VirtualTopic.x", "Consumer.A.VirtualTopic.x", "a.>", "*"])
DESTINATIONS = st.builds(Destination, st.sampled_from(NAMED_KINDS), NAMES)
SELECTORS = st.sampled_from([None, "colour = 'red'", "colour = 'blue'", "missing = 1"])
LEGS = st.lists(st.builds(ForwardTarget, DESTINATIONS, SELECTORS), max_size=3).map(tuple)
DEFINITIONS = st.one_of(
    st.builds(CompositeDestination, DESTINATIONS, LEGS, st.booleans(), st.booleans()),
    st.builds(VirtualTopic, st.sampled_from([">", "VirtualTopic.>", "a"]), st.sampled_from(["Consumer.*.", "*.", ""])),
    st.builds(MirroredQueue, st.sampled_from(["VirtualTopic.Mirror.", "a.", ""])),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(DEFINITIONS, max_size=5, unique_by=lambda each: each.id), st.sets(NAMES), DESTINATIONS)
def test_routing_always_ends_and_stores_nothing_twice_in_a_queue(definitions, queues, destination):
    where = topology(*definitions, queues=queues)
    try:
        found = route(message(), destination, where)
    except RequestRefused:
        assert find_cycle(Definitions(1, tuple(definitions))), "it went too far without a loop"
        return
    assert len(found.queues) == len({each.destination for each in found.queues})
    assert all(copy.destination.kind is DestinationKind.QUEUE for copy in found.queues)
    assert all(copy.destination.kind is DestinationKind.TOPIC for copy in found.topics)
    again, _ = explain_route(message().headers, destination, topology(*definitions, queues=queues))
    assert (again.queues, again.topics) == (found.queues, found.topics)


SELECTORS = st.sampled_from(
    [None, "size = 1", "size > 1", "colour = 'red'", "size IS NULL", "JMSDestination LIKE '%a'"]
)
FILTERED = st.builds(
    lambda at, legs, options: CompositeDestination(at, tuple(ForwardTarget(*each) for each in legs), **options),
    DESTINATIONS,
    st.lists(st.tuples(DESTINATIONS, SELECTORS), min_size=1, max_size=4, unique_by=lambda each: each[0]),
    st.fixed_dictionaries({}, optional={"forward_only": st.booleans(), "send_when_not_matched": st.booleans()}),
)
HEADS = st.sampled_from(
    [b"", b"size:1\n", b"size:2\n", b"size:many\n", b"colour:red\n", b"colour:red\nsize:1\n", b"colour:blue\nsize:3\n"]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(FILTERED, min_size=1, max_size=4, unique_by=lambda each: each.id),
    st.lists(st.tuples(HEADS, DESTINATIONS), min_size=2, max_size=12),
)
def test_routes_that_are_remembered_are_those_that_are_found_anew(definitions, messages):
    where = topology(*definitions)
    for head, destination in messages:
        try:
            expected = route(message(b"message-id:1\n" + head), destination, topology(*definitions))
        except RequestRefused:
            with pytest.raises(RequestRefused):
                route(message(b"message-id:1\n" + head), destination, where)
            continue
        found = route(message(b"message-id:1\n" + head), destination, where)
        assert (found.queues, found.topics) == (expected.queues, expected.topics)


def test_messages_with_the_same_answers_have_one_route_which_is_found_once(monkeypatch):
    where = topology(
        composite("queue://orders", leg("queue://small", "size < 5"), leg("queue://red", "colour = 'red'"))
    )
    walks = []
    walk = route_walk._RouteWalk.walk
    monkeypatch.setattr(route_walk._RouteWalk, "walk", lambda *args: (walks.append(args), walk(*args))[1])
    heads = [b"message-id:%d\nsize:%d\ncolour:%b\n" % (at, at % 10, (b"red", b"blue")[at % 2]) for at in range(100)]
    routes = [route(message(head), queue("orders"), where) for head in heads]
    assert len(walks) == len({id(each) for each in routes}) == 4
    where.add_queue("new")  # what exists decides, too
    assert route(message(heads[0]), queue("orders"), where) is not routes[0]


def test_routes_that_are_remembered_hold_nothing_of_the_messages_for_which_they_were_found():
    head, body = b"message-id:1\nsize:1\n", b"a body that nobody else has"
    where = topology(VirtualTopic(name="v.>", selector_aware=True), queues=["Consumer.A.v.x"])
    route(Message("ID:1", head, body), topic("v.x"), where)
    [remembered] = where.plans.values()
    found, waiting = {}, [remembered]
    while waiting:
        each = waiting.pop()
        if id(each) not in found and not isinstance(each, type | ModuleType | FunctionType):
            found[id(each)] = each
            waiting += gc.get_referents(each)
    assert not [each for each in found.values() if each is body or isinstance(each, MessageViews)]


def test_no_more_routes_are_remembered_than_the_limit(monkeypatch):
    monkeypatch.setattr(route_decisions, "MAX_ROUTES", 3)
    legs = [leg(f"queue://q{number}", f"size = {number}") for number in range(9)]
    where = topology(composite("queue://orders", *legs))
    heads = [b"message-id:1\nsize:%d\n" % number for number in range(9)]
    first, again = ([route(message(head), queue("orders"), where) for head in heads] for _ in range(2))
    assert [a is b for a, b in zip(first, again, strict=True)] == [True] * 3 + [False] * 6
    assert [each.queues for each in first] == [each.queues for each in again]


def test_routes_of_all_destinations_together_have_a_limit(monkeypatch):
    monkeypatch.setattr(route_walk, "MAX_DECIDED_ROUTES", 10)
    where = topology(composite("queue://orders.*", leg("queue://a", "size = 1"), leg("queue://b", "size = 2")))
    for name in range(50):
        for size in (1, 2, 3):
            found = route(message(b"message-id:1\nsize:%d\n" % size), queue(f"orders.{name}"), where)
            assert [str(each.destination) for each in found.queues] == [
                f"queue://{each}" for each in "ab"[size - 1 : size]
            ]
        kept = [each for each in where.plans.values() if isinstance(each, route_decisions.RouteDecisions)]
        assert sum(each._count for each in kept) <= 10
