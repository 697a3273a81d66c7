"""Test which messages of a topic are discarded when a subscriber's backlog is too large."""

from collections import deque

import pytest

from brokerapp.engine.entries.eviction import MAX_PENDING, evict, pending_limit
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.message import Message
from brokerapp.model.policy_strategies import MessageEviction, PendingMessageLimit

NOW = 1_000_000


def entry(name, priority=4, expires=0, **properties):
    head = "".join(f"{key}:{value}\n" for key, value in {"message-id": name, **properties}.items())
    return LogEntry("topic://T", 0, Message(name, head.encode(), b"", priority=priority, expires=expires))


def left(pending, eviction=None):
    """Names of those that went, and of those that stayed."""
    row = deque(pending)
    gone = evict(row, eviction or MessageEviction(), NOW)
    return [each.message.id for each in gone], [each.message.id for each in row]


def test_the_oldest_goes():
    assert left([entry("a"), entry("b", priority=0), entry("c")]) == (["a"], ["b", "c"])


def test_the_oldest_of_the_lowest_priority_goes():
    row = [entry("a", 4), entry("b", 1), entry("c", 9), entry("d", 1)]
    assert left(row, MessageEviction("lowestPriority")) == (["b"], ["a", "c", "d"])


def test_those_that_a_later_one_of_the_same_value_replaces_go():
    row = [
        entry("a", symbol="IBM"), entry("b", symbol="SUN"), entry("c"), entry("d", symbol="IBM"),
        entry("e", symbol="IBM"),
    ]  # fmt: skip
    assert left(row, MessageEviction("uniqueProperty", "symbol")) == (["a", "d"], ["b", "c", "e"])


def test_the_oldest_goes_when_no_value_comes_twice():
    row = [entry("a", symbol="IBM"), entry("b", symbol="SUN"), entry("c")]
    assert left(row, MessageEviction("uniqueProperty", "symbol")) == (["a"], ["b", "c"])


@pytest.mark.parametrize(("watermark", "gone"), [(3, ["b", "c"]), (4, ["a"])])
def test_expired_ones_go_first_once_so_many_wait(watermark, gone):
    row = [entry("a"), entry("b", expires=NOW), entry("c", expires=1)]
    assert left(row, MessageEviction(evict_expired_messages_high_watermark=watermark))[0] == gone


@pytest.mark.parametrize(
    ("limit", "prefetch", "wanted", "result"),
    [
        (None, 5, 0, MAX_PENDING),
        (None, 5, 3, MAX_PENDING),  # without a policy nobody listens
        (PendingMessageLimit(limit=50), 5, 0, 50),
        (PendingMessageLimit(limit=0), 5, 0, 0),
        (PendingMessageLimit(limit=-1), 5, 0, MAX_PENDING),
        (PendingMessageLimit(limit=50), 5, 3, 3),
        (PendingMessageLimit(limit=50), 5, 70, 50),  # it can only be lowered
        (PendingMessageLimit(limit=-1), 5, 70, 70),
        (PendingMessageLimit(limit=50), 5, -1, 50),
        (PendingMessageLimit("prefetchRate", multiplier=2.5), 10, 0, 25),
        (PendingMessageLimit("prefetchRate", multiplier=2.5), 10, 3, 3),
        (PendingMessageLimit("prefetchRate"), 10, 0, 5),
    ],
)
def test_how_many_may_wait(limit, prefetch, wanted, result):
    assert pending_limit(limit, prefetch, wanted) == result
