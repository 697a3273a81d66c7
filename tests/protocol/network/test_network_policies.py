"""Test policies for bridges: messages without consumers are sent back, and not too fast."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.model.policy_strategies import NetworkBridgeFilter
from tests.protocol.networking import bridged, start, to, wait_for_demand, wait_for_no_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

#: Milliseconds in which as many cross as may: long enough to see that the next ones wait.
SPAN_MS = 400
#: Milliseconds that a message stays where it came before it may go back.
DELAY_MS = 600
POLICIES = Definitions(
    policies=(
        *[
            PolicyEntry(
                Destination.queue(each), network_bridge_filter=NetworkBridgeFilter(replay_when_no_consumers=True)
            )
            for each in ("back.>", "Consumer.*.VirtualTopic.>")
        ],
        PolicyEntry(
            Destination.queue("late.>"),
            network_bridge_filter=NetworkBridgeFilter(replay_when_no_consumers=True, replay_delay=DELAY_MS),
        ),
        PolicyEntry(
            Destination.queue("slow.>"),
            network_bridge_filter=NetworkBridgeFilter(rate_limit=2, rate_duration=SPAN_MS),
        ),
    )
)


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    b = start(store, definitions=POLICIES)
    a = start(store, to(b.port, duplex="true"), definitions=POLICIES)
    wait_until(lambda: bridged(a), "the bridge")
    yield a, b
    a.stop()
    b.stop()


def stuck_at(b: RunningNode, queue: str, connect, a: RunningNode, sent_to: str = "") -> None:
    """Five messages came from A to B for a consumer that takes none and goes."""
    consumer = connect(port=b.port)
    consumer.subscribe(f"/queue/{queue}", ack="client-individual")
    wait_for_demand(a, f"queue://{queue}")
    sender = connect(port=a.port)
    for number in range(5):
        sender.send(sent_to or f"/queue/{queue}", str(number), persistent="true")
    consumer.take(5)
    consumer.leave()
    wait_for_no_demand(a, f"queue://{queue}")
    wait_until(lambda: a.depth(queue) == 0 and b.depth(queue) == 5, "the messages at B alone")


@pytest.mark.scenario("NB-22", "NB-23")
@pytest.mark.parametrize(
    ("queue", "sent_to"), [("back.{}", ""), ("Consumer.X.VirtualTopic.{}", "/topic/VirtualTopic.{}")]
)
def test_what_is_stuck_where_nobody_consumes_any_more_goes_back_to_a_consumer_where_it_came_from(
    pair, connect, name, queue, sent_to
):
    a, b = pair
    queue = queue.format(name)
    stuck_at(b, queue, connect, a, sent_to.format(name))
    consumer = connect(port=a.port)
    consumer.subscribe(f"/queue/{queue}")
    assert sorted(consumer.bodies(5)) == list("01234")
    wait_until(lambda: b.depth(queue) == 0, "the acknowledgements")
    assert consumer.has_no_more()


def test_messages_follow_consumers_to_and_fro_as_often_as_these_fail_over(pair, connect, name):
    a, b = pair
    queue = f"back.{name}"
    stuck_at(b, queue, connect, a)
    at = b
    for _ in range(3):
        came_from, at = at, a if at is b else b
        consumer = connect(port=at.port)
        consumer.subscribe(f"/queue/{queue}", ack="client-individual")
        assert sorted(each.body for each in consumer.take(5)) == list("01234")
        wait_until(lambda left=came_from: left.depth(queue) == 0, "the acknowledgements")
        consumer.leave()
        wait_for_no_demand(came_from, f"queue://{queue}")
    assert [each.depth(queue) for each in (a, b)] == [5, 0]


def test_it_goes_back_only_when_it_was_there_for_the_delay(pair, connect, name):
    a, b = pair
    queue, began = f"late.{name}", time.monotonic()
    stuck_at(b, queue, connect, a)
    consumer = connect(port=a.port)
    consumer.subscribe(f"/queue/{queue}")
    assert sorted(consumer.bodies(5)) == list("01234")
    assert time.monotonic() - began >= DELAY_MS / 1000


def test_without_the_policy_it_stays_where_it_is(pair, connect, name):
    a, b = pair
    stuck_at(b, name, connect, a)
    consumer = connect(port=a.port)
    consumer.subscribe(f"/queue/{name}")
    wait_for_demand(a, f"queue://{name}")
    assert consumer.has_no_more()
    assert b.depth(name) == 5


def test_a_bridge_takes_no_more_in_a_span_of_time_than_the_policy_lets_it(pair, connect, name):
    a, b = pair
    queue = f"slow.{name}"
    consumer, sender = connect(port=b.port), connect(port=a.port)
    consumer.subscribe(f"/queue/{queue}")
    wait_for_demand(a, f"queue://{queue}")
    began = time.monotonic()
    for number in range(5):
        sender.send(f"/queue/{queue}", str(number), persistent="true")
    assert consumer.bodies(5) == list("01234")
    assert time.monotonic() - began >= 2 * SPAN_MS / 1000
