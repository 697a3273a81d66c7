"""Test the routing table: policies and caches."""

import pytest

from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination

queue, topic = Destination.queue, Destination.topic
PATTERNS = (queue(">"), queue("A.>"), queue("A.B.>"), queue("A.B.*.*.C.D"), queue("A.B.x.y.C.D"), topic("A.*"))


@pytest.mark.parametrize(
    ("destination", "pattern"),
    [
        (queue("A.B.x.y.C.D"), queue("A.B.x.y.C.D")),
        (queue("A.B.v.w.C.D"), queue("A.B.*.*.C.D")),
        (queue("A.B.v"), queue("A.B.>")),
        (queue("A.v"), queue("A.>")),
        (queue("B"), queue(">")),
        (topic("A.v"), topic("A.*")),
        (topic("B"), None),
    ],
)
@pytest.mark.scenario("PO-01")
def test_the_most_specific_policy_wins(destination, pattern):
    entries = tuple(PolicyEntry(each, queue_prefetch=number) for number, each in enumerate(PATTERNS))
    for policies in (entries, entries[::-1]):
        found = RoutingTable(Definitions(1, (), policies), lambda *_: True).policy_for(destination)
        assert (found and found.destination) == pattern


def test_queues_are_handed_over_to_the_next_topology():
    first = RoutingTable(Definitions(1), lambda *_: True)
    first.add_queue("Consumer.A.VirtualTopic.x")
    second = RoutingTable(Definitions(2), lambda *_: True, first.queues)
    [virtual_topic] = second.virtual_destinations_for(topic("VirtualTopic.x"))
    assert second.consumer_queues(virtual_topic, "VirtualTopic.x") == ["Consumer.A.VirtualTopic.x"]
