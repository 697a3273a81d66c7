"""Test which queue a fully qualified name means, and to what it is bound."""

import pytest

from brokerapp.engine.routing.bindings import Binding, RoutingType, is_at, new_binding
from brokerapp.engine.routing.route_walk import Route, exclude_bound, explain_route, route
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, CompositeDestination, Definitions, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy

queue, topic, parse = Destination.queue, Destination.topic, Destination.parse


@pytest.mark.parametrize(
    ("name", "exists", "expected"),
    [
        ("a::q", False, Binding("a", "q")),
        ("/topic/a::q", False, Binding("a", "q", filter="x = 1")),
        ("a::q?selectorAware=true", False, Binding("a", "q", filter="x = 1")),
        ("a::q?routing-type=ANYCAST", False, Binding("a", "q", RoutingType.ANYCAST)),
        ("q::q", False, None),
        ("q::q", True, None),
        ("::q", True, None),
        ("T::Consumer.A.T", True, Binding("T", "Consumer.A.T")),  # it was a consumer's queue before
        ("T.>::Consumer.A.T.>", False, Binding("T.>", "Consumer.A.T.>")),
    ],
)
def test_a_queue_is_bound_by_the_first_who_calls_it_so(name, exists, expected):
    assert new_binding(parse(name), None, exists, "x = 1") == expected


@pytest.mark.parametrize(
    ("name", "bound", "selector", "rule"),
    [
        ("a::q", None, None, "there by itself, it is not on the address 'a'"),
        ("a::q", Binding("b", "q"), None, "is on the address 'b', not on 'a'"),
        ("q::q", Binding("b", "q"), None, "is on the address 'b', not on 'q'"),
        ("/topic/a::q", Binding("a", "q", filter="x = 1"), "x = 2", "takes only 'x = 1'"),
    ],
)
def test_another_address_or_selector_is_refused(name, bound, selector, rule):
    with pytest.raises(RequestRefused, match=rule):
        new_binding(parse(name), bound, True, selector)


@pytest.mark.parametrize("bound", ["x = 1", "convert_string_expressions:x = 1"])
@pytest.mark.parametrize("asked", ["x = 1", "convert_string_expressions:x = 1"])
def test_the_selector_of_a_binding_is_that_of_clients_of_any_protocol_and_version(bound, asked):
    binding = Binding("a", "q", filter=bound)
    assert new_binding(parse("/topic/a::q"), binding, True, asked) is None


def test_a_queue_that_holds_a_copy_elsewhere_gets_none_as_a_bound_one_but_by_other_ways():
    queue, topic = Destination.queue("q"), Destination.topic("t")
    bound, by_composite = RoutedCopy(queue, topic), RoutedCopy(queue, Destination.topic("composite"))
    found = exclude_bound(Route([bound, by_composite], bound=["t::q", "t::r"]), ["t::q"])
    assert (found.queues, found.bound) == ([by_composite], ["t::r"])


def test_a_queue_without_an_address_must_be_there():
    with pytest.raises(RequestRefused, match="queue 'q' not found"):
        new_binding(parse("::q"), None, False, None)


@pytest.mark.parametrize("selector", [None, "x = 1"])
def test_who_has_the_same_selector_or_none_may_join(selector):
    assert new_binding(parse("/topic/a::q"), Binding("a", "q", filter="x = 1"), True, selector) is None


@pytest.mark.parametrize(
    ("name", "bound", "at"),
    [
        ("q", None, True), ("::q", None, True), ("q::q", None, True), ("T::Consumer.A.T", None, True),
        ("a::q", None, False), ("a::q", Binding("a", "q"), True), ("b::q", Binding("a", "q"), False),
    ],
)  # fmt: skip
def test_lookups_need_the_right_address(name, bound, at):
    assert is_at(parse(name), bound) == at


def test_a_binding_is_read_as_it_was_written():
    for binding in (Binding("a", "q"), Binding("a", "q", RoutingType.ANYCAST), Binding("a", "q", filter="x = 1")):
        assert Binding.from_json("q", {"kind": "queue", **binding.to_json()}) == binding
    assert Binding.from_json("q", {"kind": "queue"}) is None


def bound(*bindings, definitions=(DEFAULT_VIRTUAL_TOPIC,)):
    made = RoutingTable(Definitions(1, definitions), lambda *_: True)
    for binding in bindings:
        made.add_queue(binding.queue)
        made.bind(binding)
    return made


def reached(topology, destination, **headers):
    head = "".join(f"{name}:{value}\n" for name, value in headers.items())
    found = route(Message("1", head.encode(), b""), destination, topology)
    return [(copy.destination.name, copy.original and copy.original.stomp) for copy in found.queues]


def test_a_queue_bound_to_a_topic_gets_what_reaches_the_topic():
    topology = bound(Binding("T", "q"), Binding("T.>", "all"), Binding("U", "other"))
    assert sorted(reached(topology, topic("T"))) == [("all", "/topic/T"), ("q", "/topic/T")]
    assert reached(topology, topic("T.x")) == [("all", "/topic/T.x")]
    assert reached(topology, queue("T")) == [("T", None)]


def test_a_composite_topic_that_only_forwards_feeds_what_is_bound_to_its_legs():
    definitions = (CompositeDestination(topic("T"), (ForwardTarget(topic("U")), ForwardTarget(parse("U::q2")))),)
    topology = bound(Binding("T", "q"), Binding("U", "q1"), Binding("V", "q2"), definitions=definitions)
    assert reached(topology, topic("T")) == [("q1", "/topic/U"), ("U::q2", "/topic/T")]


def test_a_queue_that_a_virtual_topic_feeds_gets_one_copy():
    name = "Consumer.A.VirtualTopic.T"
    topology = bound(Binding("VirtualTopic.T", name))
    assert reached(topology, topic("VirtualTopic.T")) == [(name, "/topic/VirtualTopic.T")]
    wild = bound(Binding("VirtualTopic.>", "Consumer.A.VirtualTopic.>"))
    assert reached(wild, topic("VirtualTopic.T")) == [("Consumer.A.VirtualTopic.>", "/topic/VirtualTopic.T")]


@pytest.mark.parametrize(("address", "name"), [("T", "q"), ("VirtualTopic.T", "Consumer.A.VirtualTopic.T")])
def test_a_filter_lets_only_its_messages_come_by_the_address(address, name):
    topology = bound(Binding(address, name, filter="x = 1"))
    assert reached(topology, topic(address), x=1) == [(name, f"/topic/{address}")]
    assert reached(topology, topic(address), x=2) == []
    assert reached(topology, topic(address), x=1)


def test_what_is_sent_to_a_full_name_reaches_that_queue_only():
    topology = bound(
        Binding("T", "q1"),
        Binding("T", "q2"),
        definitions=(CompositeDestination(queue("q1"), (ForwardTarget(queue("z")),)),),
    )
    found = route(Message("1", b"", b""), parse("T::q1"), topology)
    [copy] = found.queues
    assert (copy.destination.physical, copy.shown.stomp, found.topics) == (queue("q1"), "/queue/T::q1", [])


def test_queues_of_an_anycast_address_take_turns():
    topology = bound(Binding("a", "q1", RoutingType.ANYCAST), Binding("a", "q2", RoutingType.ANYCAST))
    assert [reached(topology, queue("a"))[0][0] for _ in range(4)] == ["q1", "q2", "q1", "q2"]
    assert reached(topology, topic("a")) == []
    _, hops = explain_route({}, queue("a"), topology)
    assert [(hop.definition, hop.target.name) for hop in hops] == [("a::q1", "q1")]
    topology.remove_queue("q1")
    assert {reached(topology, queue("a"))[0][0] for _ in range(3)} == {"q2"}
    topology.remove_queue("q2")
    assert reached(topology, queue("a")) == [("a", None)]
