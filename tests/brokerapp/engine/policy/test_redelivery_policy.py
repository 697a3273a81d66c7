"""Test number and delays of redeliveries by policy."""

import pytest

from brokerapp.engine.policy.redelivery import LONGEST_DELAY_MS, delay_ms, may_be_redelivered
from brokerapp.model.definitions import RedeliveryPolicy
from brokerapp.model.destination import Destination

Q = Destination.queue("q")


def delays(count, chance=0.0, **policy):
    return [delay_ms(RedeliveryPolicy(Q, **policy), failures, chance) for failures in range(1, count + 1)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, [1000, 1000, 1000, 1000]),
        ({"initial_redelivery_delay": 5, "redelivery_delay": 20}, [5, 20, 20, 20]),
        ({"initial_redelivery_delay": 0, "redelivery_delay": 20}, [0, 20, 20, 20]),
        ({"use_exponential_back_off": True, "back_off_multiplier": 2.0}, [1000, 2000, 4000, 8000]),
        ({"use_exponential_back_off": True}, [1000, 5000, 25000, 125000]),
        ({"use_exponential_back_off": True, "maximum_redelivery_delay": 6000}, [1000, 5000, 6000, 6000]),
        ({"use_exponential_back_off": True, "maximum_redelivery_delay": 10}, [1000, 1000, 1000, 1000]),
        ({"use_exponential_back_off": True, "back_off_multiplier": 1.0}, [1000, 1000, 1000, 1000]),
        ({"back_off_multiplier": 2.0}, [1000, 1000, 1000, 1000]),
    ],
)
def test_the_delays_of_a_policy(policy, expected):
    assert delays(4, **policy) == expected


def test_a_back_off_without_a_maximum_still_ends():
    policy = RedeliveryPolicy(Q, use_exponential_back_off=True, back_off_multiplier=9.0)
    assert delay_ms(policy, 10_000_000) == LONGEST_DELAY_MS


@pytest.mark.parametrize(("chance", "expected"), [(0.0, 1000), (1.0, 1150), (-1.0, 850), (0.5, 1075)])
def test_collision_avoidance_moves_all_delays_but_the_first(chance, expected):
    assert delays(3, chance, use_collision_avoidance=True) == [1000, expected, expected]


@pytest.mark.parametrize(("maximum", "chances"), [(0, 0), (1, 1), (6, 6), (-1, 99)])
def test_how_often_a_message_that_fails_is_redelivered(maximum, chances):
    policy = RedeliveryPolicy(Q, maximum_redeliveries=maximum)
    assert [may_be_redelivered(policy, failures) for failures in range(1, 100)] == [
        failures <= chances for failures in range(1, 100)
    ]
