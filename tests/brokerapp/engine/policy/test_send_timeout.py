"""Test how long a send is blocked, and by which limit."""

import pytest

from brokerapp.engine.policy.send_timeout import (
    WARNING_INTERVAL_MS,
    memory_limit_of,
    send_timeout_ms,
    store_limit_of,
    warning_interval_ms,
)
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination

FOR_EVER = None


def policy(**fields):
    return PolicyEntry(Destination.queue("Q"), **fields)


@pytest.mark.parametrize(
    ("entry", "fails", "fails_after_ms", "patience"),
    [
        (None, False, 0, FOR_EVER),
        (policy(), False, 0, FOR_EVER),
        (None, True, 0, 0),
        (None, False, 500, 500),
        (None, True, 500, 0),
        (policy(send_fail_if_no_space=True), False, 0, 0),
        (policy(send_fail_if_no_space=False), True, 0, FOR_EVER),
        (policy(send_fail_if_no_space_after_timeout=20), False, 500, 20),
        (policy(send_fail_if_no_space_after_timeout=0), False, 500, FOR_EVER),
        (policy(send_fail_if_no_space=False, send_fail_if_no_space_after_timeout=20), True, 0, 20),
    ],
)
def test_a_policy_counts_before_the_broker_and_failing_before_waiting(entry, fails, fails_after_ms, patience):
    assert send_timeout_ms(entry, fails, fails_after_ms) == patience


@pytest.mark.parametrize(
    ("entry", "limit"),
    [
        (None, 0),
        (policy(), 0),
        (policy(memory_limit=10), 0),
        (policy(memory_limit=10, queue_cursor="storeCursor"), 0),
        (policy(memory_limit=10, queue_cursor="vmQueueCursor"), 10),
        (policy(memory_limit=10, queue_cursor="vmQueueCursor", producer_flow_control=False), 0),
        (policy(store_limit=20), 20),
        (policy(store_limit=20, producer_flow_control=False), 20),
        (policy(store_limit=20, memory_limit=10), 20),
        (policy(store_limit=20, memory_limit=10, queue_cursor="vmQueueCursor"), 10),
    ],
)
def test_a_queue_is_bounded_by_its_store_limit_and_by_memory_if_its_cursor_is_there(entry, limit):
    assert store_limit_of(entry).bytes == limit


@pytest.mark.parametrize(
    ("entry", "limit"),
    [
        (None, 0),
        (policy(store_limit=20), 0),
        (policy(memory_limit=10), 10),
        (policy(memory_limit=10, producer_flow_control=True), 10),
        (policy(memory_limit=10, producer_flow_control=False), 0),
    ],
)
def test_a_topic_is_bounded_by_its_memory_unless_flow_control_is_off(entry, limit):
    assert memory_limit_of(entry).bytes == limit


def test_warnings_come_as_often_as_the_policy_says():
    assert warning_interval_ms(None) == warning_interval_ms(policy()) == WARNING_INTERVAL_MS
    assert warning_interval_ms(policy(blocked_producer_warning_interval=50)) == 50
    assert warning_interval_ms(policy(blocked_producer_warning_interval=0)) == 0
