"""Test what waits for a subscriber of topics: limits, what is discarded, and how much is taken at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.engine.entries import pending_messages
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.pending_messages import PendingMessages
from brokerapp.model.message import Message
from brokerapp.model.policy_strategies import MessageEviction

EVICTIONS = (
    MessageEviction(),
    MessageEviction("lowestPriority"),
    MessageEviction("uniqueProperty", "symbol"),
    MessageEviction(evict_expired_messages_high_watermark=3),
)


def entries(*sizes):
    return [LogEntry("topic://T", 0, Message(str(at), b"", b"x" * size)) for at, size in enumerate(sizes)]


def filled(*sizes, max_count=100):
    pending = PendingMessages()
    pending.max_count = max_count
    pending.add(entries(*sizes))
    return pending


def ids(found):
    return [each.message.id for each in found]


@pytest.mark.parametrize(("room", "taken"), [(0, []), (2, ["0", "1"]), (9, ["0", "1", "2"])])
def test_no_more_is_taken_than_there_is_room_for_and_the_oldest_first(room, taken):
    pending = filled(1, 2, 3)
    assert ids(pending.take(room)) == taken
    assert (len(pending), pending.bytes) == (3 - len(taken), sum((1, 2, 3)[len(taken) :]))


def test_no_more_is_taken_than_a_socket_takes_at_once_but_one_message_always(monkeypatch):
    monkeypatch.setattr(pending_messages, "MAX_TAKEN_BYTES", 10)
    pending = filled(50, 4, 7, 1)
    assert [ids(pending.take(9)) for _ in range(3)] == [["0"], ["1", "2"], ["3"]]


def test_a_message_that_is_removed_makes_room():
    pending = filled(3, 4)
    pending.remove(next(iter(pending)))
    assert (ids(pending), pending.bytes) == (["1"], 4)


def test_the_oldest_are_discarded_until_the_rest_is_within_both_limits():
    pending = filled(1, 1, 1, 8, max_count=3)
    pending.max_bytes = 8
    assert pending.is_over_limit
    counts = [(each.message.id, pending.discarded_count) for each in pending.discard_excess(0)]
    assert counts == [("0", 1), ("1", 2), ("2", 3)]
    assert (ids(pending), pending.is_over_limit) == (["3"], False)


def limited(eviction, max_count, max_bytes):
    pending = PendingMessages()
    pending.max_count, pending.max_bytes, pending.eviction = max_count, max_bytes, eviction
    return pending


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.booleans(), st.integers(0, 5)), max_size=25),
    st.sampled_from(EVICTIONS),
    st.integers(0, 6),
    st.integers(0, 20),
    st.integers(0, 25),
)
def test_a_batch_that_exceeds_the_limits_is_discarded_as_if_its_messages_came_one_by_one(
    messages, eviction, max_count, max_bytes, before
):
    came = [
        LogEntry("topic://T", 0, Message(str(at), f"message-id:{at}\nsymbol:{symbol}\n".encode(), b"x" * size,
                 priority=priority, expires=1 if expired else 0))
        for at, (priority, symbol, expired, size) in enumerate(messages)
    ]  # fmt: skip
    at_once, one_by_one = (limited(eviction, max_count, max_bytes) for _ in range(2))
    gone = []
    for batch in (came[:before], came[before:]):
        at_once.add(batch)
        gone += ids(at_once.discard_excess(2))
    expected = []
    for each in came:
        one_by_one.add([each])
        expected += ids(one_by_one.discard_excess(2))
    assert (gone, ids(at_once), at_once.bytes) == (expected, ids(one_by_one), one_by_one.bytes)
