"""Test the map of the routing: edges, layout, and traffic."""

import itertools
from urllib.parse import parse_qsl

from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, MirroredQueue, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from console.broker.live.routing_cells import graph_cells
from console.broker.snapshot import BrokerSnapshot, apply_changes, initial_snapshot
from console.routing.map.graph import GraphNodeKind, build_graph, feeds_into
from console.routing.map.layout import lay_out, name_lines
from console.routing.map.map_page import PAGE_NODES, ViewQuery, graph_view
from console.routing.map.traffic import flow_cells, stream_width

Q, T = Destination.queue, Destination.topic


def having(*existing: Destination, **numbers) -> dict:
    return {each: DestinationStats(each, **numbers) for each in existing}


def joined(definitions: Definitions, *existing: Destination) -> list[tuple[str, str, str]]:
    """From what to what messages go by rules, and with which selectors."""
    edges = build_graph(definitions, having(*existing)).edges
    sources = {edge.target: edge.source for edge in edges if edge.target.kind is GraphNodeKind.RULE}
    return sorted(
        (sources[edge.source].title, edge.target.title, edge.selector)
        for edge in edges
        if edge.source.kind is GraphNodeKind.RULE
    )


def test_a_virtual_topic_is_joined_to_the_consumer_queues_that_exist():
    existing = [
        T("VirtualTopic.Orders"),
        Q("Consumer.A.VirtualTopic.Orders"),
        Q("Consumer.B.VirtualTopic.Late"),
        Q("plain"),
    ]
    assert joined(Definitions(), *existing) == [
        ("VirtualTopic.Late", "Consumer.B.VirtualTopic.Late", ""),
        ("VirtualTopic.Orders", "Consumer.A.VirtualTopic.Orders", ""),
    ]


def test_the_pattern_is_shown_where_nothing_exists():
    assert joined(Definitions()) == [("VirtualTopic.>", "Consumer.*.VirtualTopic.>", "")]


def test_composites_are_followed_through_topics_from_producers_to_consumers():
    composite = CompositeDestination(Q("in"), (ForwardTarget(T("VirtualTopic.X"), "a = 1"), ForwardTarget(Q("log"))))
    definitions = Definitions(0, (VirtualTopic("VirtualTopic.>"), composite))
    graph = build_graph(definitions, having(Q("in"), Q("log"), Q("Consumer.A.VirtualTopic.X"), ConsumerCount=1))
    lay_out(graph)
    layers = {each.title: each.layer for each in graph.nodes if each.kind is GraphNodeKind.DESTINATION}
    assert layers == {"in": 1, "VirtualTopic.X": 3, "log": 3, "Consumer.A.VirtualTopic.X": 5}
    ends = {(each.kind, each.destination.name): each.layer for each in graph.nodes if each.kind.endswith("ers")}
    assert ends[GraphNodeKind.PRODUCERS, "in"] == 0
    assert ends[GraphNodeKind.CONSUMERS, "Consumer.A.VirtualTopic.X"] == 6


def test_a_virtual_topic_with_its_consumers_fits_a_window_of_usual_width():
    queues = [Q("Consumer.A.VirtualTopic.Orders"), Q("Consumer.Accounting.VirtualTopic.Orders")]
    graph = build_graph(Definitions(), having(T("VirtualTopic.Orders"), *queues, ConsumerCount=1, ProducerCount=1))
    lay_out(graph)
    assert max(each.layer for each in graph.nodes) == 4
    assert graph.width < 1000
    written = {each.title: name_lines(each) for each in graph.nodes if each.kind is GraphNodeKind.DESTINATION}
    assert written["VirtualTopic.Orders"] == ("VirtualTopic.Orders",)
    assert written["Consumer.Accounting.VirtualTopic.Orders"] == ("Consumer.Accounting.", "VirtualTopic.Orders")


def test_a_name_too_long_for_two_lines_keeps_its_beginning_and_its_end():
    long = "a-name-that-somebody-chose-without-any-dot-at-all-for-a-queue"
    graph = build_graph(Definitions(0, (CompositeDestination(Q(long), (ForwardTarget(Q("x")),)),)), {})
    lay_out(graph)
    first_line, second = name_lines(next(each for each in graph.nodes if each.title == long))
    assert long.startswith(first_line)
    assert "…" in second
    assert long.endswith(second.rpartition("…")[2])


def test_nodes_do_not_overlap():
    legs = tuple(ForwardTarget(Q(f"out.{number}"), "a = 1") for number in range(9))
    definitions = Definitions(
        0,
        (
            VirtualTopic("VirtualTopic.>"),
            CompositeDestination(Q("in"), legs),
            CompositeDestination(Q("out.3"), (ForwardTarget(Q("z")),)),
        ),
    )
    graph = build_graph(definitions, having(*(Q(f"Consumer.{c}.VirtualTopic.T") for c in "ABC")))
    lay_out(graph)
    for one, other in itertools.combinations(graph.nodes, 2):
        apart = one.x + one.width <= other.x or other.x + other.width <= one.x or abs(one.y - other.y) >= 40
        assert apart, (one.title, other.title)
    assert min(node.y for node in graph.nodes) >= 0
    assert all(edge.path.startswith("M") for edge in graph.edges)


def test_many_consumer_queues_are_shown_few_and_all_of_them_close_by():
    stats = having(*(Q(f"Consumer.{number}.VirtualTopic.T") for number in range(100)))
    graph = build_graph(Definitions(), stats)
    assert [node.title for node in graph.nodes if node.is_ghost] == ["and 86 more queues"]
    close = graph_view(Definitions(), stats, ViewQuery(focus="topic://VirtualTopic.T", steps=2))
    queues = [
        each for each in close.graph.nodes if each.kind is GraphNodeKind.DESTINATION and each.destination.is_queue
    ]
    assert len(queues) == 100


def test_a_focus_shows_its_neighbourhood_and_no_more():
    chain = [CompositeDestination(Q(f"q{n}"), (ForwardTarget(Q(f"q{n + 1}")),)) for n in range(20)]
    definitions = Definitions(0, tuple(chain))
    near = graph_view(definitions, {}, ViewQuery(focus="queue://q10", steps=2))
    names = {each.title for each in near.graph.nodes if each.kind is GraphNodeKind.DESTINATION}
    assert names == {"q9", "q10", "q11"}
    assert near.focused.title == "q10"
    by_rule = graph_view(definitions, {}, ViewQuery(focus="compositeQueue:q3", steps=1))
    assert {"q3", "q4"} <= {each.title for each in by_rule.graph.nodes}


def test_a_search_finds_and_says_when_there_is_nothing():
    definitions = Definitions(
        0, tuple(CompositeDestination(Q(f"in{n}"), (ForwardTarget(Q(f"out{n}")),)) for n in range(9))
    )
    found = graph_view(definitions, {}, ViewQuery(text="OUT7"))
    assert {"in7", "out7"} <= {each.title for each in found.graph.nodes}
    assert "in6" not in {each.title for each in found.graph.nodes}
    assert graph_view(definitions, {}, ViewQuery(text="never")).graph.nodes == []


def test_200_rules_come_in_pages_that_cut_nothing_and_lose_nothing():
    definitions = Definitions(
        0, tuple(CompositeDestination(Q(f"in{n:03}"), (ForwardTarget(Q(f"out{n}")),)) for n in range(200))
    )
    first_page = graph_view(definitions, {}, ViewQuery())
    shown = []
    for number in range(1, first_page.pages + 1):
        page = graph_view(definitions, {}, ViewQuery(page=number))
        assert len(page.graph.nodes) <= PAGE_NODES
        shown += [each.key for each in page.graph.nodes]
    assert len(shown) == len(set(shown)) == first_page.total
    fresh = graph_view(definitions, {}, ViewQuery(fresh="compositeQueue:in150"))
    assert "in150" in {each.title for each in fresh.graph.nodes}


def test_a_large_broker_is_drawn_in_good_time():
    import time

    stats = having(*(Q(f"Consumer.C{n % 9}.VirtualTopic.T{n}") for n in range(10_000)))
    definitions = Definitions(0, tuple(VirtualTopic(f"VirtualTopic.T{n}.>") for n in range(100)))
    started = time.monotonic()
    graph_view(definitions, stats, ViewQuery())
    assert time.monotonic() - started < 5


def test_an_address_holds_what_is_shown():
    query = ViewQuery.read({"focus": "queue://a", "steps": "6", "view": "table", "page": "nonsense"})
    assert ViewQuery.read(dict(parse_qsl(query.url()[1:]))) == query


def test_feeders_name_source_and_selector():
    composite = CompositeDestination(Q("in"), (ForwardTarget(T("m"), "a = 1"), ForwardTarget(Q("x"))))
    definitions = Definitions(0, (composite, MirroredQueue(prefix="mirror.")))
    assert [(feed.source, feed.selector) for feed in feeds_into(T("m"), definitions)] == [(Q("in"), "a = 1")]
    assert [feed.source for feed in feeds_into(T("mirror.orders"), definitions)] == [Q("orders")]


# -- how much flows


def test_thickness_grows_with_the_power_of_ten():
    assert [stream_width(rate) for rate in (0, 0.4, 1, 12, 120, 1_200, 1e7)] == [
        "s0",
        "s1",
        "s2",
        "s3",
        "s4",
        "s5",
        "s5",
    ]


def pictured(**numbers) -> BrokerSnapshot:
    before = initial_snapshot(100.0, 1, [DestinationStats(Q("q"))], BrokerSnapshot())
    return apply_changes(before, 101.0, 2, [DestinationStats(Q("q"), **numbers)], [])


def test_a_destination_is_graded_by_its_health():
    assert flow_cells(pictured(EnqueueCount=50, DequeueCount=50, ConsumerCount=1), Q("q"))["grade"] == "good"
    unread = flow_cells(pictured(QueueSize=5, EnqueueCount=5), Q("q"))
    assert (unread["grade"], unread["reading"], unread["text"], unread["in"]) == ("look", "look", "5", "s2")
    assert flow_cells(pictured(QueueSize=5, DLQ=True), Q("q"))["grade"] == "act"
    absent = flow_cells(pictured(), Q("never"))
    # Before the first message and after a restart alike: a topic is not kept, so whether it ever was nobody can say.
    assert (absent["text"], absent["says"]) == ("–", "does not exist, created with the first message")


def test_the_socket_tells_the_flow_of_the_rows_and_the_version():
    from dataclasses import replace

    picture = replace(pictured(QueueSize=5, EnqueueCount=5), routing=7)
    cells = graph_cells(picture, ("queue://q", "queue://a::b::c"))
    assert cells["version"] == 7
    assert cells["queue://q#count"] == 5
    assert cells["queue://q#grade"] == "look"
