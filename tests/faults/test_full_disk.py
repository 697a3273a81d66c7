"""Test a full disk of the store: producers get their policy's answer, consumers continue, and it recovers."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import pytest

from brokerapp.stomp.frames import encode
from tests.faults.processes import BrokerProcess
from tests.protocol.clients import RawClient, StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
#: Of the file system, and what follows from it: messages are accepted while 6.4 MiB are free, half of it is reserved.
DISK = 64 * MIB
RESERVE = DISK // 20
BODY = b"x" * 50_000
FAILS = '<systemUsage><systemUsage sendFailIfNoSpace="true"/></systemUsage>'
DISCARDS_AT_ONCE = """
<plugins><redeliveryPlugin fallbackToDeadLetter="true"><redeliveryPolicyMap><redeliveryPolicyMap>
  <defaultEntry><redeliveryPolicy maximumRedeliveries="0"/></defaultEntry>
</redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>
"""


class FullDisk:
    """A file system of its own, which another program fills."""

    def __init__(self, path):
        self.path, self._filler = path, path / "filler"

    @property
    def free(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, but=0):
        """Take all space but so much."""
        with self._filler.open("ab") as filler, suppress(OSError):
            while self.free > but:
                os.write(filler.fileno(), bytes(min(MIB, self.free - but)))

    @property
    def reserved(self):
        """Bytes allocated behind the end of the append-only file."""
        [file] = self.path.glob("store/appendonlydir/*.incr.aof")
        return file.stat().st_blocks * 512 - file.stat().st_size

    def fill_most(self):
        """Take most of it, and wait until the broker has seen that."""
        self.fill(8 * MIB + RESERVE)
        self.wait_for_reserve()

    def wait_for_reserve(self):
        """Another program takes the rest within milliseconds here, which it can't with a disk of a usual size."""
        wait_until(lambda: self.reserved > 0.8 * RESERVE, "the reserve is allocated")

    def clear(self):
        self._filler.unlink()


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "data"  # what the broker logs is elsewhere: it could not say anything on a full disk
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield FullDisk(path)
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture
def broker_with(disk):
    """Starts a broker with this in its configuration, whose store is on the disk."""
    brokers = []

    def start(more=""):
        brokers.append(BrokerProcess(disk.path.parent, more))
        brokers[0].start()
        return brokers[0]

    yield start
    for each in brokers:
        each.end()


def send(client, number):
    client.write(encode("SEND", {"destination": "/queue/q", "persistent": "true", "receipt": str(number)}, BODY))


def send_until_refused(client, patience=3.0):
    """How many messages got their receipts until one got something else, or nothing; and what it got."""
    client.socket.settimeout(patience)
    for number in range(2_000):
        send(client, number)
        try:
            answer = client.hear()
        except TimeoutError:
            return number, None
        if answer.command == "ERROR":
            return number, answer
        assert answer.headers["receipt-id"] == str(number)
    raise AssertionError("the disk did not become full")


def refusal(broker):
    """Why a producer is refused now; "": it is not."""
    late = RawClient(broker.port)
    late.socket.settimeout(30)
    send(late, "late")
    answer = late.hear()
    late.close()
    return answer.headers["message"] if answer.command == "ERROR" else ""


def said(broker, words):
    wait_until(lambda: any(words in line for line in broker.said), f"the log says {words!r}")


def test_on_a_full_disk_a_producer_waits_a_consumer_gets_and_acknowledges_all_and_then_it_goes_on(broker_with, disk):
    broker = broker_with()
    producer, consumer = RawClient(broker.port), StompClient(broker.port)
    for number in range(100):
        send(producer, number)
        producer.hear()
    store = broker.store_process().pid
    disk.fill_most()
    sent, answer = send_until_refused(producer)
    assert (sent > 0, answer) == (True, None)
    disk.wait_for_reserve()
    disk.fill()
    assert disk.free < 4096
    said(broker, "the disk of the store is almost full")
    consumer.subscribe("/queue/q", ack="client-individual", prefetch=10)
    for _ in range(100 + sent):
        [message] = consumer.take()
        consumer.ack(message)  # with a receipt
    disk.clear()
    producer.socket.settimeout(30)
    assert producer.hear().headers["receipt-id"] == str(sent)
    assert consumer.take()[0].body == BODY.decode()
    said(broker, "the disk of the store has space again: messages are accepted")
    assert broker.store_process().pid == store
    consumer.leave()
    producer.close()


@pytest.mark.long
def test_a_disk_full_of_large_messages_that_were_consumed_takes_messages_again_within_seconds(broker_with, disk):
    broker = broker_with()
    producer, consumer = RawClient(broker.port), StompClient(broker.port)
    producer.socket.settimeout(3)
    sent = 0
    with suppress(TimeoutError):
        while True:
            producer.write(
                encode("SEND", {"destination": "/queue/q", "persistent": "true", "receipt": str(sent)}, 14 * BODY)
            )
            assert producer.hear().headers["receipt-id"] == str(sent)
            sent += 1
            assert sent < 200, "the disk did not become full"
    said(broker, "the disk of the store is almost full")
    consumer.subscribe("/queue/q", ack="client-individual", prefetch=10)
    for message in (consumer.take()[0] for _ in range(sent)):
        consumer.ack(message)
    producer.socket.settimeout(30)
    assert producer.hear().headers["receipt-id"] == str(sent)
    said(broker, "the disk of the store has space again: messages are accepted")


def test_on_a_full_disk_a_producer_whose_policy_says_so_gets_an_error_with_the_reason(broker_with, disk):
    broker = broker_with(FAILS)
    disk.fill_most()
    producer = RawClient(broker.port)
    _, answer = send_until_refused(producer, patience=30)
    assert "the disk of the store is almost full" in answer.headers["message"]


def test_without_space_for_acknowledgements_producers_are_answered_and_the_store_lives(broker_with, disk):
    broker = broker_with(FAILS + DISCARDS_AT_ONCE)
    producer, consumer = RawClient(broker.port), RawClient(broker.port)
    for number in range(150):
        send(producer, number)
        producer.hear()
    store = broker.store_process().pid
    disk.fill_most()
    send_until_refused(producer, patience=30)
    disk.wait_for_reserve()
    disk.fill()
    # The broker is to see it before a commit comes that is larger than the reserve of so small a disk.
    wait_until(lambda: "0.0 MiB free" in refusal(broker), "the broker sees it")
    consumer.write(encode("SUBSCRIBE", {"destination": "/queue/q", "id": "1", "ack": "client-individual"}, b""))
    rejected = 0
    consumer.socket.settimeout(5)
    with suppress(TimeoutError):
        while rejected < 150:  # each is appended once more, as a dead letter
            message = consumer.hear()
            if message.command == "MESSAGE":
                headers = {"id": message.headers["ack"], "receipt": str(rejected)}
                consumer.write(encode("NACK", headers, b""))
                rejected += 1
    said(broker, "acknowledgements can't be stored either")
    assert "acknowledgements can't be stored" in refusal(broker)
    assert broker.store_process().pid == store
    disk.clear()
    wait_until(lambda: broker.depths("ActiveMQ.DLQ").get("ActiveMQ.DLQ", 0) >= rejected, "what was rejected is stored")
    assert broker.store_process().pid == store


@pytest.mark.long
def test_a_disk_full_of_what_was_acknowledged_is_emptied_without_help(broker_with, disk):
    broker = broker_with()
    producer, consumer = RawClient(broker.port), StompClient(broker.port)
    sent, _ = send_until_refused(producer)
    assert sent * len(BODY) > DISK / 2
    consumer.subscribe("/queue/q", ack="client", prefetch=sent)
    consumer.ack(consumer.take(sent)[-1])
    producer.socket.settimeout(30)
    assert producer.hear().headers["receipt-id"] == str(sent)
    said(broker, "it is rewritten")
    consumer.leave()
