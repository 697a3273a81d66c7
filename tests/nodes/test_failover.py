"""Test clients with a list of addresses while nodes restart under load: nothing is lost."""

import threading
import time

import pytest
import stomp

from tests.nodes.conftest import several_nodes
from tests.waiting import wait_until

#: Messages that are sent at least, and how many restarts there are meanwhile.
MESSAGES, RESTARTS = 150, 2
#: What stomp.py raises when a connection breaks.
BROKEN = (stomp.exception.StompException, OSError)


class Worker(stomp.ConnectionListener):
    """A program that connects again, to the next address, when its connection is lost."""

    def __init__(self, ports):
        self._ports, self._lock, self.over = ports, threading.Lock(), False
        self.receipts = set()
        self.connect()

    def connect(self):
        while not self.over:
            hosts = [("127.0.0.1", port) for port in self._ports()]
            self.connection = stomp.Connection12(hosts, reconnect_attempts_max=len(hosts), reconnect_sleep_initial=0.01)
            self.connection.set_listener("worker", self)
            try:
                self.connection.connect(wait=True)
                self.connected()
                return
            except BROKEN:
                time.sleep(0.05)

    def connected(self):
        """Nothing more to do."""

    def on_receipt(self, frame):
        self.receipts.add(frame.headers["receipt-id"])

    def end(self):
        self.over = True
        if self.connection.is_connected():
            self.connection.disconnect()


class Producer(Worker):
    """Sends each message until it has a receipt for it."""

    def send(self, queue, number):
        while not self.over:
            receipt = f"{number} {time.monotonic()}"
            try:
                headers = {"persistent": "true", "receipt": receipt}
                self.connection.send(f"/queue/{queue}", str(number), headers=headers)
                deadline = time.monotonic() + 5
                while receipt not in self.receipts and self.connection.is_connected() and time.monotonic() < deadline:
                    time.sleep(0.001)
                if receipt in self.receipts:
                    return
            except BROKEN:
                pass
            if not self.connection.is_connected():
                self.connect()


class Consumer(Worker):
    """Acknowledges what it gets."""

    def __init__(self, ports, queue):
        self.queue, self.got, self.lost = queue, [], threading.Event()
        super().__init__(ports)

    def connected(self):
        self.connection.subscribe(f"/queue/{self.queue}", "s", "client-individual")

    def on_message(self, frame):
        self.got.append((int(frame.body), "redelivered" in frame.headers))
        try:
            self.connection.ack(frame.headers["ack"])
        except BROKEN:
            self.lost.set()

    def on_disconnected(self):
        self.lost.set()

    def keep_connected(self):
        while not self.over:
            if self.lost.wait(0.05):
                self.lost.clear()
                if not self.connection.is_connected():
                    self.connect()


@pytest.fixture
def broker(redis_url):
    with several_nodes(redis_url, "a", "b") as several:
        yield several


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_restarting_node_after_node_under_load_loses_nothing(broker, name, ending):
    def ports():
        return [node.port for node in list(broker.nodes.values())]

    queue, sent, enough = f"{name}", [], threading.Event()
    producer, consumer = Producer(ports), Consumer(ports, queue)
    keeper = threading.Thread(target=consumer.keep_connected)

    def produce():
        number = 0
        while number < MESSAGES or not enough.is_set():
            producer.send(queue, number)
            sent.append(number)
            number += 1

    load = threading.Thread(target=produce)
    keeper.start()
    load.start()
    try:
        for each in list("ab")[:RESTARTS]:
            so_far = len(sent)
            wait_until(lambda so_far=so_far: len(sent) > so_far + 20, "there is load")
            getattr(broker, ending)(each)
            broker.start(each)
        enough.set()
        load.join(60)
        assert not load.is_alive()
        wait_until(lambda: {number for number, _ in consumer.got} >= set(sent), "all is consumed", 30)
        wait_until(lambda: broker.depth(queue) == 0, "all is acknowledged", 30)
    finally:
        enough.set()
        producer.over = True
        consumer.end()
        producer.end()
        load.join()
        keeper.join()
    seen = set()
    for number, flagged in consumer.got:
        assert number not in seen or flagged or ending == "crash", f"{number} came again without a flag"
        seen.add(number)
