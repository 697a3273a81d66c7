"""Test that the memory of a node does not grow with the backlog.

An interpreter keeps nothing in less than some hundred bytes: of 400,000 messages anything kept would be seen.
"""

from __future__ import annotations

import pytest

from tests.faults.processes import BrokerProcess
from tests.protocol.clients import RawClient

pytestmark = pytest.mark.slow

MB = 1024 * 1024
#: Messages in one queue, how many of them are there when the node's memory is first looked at, and in each of some
#: other queues.
MANY, FIRST, SOME, OTHERS = 400_000, 60_000, 15_000, 4
#: Sent at once.
RUN = 1_000
#: What a node may grow by while all these come to wait: the trace of the last seconds, the queues' numbers.
GROWTH = 36 * MB
#: And while consumers are there, each with a window of what waits.
WITH_CONSUMERS = 90 * MB
#: Idle queues with a subscription each, and what one such pair may take.
IDLE, EACH = 10_000, 12_000


@pytest.fixture
def broker(tmp_path):
    process = BrokerProcess(tmp_path)
    try:
        process.start()
        yield process
    finally:
        process.end()


@pytest.fixture
def memory(broker):
    """Bytes the node's process has resident."""
    return lambda: broker.process.memory_info().rss


def client(broker):
    made = RawClient(broker.port)
    made.socket.settimeout(600)
    return made


def fill(broker, queue, count):
    producer = client(broker)
    run = (f"SEND\ndestination:/queue/{queue}\npersistent:true\n\n" + "x" * 100 + "\0").encode() * RUN
    for _ in range(count // RUN):
        producer.write(run)
    producer.tell("DISCONNECT", {"receipt": "bye"})
    assert producer.hear().command == "RECEIPT"


def consume(broker, queue, count, **headers):
    consumer = client(broker)
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": "1", "ack": "client", **headers})
    for _ in range(count):
        consumer.hear()
    return consumer


@pytest.mark.long
def test_hundreds_of_thousands_that_wait_take_no_memory_of_the_node(broker, memory):
    fill(broker, "one", FIRST)
    before = memory()
    fill(broker, "one", MANY - FIRST)
    for number in range(OTHERS):
        fill(broker, f"other.{number}", SOME)
    assert memory() - before < GROWTH
    consumers = [
        consume(broker, "one", 1_000),
        *(consume(broker, f"other.{number}", 1_000) for number in range(OTHERS)),
        consume(broker, "other.0", 0, selector="nothing = 'has this'"),
    ]
    assert memory() - before < WITH_CONSUMERS
    for each in consumers:
        each.close()
    assert broker.depths("") == {"one": MANY, **{f"other.{number}": SOME for number in range(OTHERS)}}


@pytest.mark.long
def test_idle_queues_and_subscriptions_are_cheap(broker, memory):
    before = memory()
    consumer = client(broker)
    consumer.write(b"".join(b"SUBSCRIBE\nid:%d\ndestination:/queue/idle.%d\n\n\0" % (n, n) for n in range(IDLE)))
    consumer.tell("SEND", {"destination": f"/queue/idle.{IDLE - 1}", "receipt": "r"}, b"the last one works")
    assert {consumer.hear().command for _ in range(2)} == {"RECEIPT", "MESSAGE"}
    assert memory() - before < IDLE * EACH
