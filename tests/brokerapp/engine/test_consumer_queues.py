"""Which topics stand behind a queue."""

import pytest

from brokerapp.definitions import Composite, Definitions, Leg, VirtualTopic
from brokerapp.destination import Destination
from brokerapp.engine.consumer_queues import topic_behind, topics_behind

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
            Composite(t("open"), (Leg(t("x")), Leg(q)), forward_only=False),
            Composite(t("only"), (Leg(q),)),
            Composite(t("elsewhere"), (Leg(Destination.queue("r")),), forward_only=False),
            Composite(Destination.queue("source"), (Leg(q),), forward_only=False),
        )
    )
    assert list(topics_behind(definitions, q)) == [t("open")]
