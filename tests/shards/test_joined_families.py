"""Test copies of one message to queues that definitions join, while these are in several shards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.store.shards.family_moves import MOVED, FamilyMove
from tests.shards.sharded_broker import queue_in, sharded_broker
from tests.shards.test_moves import move

pytestmark = pytest.mark.slow


@pytest.fixture
def one_node(tmp_path):
    with sharded_broker(tmp_path, shards=2) as running:
        yield running


def define(broker, *composites):
    """Let these be the composite destinations of the broker."""

    async def change(admin):
        return await admin.define(replace(await admin.definitions(), virtual_destinations=composites), "test")

    broker.admin(change)


def joining(one, other):
    return CompositeDestination(Destination.queue(one), (ForwardTarget(Destination.queue(other)),), forward_only=False)


def test_queues_that_a_definition_joins_get_copies_in_both_their_shards_before_they_are_moved_together(one_node, name):
    one, other = queues = [queue_in(shard, f"{name}.{shard}", shards=2) for shard in (0, 1)]
    client = one_node["a"].client()
    for queue in queues:
        client.send(f"/queue/{queue}", "before", persistent="true")
    one_node.ask(lambda store: store.moves.begin(FamilyMove("another family", 0, 1, "another")))  # one at a time moves
    define(one_node, joining(one, other))
    client.send(f"/queue/{one}", "both", persistent="true")
    assert one_node.shards_of(*queues) == [0, 1]
    assert one_node.content(queues) == {queue: ["before", "both"] for queue in queues}
    for queue in queues:
        consumer = one_node["a"].client()
        consumer.subscribe(f"/queue/{queue}", ack="client-individual")
        for message in consumer.take(2):
            consumer.ack(message)
        consumer.leave()
    one_node.wait_until_quiet(*(str(Destination.queue(each)) for each in queues))


def test_a_transaction_brings_all_copies_though_a_queue_moved_to_another_shard_since_it_was_sent_to(one_node, name):
    one, other = queues = [queue_in(0, f"{name}.{number}", shards=2) for number in (0, 1)]
    define(one_node, joining(one, other))
    client = one_node["a"].client()
    client.send(f"/queue/{one}", "before", persistent="true")
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{one}", "both", transaction="t", persistent="true")
    define(one_node)
    assert move(one_node, other, 1).state == MOVED
    assert one_node.shards_of(*queues) == [0, 1]
    client.frame("COMMIT", transaction="t")
    assert one_node.content(queues) == {queue: ["before", "both"] for queue in queues}
    consumer = one_node["a"].client()
    consumer.subscribe(f"/queue/{other}", ack="client-individual")
    for message in consumer.take(2):
        consumer.ack(message)
    one_node.wait_until_quiet(str(Destination.queue(other)))
