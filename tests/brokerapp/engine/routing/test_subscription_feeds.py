"""Test routing to named subscriptions, and their names in the store."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.engine.routing.route_walk import explain_route, route
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.engine.routing.subscription_feeds import SubscriptionFeed
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    Definitions,
    ForwardTarget,
    VirtualTopic,
)
from brokerapp.model.destination import MAX_NAME, Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.model.subscription_identity import SubscriptionIdentity

queue, topic = Destination.queue, Destination.topic


def subscription(*topics, client_id="c", **options):
    return SubscriptionIdentity(client_id, "sub", tuple(map(topic, topics)), **options)


def fed(*subscriptions, definitions=(), may_read=lambda _subscription, _topic: True):
    """A topology in which these exist, and their feeds."""
    made = RoutingTable(Definitions(1, definitions), lambda _queue, _headers: True)
    feeds = [SubscriptionFeed(each, each.log(1), may_read) for each in subscriptions]
    for feed in feeds:
        made.add_feed(feed)
    return made, feeds


def kept(topology, destination, head="", sender="", persistent=False):
    """Where a message sent there is kept."""
    head = f"message-id:1\n{'persistent:true' + chr(10) if persistent else ''}{head}"
    return route(Message("1", head.encode(), b"", persistent), destination, topology, None, sender).queues


def test_a_topics_copy_is_kept_in_the_log_of_each_subscription_and_shows_the_topic():
    where, feeds = fed(subscription("a"), subscription("b", client_id="d"), subscription("*", ">", client_id="e"))
    assert kept(where, topic("a")) == [RoutedCopy(each.target, None, topic("a")) for each in (feeds[2], feeds[0])]
    assert {each.kind for each in (feed.target for feed in feeds)} == {DestinationKind.SUBSCRIPTION}
    assert kept(where, queue("a")) == [RoutedCopy(queue("a"))]
    for feed in feeds:
        where.remove_feed(feed)
    assert kept(where, topic("a")) == []


def test_the_way_of_a_topic_is_remembered_unless_a_subscription_asks_for_the_message():
    where, _ = fed(subscription("plain"), subscription("choosy", selector="n > 1"))
    assert not route(Message("1", b"message-id:1\n", b""), topic("plain"), where).depends_on_message
    assert route(Message("1", b"message-id:1\n", b""), topic("choosy"), where).depends_on_message
    assert kept(where, topic("choosy"), "n:1\n") == []
    assert len(kept(where, topic("choosy"), "n:2\n")) == 1
    assert kept(where, topic("choosy")) == []  # unknown


def test_a_selector_sees_where_the_message_came_from():
    on_its_way = "hyphenated_props:original-destination = '/queue/in'"
    composite = CompositeDestination(queue("in"), (ForwardTarget(topic("out")),))
    where, [feed] = fed(subscription("out", selector=on_its_way), definitions=(composite,))
    assert kept(where, queue("in")) == [RoutedCopy(feed.target, queue("in"), topic("out"))]
    assert kept(where, topic("out")) == []


def test_no_local_and_persistent_only_leave_out_what_they_say():
    where, [feed] = fed(subscription("t", no_local=True))
    assert kept(where, topic("t"), sender="c") == []
    assert len(kept(where, topic("t"), sender="d")) == 1
    feed.persistent_only = True
    assert kept(where, topic("t"), sender="d") == []
    assert len(kept(where, topic("t"), sender="d", persistent=True)) == 1


def test_what_its_user_may_not_read_is_not_kept():
    where, _ = fed(subscription(">"), may_read=lambda _subscription, destination: destination == topic("public"))
    assert kept(where, topic("secret")) == []
    assert len(kept(where, topic("public"))) == 1


def test_what_comes_by_several_ways_is_kept_once_as_it_comes_first():
    twice = (VirtualTopic(">"), DEFAULT_VIRTUAL_TOPIC)
    where, _ = fed(subscription("VirtualTopic.x"), definitions=twice)
    assert len(kept(where, topic("VirtualTopic.x"))) == 1
    where, _ = fed(
        subscription("out"), definitions=(CompositeDestination(topic("in"), (ForwardTarget(topic("out")),)),)
    )
    assert len(kept(where, topic("in"))) == len(kept(where, topic("out"))) == 1
    to_both = CompositeDestination(topic("in"), (ForwardTarget(topic("a")), ForwardTarget(topic("b"))))
    where, [feed] = fed(subscription("a", "b"), definitions=(to_both,))
    assert kept(where, topic("in")) == [RoutedCopy(feed.target, topic("in"), topic("a"))]


def test_the_explanation_names_the_subscription_and_what_its_selector_said():
    where, [feed] = fed(subscription("t", selector="n > 1"))
    _, hops = explain_route({"n": "1"}, topic("t"), where)
    assert [(each.definition, each.target, each.selector, each.outcome) for each in hops] == [
        ("durable subscription 'sub' of client-id 'c'", feed.target, "n > 1", False)
    ]


# -- identity


parts = st.text(st.sampled_from("ab.:#%?, \n\u2003"), min_size=1, max_size=4).filter(str.strip)


@given(parts, parts, parts, parts, st.booleans(), st.booleans(), st.sampled_from([1, 2, 12]))
def test_two_subscriptions_never_share_a_log_and_its_name_is_read_back(one, name, other, its_name, first, second, gen):
    logs = [
        SubscriptionIdentity(client_id, of, (topic("t"),), shared=True, durable=durable).log(generation)
        for client_id, of, durable, generation in (
            (one, name, first, 1),
            (other, its_name, second, gen),
            ("", name, first, 1),
        )
    ]
    keys = [(one, name, first, 1), (other, its_name, second, gen), ("", name, first, 1)]
    for (log, key), (its, its_key) in itertools.combinations(zip(logs, keys, strict=True), 2):
        assert (log == its) == (key == its_key)
    for log in logs:
        assert Destination.parse(str(log)) == log


def test_it_survives_being_attributes_of_a_log():
    for options in (
        {},
        {"selector": "a = 'b'", "no_local": True, "groups": ("x", "y")},
        {"shared": True, "durable": False},
    ):
        one = subscription("a", "b.>", **options)
        assert SubscriptionIdentity.from_attributes(one.attributes()) == one


@pytest.mark.parametrize(
    ("client_id", "name", "topics", "options", "rule"),
    [
        ("", "n", "t", {}, "needs a client-id"),
        ("c", "n", "t", {"durable": False}, "neither durable nor shared"),
        ("c", "n", "t", {"shared": True, "no_local": True}, "cannot leave out"),
        ("c" * MAX_NAME, "n", "t", {}, "at most"),
    ],
)
def test_what_cannot_be_is_refused(client_id, name, topics, options, rule):
    with pytest.raises(RequestRefused, match=rule):
        SubscriptionIdentity(client_id, name, (topic(topics),), **options)


def test_it_is_one_of_topics():
    with pytest.raises(RequestRefused, match=r"not of queue://q"):
        SubscriptionIdentity("c", "n", (topic("t"), queue("q")))
