"""Test which topics feed a consumer queue."""

import pytest

from brokerapp.engine.routing.consumer_queues import topic_behind, topics_behind, virtual_destinations_behind
from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination

TOPICS_BEHIND = [
    ("Consumer.A.VirtualTopic.Orders", VirtualTopic("VirtualTopic.>"), "VirtualTopic.Orders"),
    ("Consumer.A.B.VirtualTopic.Orders", VirtualTopic("VirtualTopic.>"), None),
    ("Consumer.A.VirtualTopic.x.y", VirtualTopic("VirtualTopic.*"), None),
    ("VirtualTopic.Orders.q", VirtualTopic("VirtualTopic.>", prefix="", postfix=".q"), "VirtualTopic.Orders"),
    ("Consumer.A.Other", VirtualTopic("VirtualTopic.>"), None),
    ("Consumer.A.", VirtualTopic(">"), None),
]


@pytest.mark.parametrize(("queue", "definition", "topic"), TOPICS_BEHIND)
def test_the_topic_behind_a_consumer_queue(queue, definition, topic):
    assert topic_behind(definition, queue) == topic


def test_an_open_composite_topic_stands_behind_its_queues_and_no_other_composite_does():
    q, t = Destination.queue("q"), Destination.topic
    definitions = Definitions(
        virtual_destinations=(
            CompositeDestination(t("open"), (ForwardTarget(t("x")), ForwardTarget(q)), forward_only=False),
            CompositeDestination(t("only"), (ForwardTarget(q),)),
            CompositeDestination(t("elsewhere"), (ForwardTarget(Destination.queue("r")),), forward_only=False),
            CompositeDestination(Destination.queue("source"), (ForwardTarget(q),), forward_only=False),
        )
    )
    assert list(topics_behind(definitions, q)) == [t("open")]


def test_what_is_sent_to_virtual_destinations_comes_to_their_targets_and_to_patterns_of_these():
    q, t = Destination.queue, Destination.topic
    definitions = Definitions(
        virtual_destinations=(
            CompositeDestination(t("news"), (ForwardTarget(t("x.1")), ForwardTarget(q("x.1"), "a = 1"))),
            CompositeDestination(q("orders"), (ForwardTarget(q("x.2")),), forward_only=False),
            VirtualTopic("VirtualTopic.>"),
        )
    )

    def behind(target):
        return [str(each) for each in virtual_destinations_behind(definitions, target)]

    assert behind(q("x.1")) == behind(t("x.1")) == ["topic://news"]
    assert behind(q("x.*")) == ["topic://news", "queue://orders"]
    assert behind(q("Consumer.A.VirtualTopic.a")) == ["topic://VirtualTopic.a"]
    assert behind(t("Consumer.A.VirtualTopic.a")) == behind(t("news")) == []
