"""Which of the bridges that lead to the same consumers serve them."""

import pytest

from brokerapp.destination import Destination
from brokerapp.engine.crossing import Crossing
from brokerapp.engine.subscription import Subscription
from brokerapp.rivals import who_serve


def bridge(name, consumers, priority=0, yields=True, path=("there",)):
    crossing = Crossing(name, 1, path, consumers=frozenset(consumers), yields=yields)
    where = (Destination.queue("q"),)
    return Subscription(name, name, name, None, where, "client", 1, crossing, priority=priority, crossing=crossing)


@pytest.mark.parametrize(
    ("bridges", "serving"),
    [
        ([bridge("near", "a"), bridge("far", "a")], {"near"}),
        ([bridge("far", "a", -8), bridge("near", "a", -5)], {"near"}),
        ([bridge("b", "b"), bridge("c", "c")], {"b", "c"}),
        ([bridge("b", "b"), bridge("both", "bc")], {"b", "both"}),
        ([bridge("both", "bc"), bridge("b", "b"), bridge("c", "c")], {"both"}),
        ([bridge("b", "b"), bridge("c", "c"), bridge("both", "bc")], {"b", "c"}),
        ([bridge("near", "a"), bridge("always", "a", yields=False)], {"near", "always"}),
        ([bridge("for whoever", ""), bridge("near", "a")], {"for whoever", "near"}),
    ],
)
def test_each_consumer_is_served_by_the_shortest_way_and_none_that_yields_serves_in_vain(bridges, serving):
    assert {each.name for each in who_serve(dict.fromkeys(bridges, False))} == serving


def test_of_equal_priorities_the_shorter_way_serves_whichever_was_there_first():
    near, far = bridge("near", "a"), bridge("far", "a", path=("there", "farther"))
    assert who_serve({far: True, near: False}) == who_serve({near: True, far: False}) == {near}


def test_among_equals_who_serves_goes_on():
    first, second = bridge("first", "a"), bridge("second", "a")
    assert who_serve({first: False, second: True}) == {second}
