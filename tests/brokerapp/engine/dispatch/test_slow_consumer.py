"""Test which consumers count as slow, and when a policy acts on it."""

from dataclasses import dataclass

import pytest

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.slow_consumer import SlowConsumerState, is_slow
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.policy_strategies import SlowConsumerStrategy
from brokerapp.model.stats_records import DestinationStats

QUEUE = Destination.queue("Q")
ENTRY = LogEntry("queue://Q", 1, Message("1", b"", b""))


@dataclass
class Peer:
    is_socket_full: bool = False


def subscription(depth=1, credit=0, blocked=False, holds=0, acked=0):
    made = Subscription("1", "1", "1", Peer(blocked), (QUEUE,), "client", 10, started=True)
    made.logs.append(MessageLog(DestinationStats(QUEUE), depth))
    made.credit, made.acked_count = credit, acked
    for number in range(holds):
        made.add_unacked(str(number), ENTRY)
    return made


@pytest.mark.parametrize(
    ("consumer", "slow"),
    [
        (subscription(), True),
        (subscription(credit=1), False),
        (subscription(credit=1, blocked=True), True),
        (subscription(depth=0), False),
        (subscription(depth=0, blocked=True), False),
    ],
)
def test_who_cannot_be_given_what_waits_is_slow(consumer, slow):
    assert is_slow(consumer) is slow


def test_a_topic_subscriber_is_slow_while_messages_wait_for_it():
    consumer = subscription(depth=0)
    consumer.pending.add((ENTRY,))
    assert is_slow(consumer)
    consumer.credit = 1
    assert not is_slow(consumer)


def over(strategy, consumers, start=0):
    """When, looked at every 100 ms (a consumer as it is then each time), the patience ends; None: never."""
    watch = SlowConsumerState(start, start)
    for step, consumer in enumerate(consumers, start=1):
        watch.update(consumer, strategy, step * 100)
        if watch.should_abort(strategy, step * 100):
            return step * 100
    return None


def test_who_is_slow_on_end_for_too_long_goes():
    strategy = SlowConsumerStrategy(check_period=100, max_slow_duration=300)
    assert over(strategy, [subscription()] * 9) == 400  # slow since 100
    assert over(strategy, [subscription(), subscription(), subscription(credit=1)] * 9) is None


def test_who_was_slow_too_often_goes():
    strategy = SlowConsumerStrategy(check_period=100, max_slow_duration=0, max_slow_count=3)
    assert over(strategy, [subscription(), subscription(credit=1)] * 9) == 500
    assert over(strategy, [subscription()] * 9) is None


def test_it_is_checked_as_often_as_the_policy_says():
    strategy = SlowConsumerStrategy(check_period=500, max_slow_duration=100)
    assert over(strategy, [subscription()] * 9) == 500


def test_who_does_not_acknowledge_goes_however_much_it_could_still_be_given():
    strategy = SlowConsumerStrategy(
        "abortSlowAckConsumer", check_period=100, max_slow_duration=100, max_time_since_last_ack=300
    )
    assert over(strategy, [subscription(credit=5, holds=2)] * 9) == 500  # slow from 400 on
    acking = [subscription(credit=5, holds=2, acked=step // 3) for step in range(20)]
    assert over(strategy, acking) is None


def test_who_holds_nothing_is_let_be_unless_the_policy_says_otherwise():
    times = {"check_period": 100, "max_slow_duration": 100, "max_time_since_last_ack": 300}
    idle = [subscription(credit=5)] * 9
    assert over(SlowConsumerStrategy("abortSlowAckConsumer", **times), idle) is None
    assert over(SlowConsumerStrategy("abortSlowAckConsumer", ignore_idle_consumers=False, **times), idle) == 500


def test_becoming_slow_is_told_once_until_it_is_over():
    watch = SlowConsumerState(0, 0)
    told = [watch.update(each, None, 0) for each in (subscription(), subscription(), subscription(credit=1))]
    assert told == [True, False, False]
    assert watch.update(subscription(), None, 0)
