"""Test which messages of a queue a bridge may take under the queue's policy, and when."""

from types import SimpleNamespace

import pytest

from brokerapp.engine.dispatch.bridge_rate_filter import BridgeRateFilter
from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeDecision, BridgeEligibility
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.policy_strategies import NetworkBridgeFilter
from brokerapp.model.stats_records import DestinationStats
from brokerapp.selectors import compile_selector

QUEUE = Destination.queue("q")
REPLAY = NetworkBridgeFilter(replay_when_no_consumers=True)


class Here:
    """A queue with a bridge to the broker `there`, at a time that is told."""

    def __init__(self, rules, ttl=1):
        self.now, self.timers = 1_000, []
        self.log = MessageLog(DestinationStats(QUEUE), rules=DispatchPolicy(bridge_filter=rules))
        self.log.bridge_filter = BridgeRateFilter(
            self.log.name, self.log.consumers, lambda: self.now, self.timers.append
        )
        self.bridge = self.consumer("bridge", BridgeEligibility("there", ttl))

    def consumer(self, name, selector=None):
        made = Subscription(name, name, name, SimpleNamespace(is_socket_full=False), (QUEUE,), "client", 100, selector)
        made.started = True
        self.log.consumers.append(made)
        return made

    def came(self, seq, *path, at=1_000, **headers):
        head = "".join(f"{name}:{value}\n" for name, value in {"message-id": str(seq), **headers}.items())
        message = Message(str(seq), head.encode(), b"", born_us=at * 1000, path=path)
        self.log.append_batch([LogEntry(self.log.name, seq, message)])

    def given(self):
        return sorted((who.name, each.seq) for who, entries in self.log.dispatch() for each in entries)

    def later(self):
        """At the time that was asked for."""
        self.now = self.timers.pop()
        self.log.reset_offers()
        return self.given()


@pytest.mark.parametrize(
    ("path", "ttl", "verdict"),
    [
        ((), 1, BridgeDecision.CROSSES),
        (("far",), 1, BridgeDecision.TOO_FAR),
        (("far",), 2, BridgeDecision.CROSSES),
        (("far", "farther"), -1, BridgeDecision.CROSSES),
        (("there",), -1, BridgeDecision.CAME_FROM_THERE),
    ],
)
def test_a_message_goes_as_far_as_its_ttl_and_never_to_where_it_was(path, ttl, verdict):
    assert BridgeEligibility("there", ttl).verdict(path, lambda _selector: True) is verdict


def test_without_a_policy_nothing_goes_back():
    here = Here(None)
    here.came(1, "there")
    assert (here.given(), here.timers) == ([], [])


def test_what_came_from_there_goes_back_once_nobody_consumes_here_whatever_its_ttl():
    here = Here(REPLAY)
    own = here.consumer("own")
    own.credit = 0
    here.came(1, "there")
    assert here.given() == []
    here.log.remove_consumer(own)
    assert here.given() == [("bridge", 1)]


def test_what_came_from_elsewhere_crosses_no_more_bridges_than_without_the_policy():
    here = Here(REPLAY)
    here.came(1, "far")
    assert here.given() == []


def test_other_bridges_are_no_consumers():
    here = Here(REPLAY)
    here.consumer("other bridge", BridgeEligibility("elsewhere", 1)).credit = 0
    here.came(1, "there")
    assert here.given() == [("bridge", 1)]


@pytest.mark.parametrize(("aware", "given"), [(False, []), (True, [("bridge", 1)])])
def test_a_consumer_here_that_does_not_want_it_keeps_it_unless_the_policy_is_aware_of_selectors(aware, given):
    here = Here(NetworkBridgeFilter(replay_when_no_consumers=True, selector_aware=aware))
    here.consumer("own", compile_selector("colour = 'red'"))
    here.came(1, "there", colour="blue")
    assert here.given() == given


def test_it_goes_back_after_the_delay():
    here = Here(NetworkBridgeFilter(replay_when_no_consumers=True, replay_delay=500))
    here.came(1, "there")
    here.came(2)
    assert here.given() == [("bridge", 2)]
    assert here.timers == [1_500]
    assert here.later() == [("bridge", 1)]


def test_no_more_cross_in_a_span_of_time_than_the_limit_and_the_rest_later():
    here = Here(NetworkBridgeFilter(rate_limit=2, rate_duration=300))
    for seq in range(1, 6):
        here.came(seq)
    assert here.given() == [("bridge", 1), ("bridge", 2)]
    assert here.later() == [("bridge", 3), ("bridge", 4)]
    assert here.now == 1_300
    assert here.later() == [("bridge", 5)]


def test_those_who_consume_here_get_what_the_bridge_may_not_take_now():
    here = Here(NetworkBridgeFilter(rate_limit=1))
    here.consumer("own")
    for seq in range(1, 7):
        here.came(seq)
    assert here.given() == [("bridge", 1), *(("own", seq) for seq in range(2, 7))]


def test_a_policy_that_comes_later_lets_go_what_stayed():
    here = Here(None)
    here.came(1, "there")
    assert here.given() == []
    here.log.apply_policy(DispatchPolicy(bridge_filter=REPLAY))
    assert here.given() == [("bridge", 1)]
