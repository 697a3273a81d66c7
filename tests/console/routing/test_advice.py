"""Test warnings beside a definition, and its XML."""

import pytest

from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from console.routing.definitions.xml_fragment import xml_fragment_of
from console.routing.editor.advice import advice

Q, T = Destination.queue, Destination.topic
STATS = {
    Q("in"): DestinationStats(Q("in"), QueueSize=7, ConsumerCount=2),
    Q("lone"): DestinationStats(Q("lone"), QueueSize=1, ConsumerCount=1),
    T("VirtualTopic.X"): DestinationStats(T("VirtualTopic.X")),
}
STANDING = Definitions(policies=(PolicyEntry(Q("a.>")),), redelivery=RedeliverySettings((RedeliveryPolicy(Q("r.*")),)))
ADVICE = [
    (CompositeDestination(Q("in"), (ForwardTarget(Q("x")),)), "in has 2 consumers"),
    (CompositeDestination(Q("in"), (ForwardTarget(Q("x")),)), "in keeps its 7 messages"),
    (CompositeDestination(Q("lone"), (ForwardTarget(Q("x")),)), "lone has 1 consumer."),
    (CompositeDestination(Q("lone"), (ForwardTarget(Q("x")),)), "lone keeps its 1 message."),
    (CompositeDestination(Q("a"), (ForwardTarget(Q("x"), "a = 1"),)), "Unmatched messages are discarded"),
    (
        CompositeDestination(Q("a"), (ForwardTarget(Q("x")),), send_when_not_matched=True),
        "sendWhenNotMatched has no effect",
    ),
    (
        CompositeDestination(Q("a"), (ForwardTarget(Q("x"), "a = 1"), ForwardTarget(Q("x"), "b = 1"))),
        "x is a target more than once",
    ),
    (CompositeDestination(T("VirtualTopic.X"), (ForwardTarget(Q("x")),)), "is also a virtual topic"),
    (VirtualTopic("VirtualTopic.X.*", prefix="P.*."), "its consumer queues get a copy, too"),
    (VirtualTopic("VirtualTopic.X"), "these get each message once"),
    (VirtualTopic("Other.>", set_original_destination=False), "copied to all consumer queues again"),
    (VirtualTopic("Other.>", selector_aware=True), "misses messages"),
    (VirtualTopic("Other.>"), "No existing topic matches"),
    (MirroredQueue(), "virtual topics, too"),
    (VirtualTopic("VirtualTopic.X", selector_aware=True), "VirtualTopic.> overrides selectorAware"),
    (VirtualTopic("VirtualTopic.X", drop_on_resource_limit=True), "VirtualTopic.> overrides dropOnResourceLimit"),
    (VirtualTopic("VirtualTopic.X", set_original_destination=False), "get each message twice"),
    (PolicyEntry(Q("a.b")), "a.b overrides a.> for all its matches"),
    (PolicyEntry(Q(">")), "a.> overrides > for all its matches"),
    (PolicyEntry(Q("*.b")), "a.> overrides *.b where both match"),
    (RedeliveryPolicy(Q("r.b")), "r.b overrides r.*"),
]


@pytest.mark.parametrize(("definition", "part"), ADVICE, ids=[each[1] for each in ADVICE])
def test_advice_is_given(definition, part):
    assert any(part in sentence for sentence in advice(definition, STANDING, STATS))


def test_what_holds_no_surprise_gets_no_advice():
    assert (
        advice(
            CompositeDestination(Q("quiet"), (ForwardTarget(Q("x")), ForwardTarget(Q("y"), "a = 1"))),
            Definitions(),
            STATS,
        )
        == []
    )
    assert advice(VirtualTopic("VirtualTopic.X"), Definitions(0, ()), STATS) == []


def test_the_xml_of_a_definition_is_the_part_of_the_file_that_says_it():
    xml = xml_fragment_of(VirtualTopic("Events.>", prefix="App.*.", selector_aware=True))
    assert xml.startswith("<destinationInterceptors>")
    assert '<virtualTopic name="Events.&gt;" prefix="App.*." selectorAware="true"/>' in xml
