"""Test a store out of memory: nothing is lost, acks are accepted, and sends continue when there is memory."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from brokerapp.stomp.frames import encode
from brokerapp.store.redis import RedisStore
from brokerapp.system.data_directory import DataDirectory
from tests.faults.processes import BrokerProcess
from tests.protocol.clients import RawClient, StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

BODY = b"x" * 50_000
MB = 1024 * 1024
#: What the server may use beyond what it uses when it starts.
ROOM = 6 * MB


@pytest.fixture
def broker(tmp_path):
    process = BrokerProcess(tmp_path)
    try:
        process.start()
        yield process
    finally:
        process.end()


def on_store(broker, work):
    """The result of a coroutine that uses the broker's store."""

    async def once():
        store = RedisStore(*DataDirectory(broker.data).locate_store())
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(once())


def limit_memory(broker, room):
    """Let the server use so much more than it uses now; 0: no limit."""

    async def limit(store):
        used = (await store.server.memory())["used"]
        await store.client.execute("CONFIG", "SET", "maxmemory", used + room if room else 0)

    on_store(broker, limit)


def send_until_held(client, first=0):
    """Persistent messages, a receipt at a time, until one gets none; the number of that one."""
    client.socket.settimeout(4.0)
    number = first
    with suppress(TimeoutError):
        while number < first + 2_000:
            headers = {"destination": "/queue/full", "persistent": "true", "receipt": str(number)}
            client.write(encode("SEND", headers, BODY))
            answer = client.hear()
            assert (answer.command, answer.headers["receipt-id"]) == ("RECEIPT", str(number))
            number += 1
    assert number < first + 2_000, "it was never held back"
    return number


def test_who_sends_to_a_server_without_memory_waits_acks_pass_and_then_it_goes_on(broker):
    limit_memory(broker, ROOM)
    producer = RawClient(broker.port)
    held = send_until_held(producer)
    assert held > 0
    consumer = StompClient(broker.port)
    consumer.subscribe("/queue/full", ack="client-individual", prefetch=10)
    producer.socket.settimeout(30)
    for _ in range(held):
        [message] = consumer.take()
        consumer.ack(message)  # with a receipt: it passes although nothing else does
    assert producer.hear().headers["receipt-id"] == str(held)
    [message] = consumer.take()
    assert message.body == BODY.decode()
    consumer.leave()
    producer.close()


@pytest.mark.long
def test_kill_9_while_the_server_is_full_loses_nothing_confirmed(broker):
    limit_memory(broker, ROOM)
    producer = RawClient(broker.port)
    held = send_until_held(producer)
    broker.kill()
    broker.start()
    limit_memory(broker, 1)
    producer = RawClient(broker.port)
    wait_until(lambda: send_until_held(producer, 5_000) >= 5_000, "it is full at once")
    broker.kill()
    broker.start()
    left = broker.depths("full")["full"]
    assert left >= held
    consumer = StompClient(broker.port)
    consumer.subscribe("/queue/full", ack="client", prefetch=left)
    messages = consumer.take(left)
    assert {message.body for message in messages} == {BODY.decode()}
    consumer.ack(messages[-1])
    consumer.leave()
    assert broker.depths("full")["full"] == 0
