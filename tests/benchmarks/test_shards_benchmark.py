"""Test what the benchmark of shards sends where, and to which share of a processor it holds."""

from benchmarks.brokers.cpu_limit import MIN_QUOTA_US, limits_of
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.messages import first_number
from benchmarks.scenarios.routes import VirtualTopics
from benchmarks.shards.__main__ import queues_of
from brokerapp.engine.sharding.families import Families
from brokerapp.engine.sharding.placement import place
from brokerapp.model.definitions import Definitions


def test_each_producer_sends_to_a_topic_of_its_own_whose_queues_take_only_that():
    route = VirtualTopics(["A", "B"], 3)
    sent = [first_number(producer) for producer in range(2)]
    assert [route.destination(each) for each in sent] == ["/topic/A", "/topic/B"]
    taken = [[group.takes(each) for each in sent] for group in route.groups(ActiveMQDialect())]
    assert taken == [[True, False]] * 3 + [[False, True]] * 3


def test_the_two_queues_of_a_transaction_are_in_as_many_shards_as_asked_for():
    for shards in (1, 2):
        route = queues_of(shards)
        names = [route.destination(number).removeprefix("/queue/") for number in range(2)]
        family_of = Families(Definitions()).family_of
        assert len({place(family_of(f"queue://{name}"), range(2), {}) for name in names}) == shards


def test_a_small_share_has_a_period_long_enough_for_what_the_kernel_gives_at_least():
    for share in (0.5, 0.1, 0.06, 0.01):
        quota, period = limits_of(share)
        assert quota >= MIN_QUOTA_US
        assert abs(quota / period - share) < 0.02 * share
