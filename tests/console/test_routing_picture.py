"""The picture of the routing: what is joined to what, in which layer, and that nothing overlaps."""

import itertools

from brokerapp.definitions import Composite, Definitions, Leg, MirroredQueue, VirtualTopic
from brokerapp.destination import Destination
from console.routing.graph import feeders_of, picture_of

Q, T = Destination.queue, Destination.topic


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
