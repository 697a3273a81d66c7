"""Test that messages gathered by route keep the order that logs and subscribers can see."""

from itertools import groupby
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from brokerapp.core.publishing.routed_batches import MAX_BYTES, MAX_COPIES, RoutedBatches
from brokerapp.core.writes.client_write import ClientWrite
from brokerapp.engine.clients.client import one_after_the_other, split_in_order
from brokerapp.engine.entries.topic_batch import TopicEntries, offers
from brokerapp.engine.routing.route_walk import Route
from brokerapp.model.destination import Destination
from brokerapp.model.message import RoutedCopy

TOPIC, OTHER = RoutedCopy(Destination.topic("t")), RoutedCopy(Destination.topic("other"))


def route(logs, topics=()):
    """A route to these logs in one append, and to these topics."""
    groups = [SimpleNamespace(logs=dict.fromkeys(logs), rows=[(log, "", "") for log in logs])] if logs else []
    return Route(topics=list(topics), groups=groups)


ROUTES = [
    route("a"),
    route("b"),
    route("ab"),
    route("c"),
    route("bc"),
    route("", [TOPIC]),
    route("d", [TOPIC]),
    route("", [OTHER]),
]
QUEUES = [Destination.queue(f"q{number}") for number in range(len(ROUTES))]


class Numbered(int):
    """A message."""

    persistent = True
    size = 1


def gathered(choices, senders=("one",)):
    """Messages 0, 1, 2, ... with these routes, of these senders in turn."""
    batches = RoutedBatches(senders[0])
    for number, choice in enumerate(choices):
        batches.client = senders[number % len(senders)]
        batches.add(Numbered(number), b"x", QUEUES[choice], ROUTES[choice], f"r{number}")
    return batches.placed


@given(st.lists(st.integers(0, len(ROUTES) - 1), max_size=30))
def test_every_log_and_topic_gets_its_messages_in_the_order_in_which_they_were_sent(choices):
    placed = gathered(choices)
    assert sorted(message for each in placed for message in each.messages) == list(range(len(choices)))
    for target in [*"abcd", TOPIC, OTHER]:
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


@given(st.lists(st.integers(0, len(ROUTES) - 1), max_size=30))
def test_who_listens_to_all_topics_gets_them_in_the_order_in_which_they_were_sent(choices):
    to_topics = [each for each in gathered(choices) if each.route.topics]
    heard = []
    for _, alike in groupby(to_topics, key=lambda each: bool(each.route.groups)):  # those to queues, too, are stored
        parts = [TopicEntries(None, each.messages, each.places) for each in alike]
        heard += [entry for offer in offers({"a subscriber": parts}) for entry in offer.entries]
    assert heard == [message for message, choice in enumerate(choices) if ROUTES[choice].topics]


@given(st.lists(st.integers(0, len(ROUTES) - 1), max_size=30))
def test_messages_of_topics_one_by_one_have_the_order_in_which_they_were_sent(choices):
    parts = split_in_order(gathered(choices))
    to_topics = [message for each in parts for message in each.messages if each.route.topics]
    assert to_topics == [message for message, choice in enumerate(choices) if ROUTES[choice].topics]
    assert all(len(each.messages) == 1 for each in parts if each.route.topics)


def test_messages_to_topics_in_turn_are_one_batch_for_each_topic():
    batches = [(each.messages, each.places) for each in gathered([5, 7, 0, 5, 7])]
    assert batches == [([0, 3], [0, 3]), ([1, 4], [1, 4]), ([2], [2])]


def test_messages_to_queues_in_turn_are_one_batch_for_each_queue():
    assert [each.messages for each in gathered([0, 1, 0, 3, 1, 0])] == [[0, 2, 5], [1, 4], [3]]


def test_messages_that_share_a_queue_with_others_in_between_stay_behind_these():
    assert [each.messages for each in gathered([0, 2, 0])] == [[0], [1], [2]]


def test_enough_copies_or_bytes_make_a_write():
    copies, large = RoutedBatches("one"), RoutedBatches("one")
    for number in range(MAX_COPIES // 2):
        assert not copies.is_full
        copies.add(Numbered(number), b"", QUEUES[2], ROUTES[2], None)
    large.add(Numbered(0), b"x" * MAX_BYTES, QUEUES[0], ROUTES[0], None)
    assert copies.is_full
    assert large.is_full


@given(st.lists(st.tuples(st.integers(0, len(ROUTES) - 1), st.booleans()), max_size=20))
def test_the_store_gets_each_key_with_the_message_that_has_it(choices):
    batches = RoutedBatches("one")
    for number, (choice, has_key) in enumerate(choices):
        key = f"k{number}" if has_key else ""
        batches.add(Numbered(number), b"x", QUEUES[choice], ROUTES[choice], None, key)
    sent = [message for each in batches.placed for message in each.messages]
    keys = ClientWrite(None, batches.client, batches.placed).dedup_keys(0)
    assert keys == [(unit, f"k{message}") for unit, message in enumerate(sent) if choices[message][1]]
    parts = [part for each in batches.placed for part in each.split()]
    assert keys == ClientWrite(None, batches.client, parts).dedup_keys(0)


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 3))
def test_each_client_is_told_of_its_own_messages_of_a_write_and_charged_for_them(choices, count):
    senders = [f"client {number}" for number in range(count)]
    placed = gathered(choices, senders)
    write = ClientWrite(None, senders[0], placed)
    told = {client: receipts for client, receipts in write.receipts_by_client() if receipts}
    sent = {client: [f"r{number}" for number in range(at, len(choices), count)] for at, client in enumerate(senders)}
    assert {client: sorted(receipts) for client, receipts in told.items()} == {
        client: sorted(receipts) for client, receipts in sent.items() if receipts
    }
    sizes = {client: size for client, size in write.bytes_by_client.items() if size}
    assert sizes == {client: len(receipts) for client, receipts in sent.items() if receipts}
    for each in placed:
        for sender, part in each.by_sender():
            assert {senders[message % count] for message in each.messages[part]} == {sender}


@given(st.lists(st.integers(0, len(ROUTES) - 1), min_size=1, max_size=10))
def test_messages_of_other_clients_join_those_for_queues_only(choices):
    batches = RoutedBatches("one")
    for number, choice in enumerate(choices):
        batches.add(Numbered(number), b"x", QUEUES[choice], ROUTES[choice], None)
    assert batches.may_be_joined == all(choice < 5 for choice in choices)


def test_no_messages_join_what_need_not_be_stored():
    batches, unstored = RoutedBatches("one"), Numbered(0)
    unstored.persistent = False
    batches.add(unstored, b"x", QUEUES[0], ROUTES[0], None)
    assert not batches.may_be_joined
    batches.clear()
    assert batches.may_be_joined


@given(st.lists(st.lists(st.integers(5, len(ROUTES) - 1), max_size=8), max_size=4))
def test_of_several_writes_each_one_gives_its_messages_behind_those_of_the_one_before(writes):
    gathered_writes = [[(write, each) for each in gathered(choices)] for write, choices in enumerate(writes)]
    placed = one_after_the_other([[each for _, each in batches] for batches in gathered_writes])
    numbered = iter(placed)
    seen = [
        (place, (write, message))
        for batches in gathered_writes
        for write, _ in batches
        for each in [next(numbered)]
        for place, message in zip(each.places, each.messages, strict=True)
    ]
    in_order = [told for _, told in sorted(seen)]
    assert in_order == [(write, message) for write, choices in enumerate(writes) for message in range(len(choices))]
