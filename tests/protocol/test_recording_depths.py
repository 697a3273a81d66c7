"""A node records where the depths of its queues stand."""

import redis

from brokerapp.config import default_config
from brokerapp.recording.encoding import decode
from brokerapp.store.keys import trace_key
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode

BROKER = "recording-depths"


def recorded(store) -> list[dict]:
    with redis.Redis.from_url(store.url) as client:
        batches = [fields[b"b"] for _, fields in client.xrange(trace_key(BROKER))]
    return [row for batch in batches for row in decode(batch).to_pylist()]


def test_a_node_that_starts_records_the_depths_it_finds(store):
    before = RunningNode(default_config(BROKER, 0), store.url)
    client = StompClient(before.port, "1.2")
    for body in ("a", "b", "c"):
        client.send("/queue/orders", body)
    client.connection.disconnect()
    before.stop()
    assert {row["kind"] for row in recorded(store)} >= {"enqueue", "forward"}

    RunningNode(default_config(BROKER, 0), store.url).stop()
    depth = [row for row in recorded(store) if row["kind"] == "depth"][-1]
    assert (depth["destination"], depth["size"], depth["reason"]) == ("queue://orders", 3, "all")
