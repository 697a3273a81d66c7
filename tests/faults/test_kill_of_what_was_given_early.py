"""Test kill -9 while consumers have messages that are not committed yet: only confirmed ones are kept."""

import contextlib
import os
import signal
import time

import pytest

from tests.protocol.clients import StompClient
from tests.protocol.running_node import named

pytestmark = pytest.mark.slow


class Given:
    """A queue whose store stands still: its consumer has `given`, and acknowledged the first of it."""

    def __init__(self, broker, queue):
        self.sender, self.consumer = StompClient(broker.port), StompClient(broker.port)
        self.sender.send(queue, "stored", persistent="true")
        self.consumer.subscribe(queue, ack="client-individual")
        self.stored = self.consumer.take()[0]
        os.kill(broker.store_process().pid, signal.SIGSTOP)
        self.receipts = []
        for body in "abc":
            headers = {"persistent": "true"}
            self.receipts.append(self.sender._with_receipt(headers, True))
            self.sender.connection.send(queue, body, headers=headers)
        self.given = self.consumer.take(3)
        self.consumer.ack(self.given[0], wait=False)
        assert not any(self.is_confirmed(each, 0) for each in self.receipts)

    def is_confirmed(self, receipt, patience=30):
        return self.sender._receipts[receipt].wait(patience)

    def leave(self):
        for each in (self.sender, self.consumer):
            with contextlib.suppress(AssertionError):
                each.connection.disconnect()


def left(broker, queue, count):
    """What is still there, with what is flagged of it."""
    client = StompClient(broker.port)
    client.subscribe(queue)
    found = client.take(count)
    assert client.has_no_more()
    client.leave()
    return named(found), [each.body for each in found if each.headers.get("redelivered") == "true"]


def test_after_kill_9_of_the_node_only_what_was_confirmed_is_there_and_flagged(broker):
    early = Given(broker, "/queue/early.node")
    store = broker.store_process()
    broker.kill()
    with contextlib.suppress(ProcessLookupError):
        os.kill(store.pid, signal.SIGCONT)
    early.leave()
    broker.start()
    bodies, flagged = left(broker, "/queue/early.node", broker.depths("early.node")["early.node"])
    assert bodies[0] == "stored"
    assert "abc".startswith("".join(bodies[1:]))  # the store may have been told of some
    assert flagged == bodies


def test_after_kill_9_of_the_store_what_was_given_early_is_stored_confirmed_and_once_there(broker):
    early = Given(broker, "/queue/early.store")
    broker.kill_store()
    assert all(early.is_confirmed(each) for each in early.receipts)
    early.consumer.ack(early.given[1])
    early.consumer.break_off()
    assert left(broker, "/queue/early.store", 2) == (["stored", "c"], ["stored", "c"])
    early.leave()


def test_after_kill_9_of_the_node_either_all_queues_of_a_virtual_topic_have_a_message_or_none(broker):
    queues = [f"Consumer.{each}.VirtualTopic.early" for each in "pq"]
    consumers = [StompClient(broker.port) for _ in queues]
    for client, each in zip(consumers, queues, strict=True):
        client.subscribe(f"/queue/{each}", ack="client-individual")
    sender, store = StompClient(broker.port), broker.store_process()
    os.kill(store.pid, signal.SIGSTOP)
    sender.connection.send("/topic/VirtualTopic.early", "a", headers={"persistent": "true"})
    time.sleep(0.5)  # in which it would come
    assert all(client.has_no_more() for client in consumers)
    broker.kill()
    with contextlib.suppress(ProcessLookupError):
        os.kill(store.pid, signal.SIGCONT)
    broker.start()
    assert len(set(broker.depths("Consumer.").values())) == 1
    for each in queues:
        left(broker, f"/queue/{each}", broker.depths(each)[each])
