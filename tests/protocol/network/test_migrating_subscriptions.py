"""Test that queues of a topic's address follow their consumers from broker to broker, as in Artemis."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.model.policy_strategies import NetworkBridgeFilter
from tests.protocol.clients import StompClient
from tests.protocol.networking import (
    duplex_pair,
)
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

#: What crossed may go back to where its consumer is now.
BACK = PolicyEntry(Destination.queue(">"), network_bridge_filter=NetworkBridgeFilter(replay_when_no_consumers=True))


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    with duplex_pair(store, definitions=Definitions(policies=(BACK,))) as both:
        yield both


@pytest.fixture
def client_at(pair, connect) -> Callable[..., StompClient]:
    """Makes clients of A (0) or B (1)."""
    return lambda which: connect(port=pair[which].port)


def wait_for_consumers(node: RunningNode, queue: str, count: int) -> None:
    wait_until(lambda: node.numbers(Destination.queue(queue)).ConsumerCount == count, f"{count} consumers of {queue}")


@pytest.mark.scenario("F25")
def test_a_consumer_that_wanders_gets_what_was_published_anywhere_once_and_leaves_nothing_behind(pair, client_at, name):
    subscription, got = f"{name}.s", []
    publishers = client_at(0), client_at(1)
    for round_, where in enumerate((0, 1, 0, 1)):
        consumer = client_at(where)
        consumer.subscribe(f"/queue/{name}::{subscription}", ack="client-individual", prefetch=1)
        wait_for_consumers(pair[1 - where], subscription, 1)  # the bridge
        for publisher in (0, 1):
            for number in range(5):
                body = f"{round_} {publisher} {number}"
                publishers[publisher].send(f"/topic/{name}", body, persistent="true")
        for _ in range(8):  # and the rest when it is elsewhere
            [message] = consumer.take()
            consumer.ack(message)
            got.append(message.body)
        consumer.leave()
        wait_for_consumers(pair[1 - where], subscription, 0)
    last = client_at(0)
    last.subscribe(f"/queue/{name}::{subscription}")
    got += last.bodies(8)
    assert sorted(got) == [
        f"{round_} {publisher} {number}" for round_ in range(4) for publisher in (0, 1) for number in range(5)
    ]
    wait_until(lambda: [node.depth(subscription) for node in pair] == [0, 0], "nothing left")


@pytest.mark.scenario("F21")
def test_consumers_of_one_subscription_at_both_brokers_share_what_is_published_at_either(pair, client_at, name):
    consumers = client_at(0), client_at(1)
    for each in consumers:
        each.subscribe(f"/queue/{name}::{name}.s")
    for node in pair:
        wait_for_consumers(node, f"{name}.s", 2)
    for publisher in (client_at(0), client_at(1)):
        for number in range(20):
            publisher.send(f"/topic/{name}", str(number), persistent="true")
    wait_until(lambda: sum(each.messages.qsize() for each in consumers) == 40, "40 messages")
    bodies = [message.body for each in consumers for message in each.take(each.messages.qsize())]
    assert sorted(bodies, key=int) == sorted([*map(str, range(20))] * 2, key=int)
