"""Test that a queue moves from ActiveMQ to Sluice under traffic: nothing is lost or duplicated."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.faults.processes import BrokerProcess
from tests.interop.activemq_server import ActiveMQ, needs_activemq
from tests.protocol.clients import RawClient
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, needs_activemq]
QUEUE = "/queue/orders"
PATIENCE = 60.0
PACE = 0.005  # seconds between two messages of a producer: this is about what happens, not about how much
BRIDGE = """<networkConnectors>
    <networkConnector name="old" duplex="true"
        uri="static:({uri})?initialReconnectDelay=100&amp;useExponentialBackOff=false"/>
  </networkConnectors>"""
#: What a client meets when its broker ends, or is not there yet.
LOST = (OSError, AssertionError)


class Worker:
    """A client that goes to a broker again whenever it was lost, until it is to stop."""

    def __init__(self, port: int) -> None:
        self.port, self._stopping = port, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                client = RawClient(self.port)
            except LOST:
                time.sleep(0.05)
                continue
            try:
                self.work(client)
            except LOST:
                pass
            finally:
                client.close()

    def work(self, client: RawClient) -> None:
        """As long as the connection holds."""

    def go_to(self, port: int) -> None:
        """To this broker, when what is under way is done."""
        self.port = port

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE)


class Producer(Worker):
    """Sends numbers, each when the one before was confirmed."""

    def __init__(self, name: str, port: int) -> None:
        self.name, self.number = name, 0
        self.sent: list[str] = []  #: and confirmed
        self.in_doubt: set[str] = set()  #: sent when the broker was lost
        super().__init__(port)

    def work(self, client: RawClient) -> None:
        port = self.port
        while self.port == port and not self._stopping.is_set():
            time.sleep(PACE)
            self.number += 1
            body = f"{self.name}{self.number}"
            self.in_doubt.add(body)
            client.tell("SEND", {"destination": QUEUE, "persistent": "true", "receipt": body}, body.encode())
            assert client.hear().command == "RECEIPT"
            self.in_doubt.discard(body)
            self.sent.append(body)


class Consumer(Worker):
    """Notes what it gets, and acknowledges each."""

    def __init__(self, port: int, got: list[tuple[str, bool]]) -> None:
        self._got = got
        super().__init__(port)

    def work(self, client: RawClient) -> None:
        client.tell("SUBSCRIBE", {"id": "s", "destination": QUEUE, "ack": "client-individual"})
        client.socket.settimeout(0.1)
        while not self._stopping.is_set():
            try:
                message = client.hear()
            except TimeoutError:
                continue
            self._got.append((message.body.decode(), "redelivered" in message.headers))
            client.tell("ACK", {"id": message.headers["ack"]})
        client.socket.settimeout(PATIENCE)
        client.tell("DISCONNECT", {"receipt": "left"})
        while client.hear().command != "RECEIPT":
            pass  # nobody saw it: it goes back


@pytest.fixture
def old(tmp_path) -> Iterator[ActiveMQ]:
    running = ActiveMQ(tmp_path / "activemq")
    running.folder.mkdir()
    running.plain("old")
    running.start()
    yield running
    running.stop()


@pytest.fixture(params=[pytest.param("stomp", marks=pytest.mark.long), "tcp"], ids=["STOMP", "OpenWire"])
def new(tmp_path, old, request) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path, BRIDGE.format(uri=old.uri(request.param)))
    yield process
    process.end()


def test_consumers_move_first_then_producers_and_either_broker_may_be_killed_meanwhile(old, new):
    got: list[tuple[str, bool]] = []
    producers = [Producer(name, old.port) for name in "ab"]
    workers: list[Worker] = [*producers, consumer := Consumer(old.port, got)]

    def wait_for_more(count: int) -> None:
        enough = len(got) + count
        wait_until(lambda: len(got) >= enough, f"{count} more messages", PATIENCE)

    try:
        wait_for_more(50)
        new.start()
        workers += [moved := Consumer(new.port, got), Consumer(new.port, got)]
        consumer.stop()
        wait_for_more(50)
        old.kill()
        old.start()
        wait_for_more(50)
        producers[0].go_to(new.port)
        wait_for_more(50)
        new.kill()
        new.start()
        wait_for_more(50)
        producers[1].go_to(new.port)
        wait_for_more(50)
        for each in producers:
            each.stop()
        sent = {body for each in producers for body in each.sent}
        wait_until(lambda: sent <= {body for body, _ in got}, "all that was confirmed", PATIENCE)
        moved.stop()
    finally:
        for each in workers:
            each.stop()
    assert {body for body, _ in got} <= sent | {body for each in producers for body in each.in_doubt}
    first = Counter(body for body, again in got if not again)
    assert [body for body, times in first.items() if times > 1] == []
