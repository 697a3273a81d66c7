"""Test the expectations of ActiveMQ's own STOMP tests that no other module covers."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress

import pytest

from brokerapp.model.destination import Destination
from tests.protocol.clients import RawClient, StompClient
from tests.waiting import wait_until

VERSIONS = ("1.0", "1.1", "1.2")


def ack_of(version: str, message) -> dict[str, str]:
    """The headers with which this version names a message."""
    if version == "1.2":
        return {"id": message.headers["ack"]}
    named = {"message-id": message.headers["message-id"]}
    return named if version == "1.0" else {**named, "subscription": message.headers["subscription"]}


def settle(client: RawClient, version: str, command: str, message, **headers: str) -> None:
    """ACK or NACK, and wait until it is done."""
    client.tell(command, {**ack_of(version, message), **headers, "receipt": f"{command}-done"})
    answer = client.hear()
    assert (answer.command, answer.headers["receipt-id"]) == ("RECEIPT", f"{command}-done"), answer


def subscribe(client: RawClient, destination: str, ack: str = "client", id: str = "1", **headers: str) -> None:
    client.tell("SUBSCRIBE", {"destination": destination, "id": id, "ack": ack, **headers})


def told(client: RawClient, command: str, **headers: str) -> None:
    """Send a frame, and wait for its receipt."""
    client.tell(command, {**headers, "receipt": "told"})
    assert client.hear().headers["receipt-id"] == "told"


# -- sending and receiving


@pytest.mark.scenario("ST-02", "ST-07")
@pytest.mark.parametrize("version", VERSIONS)
def test_standard_headers_arrive_as_they_were_sent_and_the_time_is_now(raw, name, version):
    client = raw(version=version)
    subscribe(client, f"/queue/{name}", "auto")
    sent = {"correlation-id": "c1", "priority": "3", "type": "t345", "custom": "value", "reply-to": "/queue/answers"}
    client.tell("SEND", {"destination": f"/queue/{name}", **sent}, b"Hello")
    message = client.hear()
    assert message.body == b"Hello"
    assert sent.items() <= message.headers.items()
    assert abs(int(message.headers["timestamp"]) - time.time() * 1000) < 60_000
    assert message.headers["expires"] == "0"


@pytest.mark.scenario("ST-07")
def test_headers_under_their_jms_names_set_those_of_stomp(raw, name):
    client = raw()
    subscribe(client, f"/queue/{name}", "auto")
    sent = {"JMSCorrelationID": "c", "JMSType": "t", "JMSPriority": "7", "JMSTimestamp": "1000", "JMSDeliveryMode": "2",
            "JMSXDeliveryCount": "5", "JMSRedelivered": "true"}  # fmt: skip
    client.tell("SEND", {"destination": f"/queue/{name}", **sent})
    headers = client.hear().headers
    expected = {"correlation-id": "c", "type": "t", "priority": "7", "timestamp": "1000", "persistent": "true"}
    assert expected.items() <= headers.items()
    assert not [name for name in headers if name.startswith("JMS")]


@pytest.mark.scenario("ST-11")
def test_the_receipt_of_a_subscription_comes_before_its_first_message(node, name):
    for round in range(20):
        client = RawClient(node.port)
        told(client, "SEND", destination=f"/queue/{name}.{round}")
        client.close()
        client = RawClient(node.port)
        subscribe(client, f"/queue/{name}.{round}", "auto", receipt="subscribed")
        assert [client.hear().command for _ in range(2)] == ["RECEIPT", "MESSAGE"]
        client.close()


@pytest.mark.scenario("ST-14")
def test_messages_are_in_order_across_a_pause(raw, name):
    producer, consumer = raw(), raw()
    subscribe(consumer, f"/queue/{name}", "auto")
    for start in (0, 10):
        for number in range(start, start + 10):
            producer.tell("SEND", {"destination": f"/queue/{name}"}, str(number).encode())
        assert [int(consumer.hear().body) for _ in range(10)] == list(range(start, start + 10))


@pytest.mark.scenario("ST-16")
def test_a_nonsense_content_length_on_an_ack_is_passed_over(raw, node, name):
    client = raw()
    subscribe(client, f"/queue/{name}")
    client.tell("SEND", {"destination": f"/queue/{name}"}, b"x")
    settle(client, "1.2", "ACK", client.hear(), **{"content-length": "8511"})
    assert node.numbers(Destination.queue(name)).DequeueCount == 1


@pytest.mark.scenario("ST-17")
def test_after_unsubscribing_by_destination_nothing_more_comes_in_1_0(raw, name):
    client = raw(version="1.0")
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "ack": "auto"})
    client.tell("SEND", {"destination": f"/queue/{name}"}, b"first")
    message = client.hear()
    assert message.body == b"first"
    assert "subscription" not in message.headers
    told(client, "UNSUBSCRIBE", destination=f"/queue/{name}")
    told(client, "SEND", destination=f"/queue/{name}")
    told(client, "BEGIN", transaction="nothing came before this receipt")


@pytest.mark.scenario("ST-35", "ST-38")
@pytest.mark.parametrize("counted", [True, False])
def test_an_empty_body_is_a_message_too(raw, name, counted):
    client = raw()
    told(client, "SEND", destination=f"/queue/{name}", **({"content-length": "0"} if counted else {}))
    subscribe(client, f"/queue/{name}", "auto")
    message = client.hear()
    assert message.body == b""
    assert message.headers.get("content-length") == ("0" if counted else None)


@pytest.mark.scenario("S2-01", "SC-08")
@pytest.mark.parametrize("version", VERSIONS)
def test_frames_as_a_human_types_them_into_telnet(raw, name, version):
    client = raw(version=version)
    client.write(b"\r\n\r\nSUBSCRIBE\r\ndestination:/queue/%b\r\nid:1\r\nack:auto\r\n\r\n\0\r\n" % name.encode())
    client.write(b"SEND\r\ndestination:/queue/%b\r\nprop: kept\r\n\r\nHello\r\nWorld\0\r\n\r\n" % name.encode())
    message = client.hear()
    assert message.body == b"Hello\r\nWorld"
    assert message.headers["prop"] == ("kept" if version == "1.0" else " kept")


@pytest.mark.scenario("ST-22")
@pytest.mark.parametrize(
    ("transformation", "body", "error"),
    [
        ("jms-map-json", b'{"map":{"entry":[{"string":["name","James"]}]}}', False),
        ("jms-json", b'["any", "JSON"]', True),
        ("jms-object-xml", b"Hello World", True),
        ("jms-map-xml", b"<map><entry><string>name</string><string>James</string></entry></map>", False),
        ("jms-map-json", b"this is not JSON", True),
        ("nobody-knows-this", b"plain text", False),
    ],
)
def test_text_with_a_transformation_passes_as_text(raw, name, transformation, body, error):
    client = raw()
    subscribe(client, f"/queue/{name}", "auto", transformation="nobody-knows-this-either")
    client.tell("SEND", {"destination": f"/queue/{name}", "transformation": transformation}, body)
    message = client.hear()
    assert (message.body, message.headers["transformation"]) == (body, transformation)
    assert ("transformation-error" in message.headers) is error
    assert json.loads(body) if transformation.endswith("json") and not error else True


# -- transactions


@pytest.mark.scenario("ST-25")
def test_a_message_of_a_transaction_does_not_name_it(raw, name):
    client = raw()
    subscribe(client, f"/queue/{name}", "auto")
    told(client, "BEGIN", transaction="tx1")
    client.tell("SEND", {"destination": f"/queue/{name}", "transaction": "tx1"}, b"in it")
    client.tell("COMMIT", {"transaction": "tx1"})
    headers = client.hear().headers
    assert "transaction" not in headers
    assert headers["message-id"]


@pytest.mark.scenario("ST-28")
def test_a_transaction_on_one_queue_beside_an_exclusive_consumer_on_another(raw, name):
    client = raw()
    subscribe(client, f"/queue/{name}.a", "client-individual", **{"activemq.exclusive": "true"})
    for _ in range(2):
        told(client, "BEGIN", transaction="t")
        told(client, "SEND", destination=f"/queue/{name}.b", transaction="t")
        told(client, "COMMIT", transaction="t")
        client.tell("SEND", {"destination": f"/queue/{name}.a"}, b"x")
        settle(client, "1.2", "ACK", client.hear())


@pytest.mark.scenario("ST-36", "S2-07")
def test_numbers_of_a_queue_after_acks_in_a_transaction(raw, node, name):
    client = raw()
    for _ in range(2):
        told(client, "SEND", destination=f"/queue/{name}", persistent="true")
    subscribe(client, f"/queue/{name}", "client-individual")
    messages = [client.hear() for _ in range(2)]
    told(client, "BEGIN", transaction="t")
    for message in messages:
        settle(client, "1.2", "ACK", message, transaction="t")
    assert node.numbers(Destination.queue(name)).DequeueCount == 0
    told(client, "COMMIT", transaction="t")
    wait_until(lambda: node.numbers(Destination.queue(name)).DequeueCount == 2, "both acks count")
    numbers = node.numbers(Destination.queue(name))
    assert (numbers.DispatchCount, numbers.QueueSize, numbers.InFlightCount) == (2, 0, 0)


@pytest.mark.scenario("S1-17")
@pytest.mark.parametrize("ack", ["client", "client-individual"])
@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_acks_in_a_transaction_may_come_in_any_order(raw, node, name, version, ack):
    client = raw(version=version)
    for _ in range(10):
        told(client, "SEND", destination=f"/queue/{name}", persistent="true")
    subscribe(client, f"/queue/{name}", ack)
    messages = [client.hear() for _ in range(10)]
    told(client, "BEGIN", transaction="t")
    for message in messages[::2] + messages[1::2] if ack == "client-individual" else [messages[4], messages[9]]:
        settle(client, version, "ACK", message, transaction="t")
    told(client, "COMMIT", transaction="t")
    wait_until(lambda: node.depth(name) == 0, "all are acknowledged")


@pytest.mark.scenario("S2-09")
@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_what_was_acked_in_an_aborted_transaction_may_be_nacked_afterwards(raw, node, name, ack):
    client = raw()
    for _ in range(10):
        told(client, "SEND", destination=f"/queue/{name}", persistent="true")
    subscribe(client, f"/queue/{name}", ack, **{"activemq.prefetchSize": "1"})
    client.tell("BEGIN", {"transaction": "t"})
    messages = []
    for _ in range(10):
        messages.append(client.hear())
        client.tell("ACK", {**ack_of("1.2", messages[-1]), "transaction": "t"})
    told(client, "ABORT", transaction="t")
    assert node.depth(name) == 10
    for message in messages:
        settle(client, "1.2", "NACK", message)
    wait_until(lambda: node.depth(name) == 0, "all have left for the dead-letter queue")


@pytest.mark.scenario("S2-10")
@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_acks_and_nacks_by_turns_empty_the_queue(raw, node, name, ack):
    client = raw()
    for _ in range(20):
        told(client, "SEND", destination=f"/queue/{name}", persistent="true")
    subscribe(client, f"/queue/{name}", ack, **{"activemq.prefetchSize": "1"})
    for number in range(20):
        client.tell("NACK" if number % 2 else "ACK", ack_of("1.2", client.hear()))
    wait_until(lambda: node.depth(name) == 0, "the queue is empty")


# -- coming and going


@pytest.mark.scenario("ST-39")
def test_clients_that_leave_rudely_hold_nothing_up(node, name):
    for _ in range(20):
        client = RawClient(node.port)
        subscribe(client, f"/queue/{name}")
        client.tell("SEND", {"destination": f"/queue/{name}"}, b"x")
        client.tell("DISCONNECT")
        client.close()
    last = RawClient(node.port)
    subscribe(last, f"/queue/{name}", "auto")
    for _ in range(20):
        assert last.hear().body == b"x"
    last.close()


@pytest.mark.scenario("SC-05")
def test_what_one_connection_held_unacknowledged_all_arrives_at_the_next(raw, name):
    count = 2000
    producer, first = raw(), raw()
    for number in range(count):
        producer.tell("SEND", {"destination": f"/queue/{name}"}, str(number).encode())
    told(producer, "BEGIN", transaction="all are sent")
    subscribe(first, f"/queue/{name}")
    for _ in range(count // 2):
        message = first.hear()
        first.tell("ACK", {"id": message.headers["ack"]})
    first.tell("DISCONNECT", {"receipt": "bye"})
    assert first.is_closed()
    second = raw()
    subscribe(second, f"/queue/{name}", "auto")
    assert [int(second.hear().body) for _ in range(count // 2)] == list(range(count // 2, count))


@pytest.mark.scenario("SC-03", "SC-13")
def test_in_loops_of_many_threads_nothing_is_missing(node, name):
    rounds, threads = 50, 8
    missing: list[str] = []

    def loop(number: int) -> None:
        for round in range(rounds):
            client = RawClient(node.port)
            subscribe(client, f"/queue/{name}.{number}", "client-individual")
            client.tell("SEND", {"destination": f"/queue/{name}.{number}"}, str(round).encode())
            message = client.hear()
            settle(client, "1.2", "ACK", message)
            if message.body != str(round).encode():
                missing.append(f"{number}: {round}")
            client.tell("DISCONNECT")
            client.close()

    workers = [threading.Thread(target=loop, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert missing == []
    assert not any(worker.is_alive() for worker in workers)
    assert all(node.depth(f"{name}.{number}") == 0 for number in range(threads))


@pytest.mark.scenario("S1-04")
def test_a_send_after_heart_beats_were_missed_does_not_get_through(node, name):
    client = RawClient(node.port, **{"heart-beat": "200,0"})
    assert client.is_closed()
    with suppress(OSError):
        client.tell("SEND", {"destination": f"/queue/{name}"}, b"too late")
    other = RawClient(node.port)
    told(other, "SEND", destination=f"/queue/{name}")
    assert node.depth(name) == 1


@pytest.mark.scenario("ST-10")
def test_the_receipt_of_a_send_is_not_passed_on(connect, name):
    client: StompClient = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", "x")  # waits for its receipt
    [message] = client.take()
    assert "receipt" not in message.headers
    client.leave()
