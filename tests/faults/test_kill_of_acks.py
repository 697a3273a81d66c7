"""Test kill -9 right after acknowledgements: what a RECEIPT confirms is done with all that came before it."""

import pytest

from tests.protocol.clients import StompClient
from tests.protocol.running_node import named

pytestmark = pytest.mark.slow

COUNT = 20


def holding(broker, queue):
    """A client with COUNT messages of a queue, and these."""
    sender, consumer = StompClient(broker.port), StompClient(broker.port)
    for number in range(COUNT):
        sender.send(f"/queue/{queue}", str(number), persistent="true", wait=number == COUNT - 1)
    sender.leave()
    consumer.subscribe(f"/queue/{queue}", ack="client-individual")
    return consumer, consumer.take(COUNT)


def left_after_kill_9(broker, queue):
    """The bodies that come again, and those of them that are flagged."""
    broker.kill()
    broker.start()
    depth = broker.depths(queue).get(queue, 0)
    client = StompClient(broker.port)
    client.subscribe(f"/queue/{queue}")
    found = client.take(depth)
    assert client.has_no_more()
    client.leave()
    return named(found), [each.body for each in found if each.headers.get("redelivered") == "true"]


@pytest.mark.parametrize("confirmed", ["SEND", "ACK", "DISCONNECT"])
def test_a_receipt_confirms_the_acks_that_came_before_it(broker, confirmed):
    queue = f"acks.{confirmed}"
    consumer, messages = holding(broker, queue)
    *others, last = messages
    for each in others:
        consumer.ack(each, wait=False)
    match confirmed:
        case "SEND":
            consumer.send("/queue/acks.elsewhere", "x", persistent="true")
        case "ACK":
            consumer.ack(last)
        case "DISCONNECT":
            consumer.leave()
    left = [] if confirmed == "ACK" else [last.body]
    assert left_after_kill_9(broker, queue) == (left, left)


def test_what_was_acknowledged_a_moment_before_is_gone_or_comes_again_flagged(broker):
    consumer, messages = holding(broker, "acks.alone")
    for each in messages:
        consumer.ack(each, wait=False)
    bodies, flagged = left_after_kill_9(broker, "acks.alone")
    assert set(bodies) <= {each.body for each in messages}
    assert flagged == bodies
