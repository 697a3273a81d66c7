"""Test that cycles of composite destinations are found, by every kind of forwarding."""

import pytest

from brokerapp.engine.routing.cycle_detection import find_cycle
from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    VirtualTopic,
)
from brokerapp.model.destination import Destination


def composite(name, *legs, selector=None, **options):
    return CompositeDestination(
        Destination.parse(name), tuple(ForwardTarget(Destination.parse(leg), selector) for leg in legs), **options
    )  # fmt: skip


def loop(*definitions):
    found = find_cycle(Definitions(virtual_destinations=definitions))
    return found and [str(each) for each in found]


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        ((), None),
        ((composite("A", "B"),), None),
        ((composite("A", "A"),), ["A", "A"]),
        ((composite("A", "topic://A"),), None),
        ((composite("A", "B"), composite("B", "C"), composite("D", "A", "C")), None),
        ((composite("A", "B"), composite("B", "A")), ["A", "B", "A"]),
        ((composite("X", "A"), composite("A", "B"), composite("B", "C"), composite("C", "A")), ["A", "B", "C", "A"]),
        ((composite("A", "B", selector="n = 1"), composite("B", "A", forward_only=False)), ["A", "B", "A"]),
        ((composite("IN.*", "IN.x"),), ["IN.*", "IN.*"]),
        ((composite("IN.>", "IN"),), ["IN.>", "IN.>"]),
        ((composite("IN.*", "IN.x.y"),), None),
        ((composite("IN.>", "INN"),), None),
        ((composite("A", "B", "C"), composite("B", "D"), composite("C", "D"), composite("D", "E")), None),
        (
            (DEFAULT_VIRTUAL_TOPIC, composite("Consumer.A.VirtualTopic.X", "topic://VirtualTopic.X")),
            ["Consumer.A.VirtualTopic.X", "topic://VirtualTopic.X", "Consumer.A.VirtualTopic.X"],
        ),
        ((composite("Consumer.A.VirtualTopic.X", "topic://VirtualTopic.X"),), None),
        ((DEFAULT_VIRTUAL_TOPIC, composite("Consumer.A.VirtualTopic.Y", "topic://VirtualTopic.X")), None),
        (
            (MirroredQueue("M."), composite("topic://M.Q", "Q")),
            ["topic://M.Q", "Q", "topic://M.Q"],
        ),
        (
            (MirroredQueue("M."), composite("Q", "X", forward_only=False), composite("topic://M.Q", "Q")),
            ["Q", "topic://M.Q", "Q"],
        ),
        ((MirroredQueue("M."), composite("Q", "X"), composite("topic://M.Q", "Q")), None),
        ((MirroredQueue("M."), composite("topic://M.>", "AUDIT")), ["topic://M.>", "AUDIT", "topic://M.>"]),
        ((MirroredQueue("", ""), VirtualTopic(">", "", ""), composite("A", "B")), ["B", "topic://B", "B"]),
        ((MirroredQueue("", ""), VirtualTopic(">", "", "")), [">", "topic://>", ">"]),
        ((MirroredQueue(), DEFAULT_VIRTUAL_TOPIC), None),
        ((MirroredQueue(), VirtualTopic(">", "C.*."), composite("A", "B")), None),
    ],
)
@pytest.mark.scenario("CD-19", "X14")
def test_a_loop_is_found_and_named(definitions, expected):
    native = expected and [str(Destination.parse(each)) for each in expected]
    assert loop(*definitions) == native


def test_a_long_chain_is_no_loop_and_no_burden():
    chain = [composite(f"Q{i}", f"Q{i + 1}") for i in range(500)]
    assert loop(*chain) is None
    assert len(loop(*chain, composite("Q500", "Q0"))) == 502
