"""Test what waits for a subscriber of topics: limits, what is discarded, and how much is taken at once."""

import pytest

from brokerapp.engine.entries import pending_messages
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.pending_messages import PendingMessages
from brokerapp.model.message import Message


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
