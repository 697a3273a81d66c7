"""Test that messages gathered by route keep the order that logs and subscribers can see."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from brokerapp.core.publishing.routed_batches import MAX_BYTES, MAX_COPIES, RoutedBatches
from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.routing.route_walk import Route
from brokerapp.model.destination import Destination
from brokerapp.model.message import RoutedCopy

TOPIC = RoutedCopy(Destination.topic("t"))


def route(logs, topics=()):
    """A route to these logs in one append, and to these topics."""
    groups = [SimpleNamespace(logs=dict.fromkeys(logs), rows=[(log, "", "") for log in logs])] if logs else []
    return Route(topics=list(topics), groups=groups)


ROUTES = [route("a"), route("b"), route("ab"), route("c"), route("bc"), route("", [TOPIC]), route("d", [TOPIC])]
QUEUES = [Destination.queue(f"q{number}") for number in range(len(ROUTES))]


def gathered(choices):
    """Messages 0, 1, 2, ... with these routes."""
    batches = RoutedBatches(SimpleNamespace())
    for message, choice in enumerate(choices):
        batches.add(message, b"x", QUEUES[choice], ROUTES[choice], f"r{message}")
    return batches.placed


@given(st.lists(st.integers(0, len(ROUTES) - 1), max_size=30))
def test_every_log_and_topic_gets_its_messages_in_the_order_in_which_they_were_sent(choices):
    placed = gathered(choices)
    assert sorted(message for each in placed for message in each.messages) == list(range(len(choices)))
    for target in [*"abcd", TOPIC]:
        seen = [
            message
            for each in placed
            for message in each.messages
            if target in each.route.topics or any(target in group.logs for group in each.route.groups)
        ]
        assert seen == sorted(seen)
    for each in placed:
        assert each.receipts == [f"r{message}" for message in each.messages]
        assert {QUEUES[choices[message]] for message in each.messages} == {each.destination}


def test_messages_to_queues_in_turn_are_one_batch_for_each_queue():
    assert [each.messages for each in gathered([0, 1, 0, 3, 1, 0])] == [[0, 2, 5], [1, 4], [3]]


def test_messages_that_share_a_queue_with_others_in_between_stay_behind_these():
    assert [each.messages for each in gathered([0, 2, 0])] == [[0], [1], [2]]


def test_enough_copies_or_bytes_make_a_write():
    copies, large = RoutedBatches(SimpleNamespace()), RoutedBatches(SimpleNamespace())
    for message in range(MAX_COPIES // 2):
        assert not copies.is_full
        copies.add(message, b"", QUEUES[2], ROUTES[2], None)
    large.add(0, b"x" * MAX_BYTES, QUEUES[0], ROUTES[0], None)
    assert copies.is_full
    assert large.is_full


@given(st.lists(st.tuples(st.integers(0, len(ROUTES) - 1), st.booleans()), max_size=20))
def test_the_store_gets_each_key_with_the_message_that_has_it(choices):
    batches = RoutedBatches(SimpleNamespace())
    for message, (choice, has_key) in enumerate(choices):
        made = SimpleNamespace(number=message, size=1)
        batches.add(made, b"x", QUEUES[choice], ROUTES[choice], None, f"k{message}" if has_key else "")
    sent = [message.number for each in batches.placed for message in each.messages]
    keys = ClientWrite(None, batches.client, batches.placed).dedup_keys(0)
    assert keys == [(unit, f"k{message}") for unit, message in enumerate(sent) if choices[message][1]]
    parts = [part for each in batches.placed for part in each.split()]
    assert keys == ClientWrite(None, batches.client, parts).dedup_keys(0)
