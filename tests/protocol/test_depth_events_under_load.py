"""Test that the depths that a node records under load are exact at their time."""

import asyncio
from bisect import bisect_left
from collections import defaultdict

import pytest
import redis

from brokerapp.config import default_config
from brokerapp.store.client.keys import trace_key
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.schema import ALL
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

BROKER = "noting"
MESSAGES = 200


@pytest.fixture(scope="module")
def node(store):
    running = RunningNode(default_config(BROKER, 0), store.url)
    yield running
    running.stop()


def stored_events(node):
    with redis.Redis.from_url(node.redis_url) as client:
        batches = [fields[b"b"] for _, fields in client.xrange(trace_key(BROKER))]
    return [row for batch in batches for row in decode(batch).to_pylist()]


def recorded(node, queue):
    """When something happened there, in order, by its kind; and its depths, by when they were noted."""
    rows = sorted(stored_events(node), key=lambda row: row["ts"])
    moments, noted = defaultdict(list), {}
    for row in rows:
        if row["kind"] != "depth":
            if row["destination"] == queue:
                moments[row["kind"]].append(row["ts"])
        elif row["reason"] == ALL:  # of all that hold anything, so also of the queue that is kept full
            noted[row["ts"]] = row["size"] if row["destination"] == queue else noted.get(row["ts"], 0)
    return moments, noted


@pytest.mark.parametrize("mode", ["auto", "client-individual"])
def test_a_message_that_is_given_before_it_is_stored_counts_once_in_a_depth(node, mode):
    noting = asyncio.Event()

    async def note():
        while not noting.is_set():
            node.node._parts.reports.trace.record_depths(ALL)
            await asyncio.sleep(0.0005)

    queue = f"queue://early.{mode}"
    consumer, producer = StompClient(node.port), StompClient(node.port)
    consumer.subscribe(f"/queue/early.{mode}", ack=mode, prefetch=10)
    producer.send("/queue/kept", "stays", persistent="true")
    task = asyncio.run_coroutine_threadsafe(note(), node._loop)
    for number in range(MESSAGES):
        producer.send(f"/queue/early.{mode}", str(number), wait=False, persistent="true")
        [message] = consumer.take()
        if mode != "auto":
            consumer.ack(message, wait=False)
    node.look(noting.set)
    task.result()
    noted = node.look(lambda: node.node.broker.tracer.recorded)
    wait_until(lambda: len(stored_events(node)) >= noted, "all that was recorded is stored")
    moments, noted = recorded(node, queue)
    before = {moment: [bisect_left(moments[kind], moment) for kind in ("forward", "ack")] for moment in noted}
    wrong = {moment: size for moment, size in noted.items() if size != before[moment][0] - before[moment][1]}
    assert sum(bool(came) for came, _ in before.values()) > MESSAGES / 4
    assert wrong == {}
    for each in (consumer, producer):
        each.leave()
