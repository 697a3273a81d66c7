"""Test that slow readers and fast senders cost the node little memory and affect no other client."""

import gc
import threading
from contextlib import suppress

import psutil
import pytest

from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.conftest import paused_store
from tests.waiting import wait_until

MB = 1024 * 1024
BODY = b"x" * (500 * 1024)
COUNT = 120  # of such bodies: 59 MB
#: What the node, which lives in this process, may grow by meanwhile.
BOUND = 40 * MB


@pytest.fixture
def growth():
    """Bytes by which this process has grown since the test began."""
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    return lambda: process.memory_info().rss - before


def fill(client, destination, count=COUNT):
    """Send so many large messages, a few on the way at a time."""
    frame = encode("SEND", {"destination": destination, "content-length": str(len(BODY)), "receipt": "r"}, BODY)
    for _ in range(4):
        client.write(frame)
    for number in range(count):
        assert client.hear().command == "RECEIPT"
        if number + 4 < count:
            client.write(frame)


@pytest.mark.parametrize("ack", ["auto", "client-individual"])
def test_a_queue_consumer_that_does_not_read_costs_little_and_gets_all_later(raw, connect, node, name, ack, growth):
    producer, consumer, other = raw(), raw(receive_buffer=65536), connect()
    fill(producer, f"/queue/{name}")
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "ack": ack})
    wait_until(lambda: node.numbers(Destination.queue(name)).DispatchCount > 0, "something is dispatched")
    other.subscribe(f"/queue/{name}.other")
    for number in range(20):  # others go on
        other.send(f"/queue/{name}.other", str(number))
        assert other.bodies() == [str(number)]
    assert growth() < BOUND
    for _ in range(COUNT):
        message = consumer.hear()
        assert message.body == BODY
        if ack != "auto":
            consumer.tell("ACK", {"id": message.headers["ack"]})
    wait_until(lambda: node.depth(name) == 0, "all is acked")


def test_a_topic_subscriber_that_does_not_read_costs_little_and_the_others_get_everything(raw, node, name, growth):
    producer, slow, quick = raw(), raw(receive_buffer=65536), raw()
    for client in (slow, quick):
        client.tell("SUBSCRIBE", {"destination": f"/topic/{name}", "id": "1", "receipt": "r"})
        client.hear()
    heard = []
    reader = threading.Thread(target=lambda: heard.extend(quick.hear().body == BODY for _ in range(COUNT)))
    reader.start()
    fill(producer, f"/topic/{name}")
    reader.join()
    assert heard == [True] * COUNT
    assert growth() < BOUND
    producer.tell("SEND", {"destination": f"/topic/{name}"}, b"last")
    received = 0
    while slow.hear().body != b"last":
        received += 1
    assert 0 < received < COUNT  # the oldest of those it did not take were dropped


def test_a_producer_that_does_not_read_its_receipts_is_not_read_from(raw, connect, node, name, growth):
    producer, other = raw(receive_buffer=65536), connect()
    producer.socket.settimeout(1.0)
    sent, long = 0, "r" * 9_000
    with suppress(TimeoutError):
        while sent < 10_000:
            producer.tell("SEND", {"destination": f"/topic/{name}", "receipt": f"{sent}-{long}"}, b"x")
            sent += 1
    assert sent < 10_000, "it was read from although it never read"
    other.send(f"/queue/{name}", "others go on")
    assert growth() < BOUND
    producer.socket.settimeout(10.0)
    for number in range(sent - 1):
        assert producer.hear().headers["receipt-id"] == f"{number}-{long}"


def test_a_producer_faster_than_the_store_is_held_and_loses_nothing(raw, store, node, name, growth):
    producer = raw()
    frame = encode("SEND", {"destination": f"/queue/{name}", "content-length": str(len(BODY)), "receipt": "r"}, BODY)
    sender = threading.Thread(target=lambda: [producer.write(frame) for _ in range(COUNT)])
    with paused_store(store):
        sender.start()
        sender.join(0.7)
        assert sender.is_alive(), "it could send everything although nothing is stored"
        assert growth() < BOUND
    for _ in range(COUNT):
        assert producer.hear().command == "RECEIPT"
    sender.join()
    assert node.depth(name) == COUNT


def test_a_consumer_without_credit_does_not_keep_messages_from_others(raw, connect, name):
    stuck, other = raw(), connect()
    stuck.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "ack": "client", "activemq.prefetchSize": "1"})
    stuck.tell("BEGIN", {"transaction": "t", "receipt": "r"})
    stuck.hear()
    other.subscribe(f"/queue/{name}")
    for number in range(5):
        other.send(f"/queue/{name}", str(number))
    assert stuck.hear().body == b"0"
    assert other.bodies(4) == ["1", "2", "3", "4"]


def test_a_backlog_larger_than_the_window_arrives_whole_and_in_order(raw, connect, node, name):
    producer, consumer = raw(), raw()
    count = 6_000
    head = f"SEND\ndestination:/queue/{name}\n\n".encode()
    producer.write(b"".join(head + str(number).encode() + b"\0" for number in range(count)))
    producer.tell("DISCONNECT", {"receipt": "bye"})
    producer.hear()
    subscribe = {"destination": f"/queue/{name}", "id": "1", "ack": "client", "activemq.prefetchSize": "3000"}
    consumer.tell("SUBSCRIBE", subscribe)
    for number in range(count):
        message = consumer.hear()
        assert message.body == str(number).encode()
        if number % 1000 == 999:
            consumer.tell("ACK", {"id": message.headers["ack"]})
    wait_until(lambda: node.depth(name) == 0, "all is acked")


def test_a_consumer_that_leaves_while_a_page_is_read_leaves_everything_to_the_next(raw, connect, store, node, name):
    producer, first, second = raw(), raw(), raw()
    count = 1_500
    head = f"SEND\ndestination:/queue/{name}\n\n".encode()
    producer.write(b"".join(head + str(number).encode() + b"\0" for number in range(count)))
    producer.tell("DISCONNECT", {"receipt": "bye"})
    producer.hear()
    subscribe = {"destination": f"/queue/{name}", "id": "1", "ack": "client", "activemq.prefetchSize": "600"}
    first.tell("SUBSCRIBE", subscribe)
    messages = [first.hear() for _ in range(600)]
    log = node.look(lambda: node.node.broker.queues[f"queue://{name}"])
    wait_until(lambda: not log.paging, "nothing is being read")
    with paused_store(store):
        first.tell("ACK", {"id": messages[-1].headers["ack"]})
        wait_until(lambda: log.paging, "a page is being read")
        first.close()
        wait_until(lambda: not log.consumers, "the consumer is gone")
    second.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    found = [int(second.hear().body) for _ in range(count - 600)]
    assert found == list(range(600, count))
