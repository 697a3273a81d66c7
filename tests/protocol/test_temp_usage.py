"""Test `tempUsage`: non-persistent messages are blocked at its limit, others are not."""

import json
import queue

import pytest

from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.conftest import paused_store
from tests.protocol.running_node import node_of
from tests.waiting import wait_until

SIZE, ROOM = 1024, 10
LIMIT = SIZE * ROOM
XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="temp">
  <systemUsage><systemUsage><tempUsage><tempUsage limit="{LIMIT}"/></tempUsage></systemUsage></systemUsage>
  <plugins><statisticsBrokerPlugin/></plugins>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def send(name, number, persistent="false"):
    headers = {"destination": f"/queue/{name}", "receipt": str(number), "persistent": persistent}
    return encode("SEND", headers, b"x" * SIZE)


def waiting(node):
    """How many sends wait for room."""
    return node.look(lambda: sum(len(place.row) for place in node.node.broker.flow_control.places.values()))


def numbers_in(answer):
    entries = json.loads(answer.body)["map"]["entry"]
    return {each["string"]: each.get("long", each.get("int")) for each in entries if isinstance(each["string"], str)}


def test_who_sends_more_waits_wherever_to_and_persistent_messages_do_not(raw, connect, node, name):
    producer, other, consumer, count = raw(), raw(), connect(), ROOM + 5
    producer.write(b"".join(send(name, number) for number in range(count)))
    wait_until(lambda: waiting(node), "it waits")
    assert 0 < node.depth(name) < ROOM
    other.write(send(f"{name}.durable", 0, persistent="true"))
    assert other.hear().headers["receipt-id"] == "0"
    held = waiting(node)
    other.write(send(f"{name}.other", 1))
    wait_until(lambda: waiting(node) > held, "it waits too")
    assert node.depth(f"{name}.other") == 0
    consumer.subscribe(f"/queue/{name}")
    assert len(consumer.take(count)) == count
    assert [producer.hear().headers["receipt-id"] for _ in range(count)] == list(map(str, range(count)))
    assert other.hear().headers["receipt-id"] == "1"


def test_the_numbers_of_the_broker_say_how_much_is_used(connect, node, name):
    client = connect()
    client.subscribe("/topic/answers")

    def usages():
        client.send("/queue/ActiveMQ.Statistics.Broker", reply_to="/topic/answers", persistent="true")
        [answer] = client.take()
        return {each: value for each, value in numbers_in(answer).items() if each.startswith(("temp", "store"))}

    before = usages()
    for persistent in ("true", "false"):
        client.send(f"/queue/{name}", "x" * (LIMIT // 4), persistent=persistent)
    after = usages()
    assert (before["tempLimit"], after["tempLimit"]) == (LIMIT, LIMIT)
    assert LIMIT // 4 <= after["tempUsage"] - before["tempUsage"] < LIMIT // 2
    assert after["tempPercentUsage"] == 100 * after["tempUsage"] // LIMIT
    assert after["storeUsage"] - before["storeUsage"] >= LIMIT // 2
    node.ask(lambda admin: admin.purge(Destination.queue(name)))


def hears_nothing(client):
    with pytest.raises(queue.Empty):
        client.messages.get(timeout=0.3)
    return True


def test_a_message_is_given_before_it_is_stored_only_while_there_is_certain_to_be_room(store, raw, connect, node, name):
    producer, consumer, other = raw(), connect(), f"{name}.other"
    consumer.subscribe(f"/queue/{name}", ack="client-individual")
    with paused_store(store):
        producer.write(send(name, 0))
        [early] = consumer.take()
    consumer.ack(early)
    assert producer.hear().headers["receipt-id"] == "0"
    for number in range(1, ROOM * 2 // 3):
        producer.write(send(other, number))
        assert producer.hear().headers["receipt-id"] == str(number)
    with paused_store(store):
        producer.write(send(name, ROOM))
        assert hears_nothing(consumer)
    [late] = consumer.take()
    consumer.ack(late)
    assert producer.hear().headers["receipt-id"] == str(ROOM)
    node.ask(lambda admin: admin.purge(Destination.queue(other)))


def test_a_message_that_finds_no_room_is_not_given_to_a_consumer_before_it_has_some(raw, connect, node, name):
    producer, consumer, count = raw(), connect(), ROOM + 5
    consumer.subscribe(f"/queue/{name}", ack="client-individual")
    for number in range(count):  # one by one, so that each is a unit of its own, which could be given early
        producer.write(send(name, number))
        wait_until(lambda: waiting(node) or node.depth(name) > number, "it is stored or waits")  # noqa: B023
        if waiting(node):
            break
    assert waiting(node)
    given = consumer.take(node.depth(name))
    assert consumer.has_no_more()
    for message in given:
        consumer.ack(message)
    last = consumer.take(1)[0]
    assert "redelivered" not in last.headers
    consumer.ack(last)
    assert consumer.has_no_more()
