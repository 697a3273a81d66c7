"""Test that every plan stays within limits that brokers can survive, and is reproducible."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chaos.plan import (
    MAX_CONCURRENT_FAULTS,
    RECOVERY_SECONDS,
    WARM_UP_SECONDS,
    FaultKind,
    Topology,
    duration_range,
    plan,
)

SHAPE = Topology({"a": ("a1", "a2"), "b": ("b1", "b2"), "c": ("c1", "c2")}, ("a-b", "b-c"), 2.0)
SECONDS = 40.0


@settings(max_examples=25, deadline=None)
@given(st.integers(0), st.floats(0, SECONDS))
def test_a_plan_keeps_within_its_bounds(seed, seconds):
    faults = plan(seed, seconds, SHAPE)
    assert faults == sorted(faults, key=lambda each: each.begins)
    for each in faults:
        assert WARM_UP_SECONDS <= each.begins <= each.ends <= seconds, "all is mended at the end"
        assert each.target in SHAPE.targets(each.kind), "it hits what it can hit"
        low, high = duration_range(each.kind, SHAPE)
        assert low <= each.ends - each.begins <= high + 1e-9
        assert sum(other.begins <= each.begins < other.ends for other in faults) <= MAX_CONCURRENT_FAULTS, "few at once"
    for one, other in itertools.combinations(faults, 2):
        if SHAPE.domain(one.target) == SHAPE.domain(other.target):
            assert one.ends + RECOVERY_SECONDS <= other.begins, "in one broker one thing is wrong at a time"


@settings(max_examples=25, deadline=None)
@given(st.integers(0))
def test_all_kinds_come_before_one_comes_again(seed):
    faults = plan(seed, SECONDS, SHAPE)
    assert {each.kind for each in faults[: len(FaultKind)]} == set(FaultKind)


def test_a_node_stands_still_for_clearly_less_or_more_than_its_timeout():
    assert duration_range(FaultKind.PAUSE, SHAPE)[1] < 0.8 * SHAPE.node_timeout
    assert duration_range(FaultKind.PAUSE_PAST_TIMEOUT, SHAPE)[0] > 1.2 * SHAPE.node_timeout


def test_a_seed_gives_one_plan_and_another_seed_another():
    assert plan(1, SECONDS, SHAPE) == plan(1, SECONDS, SHAPE) != plan(2, SECONDS, SHAPE)


def test_only_the_kinds_that_are_wanted_come():
    assert {each.kind for each in plan(1, SECONDS, SHAPE, [FaultKind.KILL])} == {FaultKind.KILL}
