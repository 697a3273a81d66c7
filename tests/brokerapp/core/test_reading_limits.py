"""Test how much clients may have on its way to queues that are limited."""

from math import inf
from types import SimpleNamespace

from brokerapp.core.flow_control.producer_flow import MIN_ON_ITS_WAY_BYTES, FlowControl
from tests.broker_parts import part_of


class FakeClient:
    """As much of a client as is limited."""

    log_limit = inf


def test_a_client_has_the_least_limit_of_the_logs_it_sends_to_and_none_once_there_are_none():
    sizes = {"small": 1, "large": 10**6, "free": 0}
    limits = SimpleNamespace(of_logs=True, of_log=sizes.__getitem__)
    flow = part_of(FlowControl, limits=limits)
    client = FakeClient()

    def limit_after(*logs):
        flow.limit_reading(SimpleNamespace(copies=[[(log, "", "") for log in logs]], bytes_by_client={client: 1}))
        return client.log_limit

    assert [limit_after("large", "free"), limit_after("small", "large"), limit_after("free")] == [
        10**6, MIN_ON_ITS_WAY_BYTES, inf,
    ]  # fmt: skip
    limit_after("large")
    limits.of_logs = False
    assert limit_after("large") == inf
