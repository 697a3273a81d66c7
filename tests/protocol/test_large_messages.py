"""Test messages with large bodies, many of which come in one read."""

import random

import pytest

from brokerapp.connections.client_connection import UNHANDLED_BYTES
from brokerapp.stomp.frames import encode

SIZE = 64 * 1024
#: More than the node reads before it has handled what came first.
SENT = 3 * UNHANDLED_BYTES // SIZE


def bodies_of(name: str) -> list[bytes]:
    """Bodies with all values of a byte, of differing lengths."""
    chance = random.Random(name)
    return [chance.randbytes(SIZE + chance.randrange(-SIZE // 2, SIZE // 2)) for _ in range(SENT)]


def send_frame(destination: str, body: bytes, **headers: str) -> bytes:
    """Return a SEND with a body of a given length."""
    sent = {"destination": destination, "content-length": str(len(body)), "persistent": "true", **headers}
    return encode("SEND", sent, body)


def subscribe(client, destination: str) -> None:
    """Subscribe, and wait until that is done."""
    client.tell("SUBSCRIBE", {"destination": destination, "id": "1", "ack": "client-individual", "receipt": "there"})
    assert client.hear().headers["receipt-id"] == "there"


def consume(client, count: int) -> list[bytes]:
    """Return the bodies of messages that are acknowledged one by one."""
    bodies = []
    for _ in range(count):
        message = client.hear()
        client.tell("ACK", {"id": message.headers["ack"]})
        bodies.append(message.body)
    client.tell("DISCONNECT", {"receipt": "bye"})
    assert client.hear().headers["receipt-id"] == "bye"
    return bodies


@pytest.mark.parametrize("is_consumed_meanwhile", [True, False])
def test_large_bodies_come_out_as_they_went_in_and_in_order(raw, name, node, is_consumed_meanwhile):
    bodies, queue, sender, consumer = bodies_of(name), f"/queue/{name}", raw(), raw()
    if is_consumed_meanwhile:
        subscribe(consumer, queue)
    sender.write(b"".join(send_frame(queue, body, receipt=str(at)) for at, body in enumerate(bodies)))
    assert [sender.hear().headers["receipt-id"] for _ in bodies] == list(map(str, range(SENT)))
    if not is_consumed_meanwhile:
        subscribe(consumer, queue)
    assert consume(consumer, SENT) == bodies
    assert node.depth(name) == 0


def test_what_came_in_long_reads_is_stored_when_its_sender_closes_at_once(raw, name):
    bodies, sender = bodies_of(name), raw()
    sender.write(b"".join(send_frame(f"/queue/{name}", body) for body in bodies))
    sender.close()
    consumer = raw()
    subscribe(consumer, f"/queue/{name}")
    assert consume(consumer, SENT) == bodies


def test_a_large_message_that_is_refused_refuses_itself_only(raw, name):
    bodies, sender = bodies_of(name)[:20], raw()
    frames = [send_frame(f"/queue/{name}", body, receipt=str(at)) for at, body in enumerate(bodies)]
    frames[7] = send_frame("/queue/ ", bodies[7], receipt="7")
    sender.write(b"".join(frames))
    answers = {each.headers["receipt-id"]: each.command for each in (sender.hear() for _ in bodies)}
    assert answers == {str(at): "ERROR" if at == 7 else "RECEIPT" for at in range(20)}
    consumer = raw()
    subscribe(consumer, f"/queue/{name}")
    assert consume(consumer, 19) == bodies[:7] + bodies[8:]
