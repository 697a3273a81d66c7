"""Test which of several bridges to the same consumers serves them."""

from itertools import permutations

import pytest

from brokerapp.core.subscriptions.duplicate_suppression import BridgeBid, who_serve


def bid(key, consumers, priority=0, yields=True, hops=1, since=1):
    return BridgeBid(key, priority, hops, since, frozenset(consumers), yields)


@pytest.mark.parametrize(
    ("bids", "serving"),
    [
        ([bid("near", "a"), bid("late", "a", since=2)], {"near"}),
        ([bid("far", "a", -8), bid("near", "a", -5, since=2)], {"near"}),
        ([bid("far", "a", hops=2), bid("near", "a", since=2)], {"near"}),
        ([bid("b", "b"), bid("c", "c")], {"b", "c"}),
        ([bid("b", "b"), bid("both", "bc", since=2)], {"b", "both"}),
        ([bid("both", "bc"), bid("b", "b", since=2), bid("c", "c", since=3)], {"both"}),
        ([bid("b", "b"), bid("c", "c", since=2), bid("both", "bc", since=3)], {"b", "c"}),
        ([bid("near", "a"), bid("always", "a", yields=False, since=2)], {"near", "always"}),
        ([bid("for whoever", ""), bid("near", "a")], {"for whoever", "near"}),
        ([bid("one", "a"), bid("other", "a")], {"one"}),
    ],
)
def test_each_consumer_is_served_by_the_best_way_and_none_that_yields_serves_in_vain(bids, serving):
    for heard in permutations(bids):  # nodes hear of them in any order, and agree
        assert {each.key for each in who_serve(heard)} == serving
