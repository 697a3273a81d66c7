"""Test that the flag `redelivered` is forwarded to the next broker."""

import pytest

from tests.protocol.networking import bridged, start, to, wait_for_demand
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def chain(store):
    """A has a bridge to B, and B to C; consumers are heard of two bridges away."""
    c = start(store)
    b = start(store, to(c.port, networkTTL="2"))
    a = start(store, to(b.port, networkTTL="2"))
    wait_until(lambda: bridged(a) and bridged(b), "the bridges")
    yield a, b, c
    for each in (a, b, c):
        each.stop()


def test_what_a_consumer_held_before_it_crosses_is_flagged_wherever_it_comes_and_what_nobody_held_is_not(
    chain, connect, name
):
    a, b, c = chain
    holder, sender, queue = connect(port=a.port), connect(port=a.port), f"/queue/{name}"
    holder.subscribe(queue, ack="client-individual", prefetch=1)
    sender.send(queue, "held", persistent="true")
    sender.send(queue, "waits", persistent="true")
    assert holder.bodies() == ["held"]
    holder.break_off()
    consumer = connect(port=c.port)
    consumer.subscribe(queue)
    wait_for_demand(b, f"queue://{name}")
    wait_for_demand(a, f"queue://{name}")
    came = consumer.take(2)
    assert [(each.body, each.headers.get("redelivered")) for each in came] == [("held", "true"), ("waits", None)]


def test_only_a_bridge_says_that_a_message_may_have_been_delivered(chain, connect, name):
    client = connect(port=chain[0].port)
    client.send(f"/queue/{name}", "new", persistent="true", redelivered="true")
    client.subscribe(f"/queue/{name}")
    assert client.take()[0].headers.get("redelivered") is None
