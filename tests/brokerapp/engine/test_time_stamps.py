"""Time stamps: whose time counts, and how long a message may live."""

import pytest

from brokerapp.engine.time_stamps import stamped
from brokerapp.settings import TimeStamping

NOW = 1_000_000


@pytest.mark.scenario("DL-07")
@pytest.mark.parametrize(
    ("plugin", "timestamp", "expires", "expected"),
    [
        ({}, None, 0, (NOW, 0)),
        ({}, None, NOW + 500, (NOW, NOW + 500)),
        ({}, NOW - 300, NOW + 200, (NOW, NOW + 500)),  # its producer's clock is late: it lives as long all the same
        ({}, NOW + 300, NOW + 800, (NOW, NOW + 500)),
        ({}, 0, 17, (0, 17)),  # no time asked for
        ({"ttl_ceiling": 100}, None, NOW + 500, (NOW, NOW + 100)),
        ({"ttl_ceiling": 100}, None, NOW + 50, (NOW, NOW + 50)),
        ({"ttl_ceiling": 100}, None, 0, (NOW, 0)),
        ({"zero_expiration_override": 70}, None, 0, (NOW, NOW + 70)),
        ({"zero_expiration_override": 700, "ttl_ceiling": 100}, None, 0, (NOW, NOW + 100)),
        ({"future_only": True}, NOW + 300, NOW + 800, (NOW + 300, NOW + 800)),
        ({"future_only": True}, NOW - 300, NOW + 200, (NOW, NOW + 500)),
        ({}, NOW - 300, NOW - 400, (NOW, NOW - 400)),  # it never was meant to live
    ],
)
def test_time_and_expiry(plugin, timestamp, expires, expected):
    assert stamped(TimeStamping(**plugin), NOW, timestamp, expires) == expected
