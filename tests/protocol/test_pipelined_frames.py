"""Test that frames of one read are handled as a batch, with the same outcome as single ones."""

import pytest

from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.running_node import node_of
from tests.waiting import wait_until

SIZE, ROOM, BURST = 1024, 10, 30
BODY = b"x" * SIZE
XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="runs">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="fails.>" storeLimit="{SIZE * ROOM}" sendFailIfNoSpace="true"/>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def burst(destination, numbers, **headers):
    """SENDs that differ in receipt and body only, as one write."""
    return b"".join(
        encode("SEND", {"destination": destination, "receipt": f"r{number}", **headers}, b"%d %b" % (number, BODY))
        for number in numbers
    )


def hear(client, count):
    return [client.hear() for _ in range(count)]


def receipts(frames):
    return [frame.headers["receipt-id"] for frame in frames if frame.command == "RECEIPT"]


@pytest.mark.parametrize("persistent", ["true", "false"])
def test_a_burst_arrives_whole_in_order_and_each_message_is_confirmed(raw, node, name, persistent):
    sender, consumer = raw(), raw()
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "receipt": "s"})
    consumer.hear()
    sender.write(burst(f"/queue/{name}", range(1), persistent=persistent))  # the first shows the way
    sender.hear()
    sender.write(burst(f"/queue/{name}", range(1, 200), persistent=persistent))
    assert receipts(hear(sender, 199)) == [f"r{number}" for number in range(1, 200)]
    heard = hear(consumer, 200)
    assert [int(frame.body.split()[0]) for frame in heard] == list(range(200))
    assert len({frame.headers["message-id"] for frame in heard}) == 200
    wait_until(lambda: node.depth(name) == 0, "all is acknowledged by being sent")
    numbers = node.numbers(Destination.queue(name))
    assert (numbers.EnqueueCount, numbers.DispatchCount, numbers.DequeueCount) == (200, 200, 200)


def test_consumers_in_auto_mode_share_a_burst_in_turn(raw, node, name):
    sender, *consumers = raw(), raw(), raw(), raw()
    for each in consumers:
        each.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "receipt": "s"})
        each.hear()
    sender.write(burst(f"/queue/{name}", range(3)) + burst(f"/queue/{name}", range(3, 93)))
    heard = [[int(frame.body.split()[0]) for frame in hear(each, 31)] for each in consumers]
    assert sorted(number for each in heard for number in each) == list(range(93))
    assert all(each == sorted(each) for each in heard)


def test_a_burst_to_a_virtual_topic_reaches_every_queue_and_the_topics_subscribers(raw, node, name):
    sender, subscriber, queues = raw(), raw(), [raw(), raw()]
    topic = f"VirtualTopic.{name}"
    for number, each in enumerate(queues):
        each.tell("SUBSCRIBE", {"destination": f"/queue/Consumer.{number}.{topic}", "id": "1", "receipt": "s"})
        each.hear()
    subscriber.tell("SUBSCRIBE", {"destination": f"/topic/{topic}", "id": "1", "receipt": "s"})
    subscriber.hear()
    sender.write(burst(f"/topic/{topic}", range(60), persistent="true"))
    for each in (*queues, subscriber):
        assert [int(frame.body.split()[0]) for frame in hear(each, 60)] == list(range(60))
    assert receipts(hear(sender, 60)) == [f"r{number}" for number in range(60)]


def test_of_a_burst_that_does_not_fit_the_first_are_kept_and_each_other_is_refused(raw, node, name):
    queue = f"fails.{name}"
    sender = raw()
    sender.write(burst(f"/queue/{queue}", range(1), persistent="true"))
    sender.hear()
    sender.write(burst(f"/queue/{queue}", range(1, BURST), persistent="true"))
    answers = hear(sender, BURST - 1)
    kept = receipts(answers)
    refused = [frame.headers["receipt-id"] for frame in answers if frame.command == "ERROR"]
    assert 0 < len(kept) < ROOM
    assert kept + refused == [f"r{number}" for number in range(1, BURST)]
    assert [body.split()[0] for body in node.bodies(queue)] == [str(number) for number in range(len(kept) + 1)]


def test_acks_of_several_subscriptions_in_one_write_settle_what_they_name_and_a_wrong_one_nothing(raw, node, name):
    client = raw()
    for id in ("a", "b"):
        headers = {"destination": f"/queue/{name}.{id}", "id": id, "ack": "client-individual", "receipt": "s"}
        client.tell("SUBSCRIBE", headers)
        client.write(burst(f"/queue/{name}.{id}", range(20), persistent="true"))
    heard = hear(client, 82)
    acks = [frame.headers["ack"] for frame in heard if frame.command == "MESSAGE"]
    assert len(acks) == 40
    mixed = [*acks[:30:2], "9-99", *acks[1:30:2], acks[0]]  # one that never was, one a second time
    client.write(b"".join(encode("ACK", {"id": each}) for each in mixed))
    errors = hear(client, 2)
    assert [frame.command for frame in errors] == ["ERROR", "ERROR"]
    assert ["9-99" in errors[0].headers["message"], acks[0] in errors[1].headers["message"]] == [True, True]
    wait_until(lambda: node.depth(f"{name}.a") + node.depth(f"{name}.b") == 10, "thirty are settled")


def test_acks_with_receipts_in_one_write_are_each_confirmed_when_all_are_settled_and_a_wrong_one_is_refused(
    raw, node, name
):
    client = raw()
    headers = {"destination": f"/queue/{name}.>", "id": "a", "ack": "client-individual", "receipt": "s"}
    client.tell("SUBSCRIBE", headers)
    for queue in ("one", "two"):
        client.write(burst(f"/queue/{name}.{queue}", range(10), persistent="true"))
    acks = [frame.headers["ack"] for frame in hear(client, 41) if frame.command == "MESSAGE"]
    assert len(acks) == 20
    ids = [*acks[:10], "9-99", *acks[10:]]
    client.write(b"".join(encode("ACK", {"id": id, "receipt": f"r{at}"}) for at, id in enumerate(ids)))
    answers = hear(client, 21)
    [refused] = [frame for frame in answers if frame.command == "ERROR"]
    assert refused.headers["receipt-id"] == "r10"
    assert receipts(answers) == [f"r{at}" for at in range(21) if at != 10]
    assert (node.depth(f"{name}.one"), node.depth(f"{name}.two")) == (0, 0)


def test_what_nobody_may_send_is_refused_message_by_message(raw, node, name):
    client = raw()
    client.write(burst("/queue/ ", range(3)))
    answers = hear(client, 3)
    assert [frame.command for frame in answers] == ["ERROR"] * 3
    assert [frame.headers["receipt-id"] for frame in answers] == ["r0", "r1", "r2"]


#: What is said of eight messages, by their places: some of it a second time, or of none.
SAID = [
    ("ACK", 1), ("NACK", 2), ("NACK", 2), ("ACK", 2), ("NACK", 0), ("ACK", 4), ("NACK", None), ("NACK", 5), ("ACK", 5),
    ("NACK", 7), ("ACK", 3),
]  # fmt: skip


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("mode", ["client", "client-individual"])
@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("said", [SAID, [("NACK", 3), ("ACK", 1), ("NACK", 0), ("ACK", 2), ("NACK", 6), ("NACK", 5)]])
def test_acks_and_nacks_of_one_read_do_what_they_do_one_by_one(raw, node, name, version, mode, asks, said):
    def outcome(name, at_once):
        sender, consumer, queue = raw(), raw(version), f"/queue/{name}"
        sender.write(burst(queue, range(8), persistent="true"))
        hear(sender, 8)
        consumer.tell("SUBSCRIBE", {"destination": queue, "id": "s", "ack": mode})
        ids = [frame.headers["ack" if version == "1.2" else "message-id"] for frame in hear(consumer, 8)]
        frames = []
        for number, (command, place) in enumerate(said):
            id = "none" if place is None else ids[place]
            headers = {"id": id} if version == "1.2" else {"message-id": id, "subscription": "s"}
            frames.append(encode(command, headers | ({"receipt": f"r{number}"} if asks else {}), version=version))
        fence = encode("BEGIN", {"transaction": "t"}) + encode("ABORT", {"transaction": "t", "receipt": "end"})
        answers = []
        for part in [b"".join(frames)] if at_once else frames:
            consumer.write(part + fence)
            while (told := consumer.hear()).headers.get("receipt-id") != "end":
                answers.append((told.command, told.headers.get("receipt-id", "")))
        dead, left = node.bodies("ActiveMQ.DLQ"), node.bodies(name)
        sender.tell("SUBSCRIBE", {"destination": "/queue/ActiveMQ.DLQ", "id": "dead"})
        hear(sender, len(dead))
        sender.tell("UNSUBSCRIBE", {"id": "dead", "receipt": "unsubscribed"})
        sender.hear()
        wait_until(lambda: node.depth("ActiveMQ.DLQ") == 0, "the dead letters of this run are gone")
        return sorted(answers), sorted(body.split()[0] for body in dead), [body.split()[0] for body in left]

    assert outcome(f"{name}.at-once", True) == outcome(f"{name}.one-by-one", False)
