"""Test that non-persistent messages wait a moment for consumers that read in bursts, and are stored after that."""

import random

import pytest

from brokerapp.core.flow_control import held_sends
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.waiting import wait_until

#: More than sockets and their buffers hold, and less than a client may have on its way to the store.
MANY, SIZE = 4_000, 1_500


def text(number):
    return b"%d " % number + b"x" * SIZE


def numbers(client, count):
    return [int(client.hear().body.split(b" ")[0]) for _ in range(count)]


def sends(queue, wanted, persistent="false", **headers):
    return b"".join(
        encode("SEND", {"destination": f"/queue/{queue}", "persistent": persistent, **headers}, text(number))
        for number in wanted
    )


def stalled_consumer(raw, queue, id="1", **headers):
    """A consumer in auto mode that reads nothing by itself, with a small buffer."""
    client = raw(receive_buffer=1 << 14)
    client.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": id, "ack": "auto", "receipt": "on", **headers})
    assert client.hear().command == "RECEIPT"
    return client


def held(node):
    """How many messages wait for consumers."""
    rows = node.look(lambda: [each for waiting in node.node.broker.held._held.values() for each in waiting.row])
    return sum(len(batch.messages) for _, batch in rows)


def stored(node):
    """How many writes the store was asked for so far."""
    return node.look(lambda: node.node.broker.commits.first._submitted)


def test_what_a_consumer_has_no_room_for_is_not_stored_when_it_reads_on_in_a_moment(raw, node, name, monkeypatch):
    monkeypatch.setattr(held_sends, "HOLD_MS", 60_000)
    consumer, producer = stalled_consumer(raw, name), raw()
    before = stored(node)
    producer.write(sends(name, range(MANY)))
    wait_until(lambda: held(node), "messages that are held")
    assert numbers(consumer, MANY) == list(range(MANY))
    wait_until(lambda: not held(node), "that all are given out")
    assert stored(node) == before


def test_what_is_held_too_long_is_stored_and_nothing_is_lost(raw, node, name, monkeypatch):
    monkeypatch.setattr(held_sends, "HOLD_MS", 50)
    consumer, producer = stalled_consumer(raw, name), raw()
    producer.write(sends(name, range(MANY)))
    wait_until(lambda: node.bodies(name), "messages in the store")
    assert numbers(consumer, MANY) == list(range(MANY))
    wait_until(lambda: not held(node) and not node.bodies(name), "that all are given out")


def test_what_is_held_for_a_consumer_that_leaves_is_stored_for_the_next_at_once(raw, node, name, monkeypatch):
    monkeypatch.setattr(held_sends, "HOLD_MS", 60_000)
    consumer, producer = stalled_consumer(raw, name), raw()
    producer.write(sends(name, range(MANY)))
    wait_until(lambda: held(node), "messages that are held")
    consumer.close()
    wait_until(lambda: not held(node), "that all are stored")
    left = [int(body.split()[0]) for body in node.bodies(name)]
    assert left
    assert left == list(range(MANY - len(left), MANY))


def test_a_queue_that_is_deleted_when_its_consumer_left_does_not_come_back_with_what_was_held(
    raw, node, name, monkeypatch
):
    monkeypatch.setattr(held_sends, "HOLD_MS", 60_000)
    consumer, producer = stalled_consumer(raw, name), raw()
    producer.write(sends(name, range(MANY)))
    wait_until(lambda: held(node), "messages that are held")
    consumer.close()
    queue = Destination.queue(name)
    wait_until(lambda: not node.look(lambda: node.node.broker.queues[str(queue)].consumers), "the consumer is gone")
    node.ask(lambda admin: admin.delete(queue))
    assert not held(node)
    producer.tell("DISCONNECT", {"receipt": "bye"})
    assert producer.hear().headers["receipt-id"] == "bye"
    assert not node.look(lambda: queue in node.node.broker.queues)


def test_a_persistent_message_behind_what_is_held_has_it_stored_and_comes_after_it(raw, node, name, monkeypatch):
    monkeypatch.setattr(held_sends, "HOLD_MS", 60_000)
    consumer, producer = stalled_consumer(raw, name), raw()
    producer.write(sends(name, range(MANY)))
    wait_until(lambda: held(node), "messages that are held")
    producer.write(sends(name, [MANY], "true") + sends(name, [MANY + 1]))
    wait_until(lambda: not held(node) and node.bodies(name), "messages in the store")
    assert numbers(consumer, MANY + 2) == list(range(MANY + 2))


def test_what_is_held_of_a_client_that_disconnects_is_stored_before_it_gets_its_receipts(raw, node, name, monkeypatch):
    monkeypatch.setattr(held_sends, "HOLD_MS", 60_000)
    consumer, producer = stalled_consumer(raw, name), raw()
    producer.write(sends(name, range(MANY)))
    wait_until(lambda: held(node), "messages that are held")
    producer.write(sends(name, [MANY], receipt="done"))
    producer.tell("DISCONNECT", {"receipt": "bye"})
    assert [producer.hear().headers["receipt-id"] for _ in range(2)] == ["done", "bye"]
    assert not held(node)
    assert node.bodies(name)
    assert numbers(consumer, MANY + 1) == list(range(MANY + 1))


@pytest.mark.parametrize("hold_ms", [1, 60_000])
@pytest.mark.parametrize("prefetch", [1, 100])
def test_each_queue_keeps_its_order_whatever_of_it_is_persistent_and_however_its_consumer_reads(
    raw, node, name, monkeypatch, hold_ms, prefetch
):
    monkeypatch.setattr(held_sends, "HOLD_MS", hold_ms)
    chance, queues = random.Random(hold_ms + prefetch), [f"{name}.{each}" for each in "abc"]
    options = {"activemq.prefetchSize": str(prefetch)}
    consumers = {queue: stalled_consumer(raw, queue, **options) for queue in queues}
    wanted, got = {queue: [] for queue in queues}, {queue: [] for queue in queues}
    producer, number = raw(), 0
    for _ in range(30):
        data = b""
        for _ in range(chance.randrange(200)):
            queue = chance.choice(queues)
            data += sends(queue, [number], "true" if queue != queues[0] and chance.random() < 0.2 else "false")
            wanted[queue].append(number)
            number += 1
        producer.write(data)
        queue = chance.choice(queues)
        waiting = len(wanted[queue]) - len(got[queue])
        got[queue] += numbers(consumers[queue], chance.randrange(waiting + 1))
    for queue in queues:
        got[queue] += numbers(consumers[queue], len(wanted[queue]) - len(got[queue]))
    assert got == wanted
