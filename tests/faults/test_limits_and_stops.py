"""Test a full store and a clean stop: confirmed messages are kept, and work continues."""

from __future__ import annotations

import pytest

from tests.faults.conftest import STORE_LIMIT_MB
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

BODY = "x" * 250_000


@pytest.mark.scenario("Q18")
def test_a_full_store_refuses_with_an_error_and_goes_on_after_consuming(broker):
    producer, consumer = StompClient(broker.port), StompClient(broker.port)
    sent = 0
    while producer.errors.empty():
        assert sent * len(BODY) < 2 * STORE_LIMIT_MB * 1024 * 1024, "the limit was never reached"
        producer.send("/queue/full", BODY, persistent="true", number=str(sent))
        sent += 1
    error = producer.error()
    assert error.headers["code"] == "limit-exceeded"
    assert "receipt-id" in error.headers
    assert "full" in error.body
    confirmed = sent - 1
    assert confirmed * len(BODY) > 0.9 * STORE_LIMIT_MB * 1024 * 1024
    assert broker.depths("full") == {"full": confirmed}

    consumer.subscribe("/queue/full", ack="client-individual", prefetch=5)
    for number in range(confirmed):
        [message] = consumer.take()
        assert message.headers["number"] == str(number)
        consumer.ack(message, wait=number == confirmed - 1)
    producer.send("/queue/full", "room again", persistent="true")
    assert producer.errors.empty()
    [message] = consumer.take()
    assert message.body == "room again"
    consumer.ack(message)
    producer.leave()
    consumer.leave()


@pytest.mark.scenario("VT-34")
def test_sigterm_stops_cleanly_and_everything_is_there_at_the_next_start(broker):
    consumer, producer = StompClient(broker.port), StompClient(broker.port)
    for number in range(20):
        producer.send("/queue/stop", str(number), persistent="true")
    consumer.subscribe("/queue/stop", ack="client-individual", prefetch=8)
    messages = consumer.take(8)
    for message in messages[:3]:
        consumer.ack(message, wait=False)
    consumer.take(3)
    assert broker.terminate() == 0
    wait_until(lambda: consumer.disconnected.is_set() and producer.disconnected.is_set(), "the clients are told")
    broker.start()
    consumer = StompClient(broker.port)
    consumer.subscribe("/queue/stop")
    found = consumer.take(17)
    assert [each.body for each in found] == [str(number) for number in range(3, 20)]
    assert [each.headers.get("redelivered") for each in found] == ["true"] * 8 + [None] * 9
    consumer.leave()
