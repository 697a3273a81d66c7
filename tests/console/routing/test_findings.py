"""Test issues of the routing: unused and shadowed definitions."""

import pytest

from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, PolicyEntry, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from console.routing.map.findings import RoutingFindingKind, can_match, find_routing_issues

Q, T = Destination.queue, Destination.topic
VT = VirtualTopic("VirtualTopic.>")


def stats(*names: str, consumers: int = 0, size: int = 0) -> dict:
    found = [Destination.parse(each) for each in names]
    return {each: DestinationStats(each, ConsumerCount=consumers, QueueSize=size) for each in found}


def composite(*legs: ForwardTarget, name: str = "in", **options) -> CompositeDestination:
    return CompositeDestination(Q(name), legs, **options)


READ = stats("queue://x", "queue://y", "queue://Consumer.A.VirtualTopic.T", consumers=1)
ABOUT = [
    (RoutingFindingKind.UNREAD, (VT,), stats("queue://Consumer.A.VirtualTopic.T", size=3), "Depth: 3 messages", True),
    (RoutingFindingKind.STRAY, (VT,), stats("queue://Consumer.A.Orders"), "the topic Orders", False),
    (RoutingFindingKind.NO_QUEUES, (VT,), stats("topic://VirtualTopic.T"), "subscribers only", False),
    (RoutingFindingKind.NEVER, (VirtualTopic("ActiveMQ.Advisory.>"),), {}, "advisories", False),
    (RoutingFindingKind.NEVER, (composite(ForwardTarget(Q("x"), "1 = 2")),), READ, "No message matches 1 = 2", False),
    (RoutingFindingKind.SHADOWED, (VT, VirtualTopic("VirtualTopic.T")), READ, "does the same", False),
    (
        RoutingFindingKind.SHADOWED,
        (composite(ForwardTarget(Q("x")), ForwardTarget(Q("x"), "a = 1")),),
        READ,
        "forwarded twice",
        False,
    ),
    (
        RoutingFindingKind.SHADOWED,
        (composite(ForwardTarget(Q("y"), "a = 1"), ForwardTarget(Q("x")), ForwardTarget(Q("x"))),),
        READ,
        "forwarded twice",
        False,
    ),
    (RoutingFindingKind.SHADOWED, (composite(ForwardTarget(Q("y")), name="x"),), READ, "without messages", True),
    (RoutingFindingKind.DEAD_TARGET, (composite(ForwardTarget(Q("nowhere"))),), {}, "No messages yet", False),
    (RoutingFindingKind.DEAD_TARGET, (composite(ForwardTarget(T("nobody"))),), {}, "no subscribers", True),
]


@pytest.mark.parametrize(("sort", "definitions", "existing", "part", "urgent"), ABOUT)
def test_an_orphan_is_found_with_its_reason(sort, definitions, existing, part, urgent):
    found = [each for each in find_routing_issues(Definitions(0, definitions), existing) if each.kind is sort]
    assert found
    assert any(part in each.sentence and each.is_urgent is urgent for each in found)
    assert all(each.definition or each.destination for each in found), "each has a next step"


def test_what_is_used_is_no_orphan():
    chained = composite(ForwardTarget(T("VirtualTopic.T"), "a = 1"), ForwardTarget(Q("x")), ForwardTarget(Q("next")))
    further = composite(ForwardTarget(Q("y")), name="next")
    assert find_routing_issues(Definitions(0, (VT, chained, further)), READ) == []


def test_a_policy_that_decides_nothing_is_shadowed():
    policies = (PolicyEntry(Q("x")), PolicyEntry(Q("*")), PolicyEntry(Q("y")), PolicyEntry(Q("z.>")))
    found = find_routing_issues(Definitions(0, (), policies), stats("queue://x", "queue://y", consumers=1))
    assert [(each.kind, each.title) for each in found] == [(RoutingFindingKind.SHADOWED, "queue://*")]


@pytest.mark.parametrize(
    ("selector", "can"),
    [
        ("1 = 2", False), ("FALSE", False), ("a = 1 AND a = 2", False), ("'x' = a AND a = 'y'", False),
        ("1 = 1", True), ("a = 1 OR a = 2", True), ("a = 1 AND b = 2", True), ("a = 1 AND a = 1", True),
        ("XPATH '//a'", True),
    ],
)  # fmt: skip
def test_a_selector_that_no_message_can_match_is_told(selector, can):
    assert can_match(selector) is can
