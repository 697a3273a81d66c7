"""Test that what a client sends in one write has the outcome that it has message by message, whatever is in it."""

import random

import pytest

from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.conftest import paused_store
from tests.protocol.running_node import node_of
from tests.waiting import wait_until

XML = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="mixed" schedulerSupport="true">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="fails.>" storeLimit="6000" sendFailIfNoSpace="true"/>
    <policyEntry queue="held.>" storeLimit="6000"/>
  </policyEntries></policyMap></destinationPolicy>
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <compositeQueue name="split.*" forwardOnly="true"><forwardTo>
      <filteredDestination selector="colour = 'red'" queue="legs.red"/>
      <filteredDestination selector="colour = 'blue'" queue="legs.blue"/>
      <queue physicalName="legs.all"/>
    </forwardTo></compositeQueue>
    <virtualTopic name="fed.>" prefix="Consumer.*."/>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""
SENT = 150
#: What makes a SEND special: headers that it has, or (None) has not; given its number, the test's name, and chance.
KINDS = {
    "plain": lambda number, name, chance: {},
    "other names": lambda number, name, chance: {f"extra-{number % 3}": "\u00e4\n:", "order": None},
    "not persistent": lambda number, name, chance: {"persistent": None},
    "list": lambda number, name, chance: {"destination": f"/queue/a.{name},/queue/b.{name}"},
    "filtered": lambda number, name, chance: {
        "destination": f"/queue/split.{name}",
        "colour": chance.choice(["red", "blue", "green"]),
    },
    "grouped": lambda number, name, chance: {"JMSXGroupID": f"g{number % 3}"},
    "timed": lambda number, name, chance: {
        "priority": str(number % 12),
        "expires": str(4_000_000_000_000 + number),
        "timestamp": "7",
    },
    "scheduled": lambda number, name, chance: {"AMQ_SCHEDULED_DELAY": "3600000"},
    "in a transaction": lambda number, name, chance: {"transaction": "tx"},
    "full": lambda number, name, chance: {"destination": f"/queue/fails.{name}"},
    "wrong number": lambda number, name, chance: {"expires": "never"},
    "no destination": lambda number, name, chance: {"destination": None},
    "no name": lambda number, name, chance: {"destination": "/queue/ "},
    "no transaction": lambda number, name, chance: {"transaction": "unknown"},
}
WEIGHTS = {"plain": 3, "filtered": 2}


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def frame(kind, number, name, chance):
    """One SEND; what it says is its own."""
    headers = {"destination": f"/queue/{chance.choice('abc')}.{name}", "persistent": "true", "order": f"o:{number}"}
    headers |= {**KINDS[kind](number, name, chance), "receipt": f"r{number}"}
    body = b"%d " % number + b"x" * (1000 if kind == "full" else chance.randrange(300))
    present = {key: value for key, value in headers.items() if value is not None}
    return encode("SEND", present | {"content-length": str(len(body))}, body)


def frames(name):
    """The same for every name, which the queues end in."""
    chance = random.Random(5)
    kinds = chance.choices(list(KINDS), [WEIGHTS.get(kind, 1) for kind in KINDS], k=SENT)
    return [frame(kind, number, name, chance) for number, kind in enumerate(kinds)]


def bodies_in(node, queue):
    """What is in a queue; nothing where there is none."""
    try:
        return node.bodies(queue)
    except DestinationNotFound:
        return []


def outcome(client, node, name, writes):
    """What becomes of these writes: what is in each queue in order, and what the client is told, by receipt."""
    queues = [f"{each}.{name}" for each in ("a", "b", "c", "fails")] + ["legs.red", "legs.blue", "legs.all"]
    before = {queue: len(bodies_in(node, queue)) for queue in queues}
    client.tell("BEGIN", {"transaction": "tx", "receipt": "begun"})
    assert client.hear().headers["receipt-id"] == "begun"
    told = {}
    for data, count in writes:
        client.write(data)
        for answer in (client.hear() for _ in range(count)):
            message = answer.headers.get("message", "").replace(name, "NAME")
            told[answer.headers["receipt-id"]] = answer.command, message
    client.tell("COMMIT", {"transaction": "tx", "receipt": "done"})
    assert client.hear().headers["receipt-id"] == "done"
    kept = {queue.replace(name, "NAME"): bodies_in(node, queue)[before[queue] :] for queue in queues}
    return kept, told


def in_writes(data, count):
    """All at once, in writes that split frames anywhere; the answers come after the last."""
    edges = sorted(random.Random(count).sample(range(1, len(data)), count - 1))
    pieces = [data[start:end] for start, end in zip([0, *edges], [*edges, len(data)], strict=True)]
    return [(piece, 0) for piece in pieces[:-1]] + [(pieces[-1], SENT)]


def test_what_is_sent_in_one_write_has_the_outcome_of_what_is_sent_one_by_one(raw, node, name):
    alone = outcome(raw(), node, f"{name}.alone", [(each, 1) for each in frames(f"{name}.alone")])
    assert {command for command, _ in alone[1].values()} == {"RECEIPT", "ERROR"}
    for count in (1, 2, 7, 40):
        kind = f"{name}.in{count}"
        together = outcome(raw(), node, kind, in_writes(b"".join(frames(kind)), count))
        assert together[1] == alone[1]
        assert together[0] == alone[0]


def test_headers_arrive_as_they_were_sent_whatever_their_order(raw, node, name):
    sender, consumer = raw(), raw()
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "receipt": "s"})
    consumer.hear()
    sent = [
        {"a": "1", "b": "x:y\\z\n"},
        {"b": "2", "a": "\u00e4"},
        {"c": "", "a": "1"},
        {"a": "1", "b": "2", "c": "3"},
    ] * 5
    sender.write(b"".join(encode("SEND", {"destination": f"/queue/{name}", **each}) for each in sent))
    for each in sent:
        heard = consumer.hear().headers
        assert {key: heard.get(key) for key in "abc"} == {key: each.get(key) for key in "abc"}


def test_what_has_room_keeps_its_order_where_a_message_of_the_same_write_has_none(store, raw, node, name):
    sender, consumer, commits = raw(), raw(), node.node.broker.commits

    def send(queue, number):
        return encode("SEND", {"destination": f"/queue/{queue}", "persistent": "true"}, b"%d " % number + b"x" * 1000)

    wait_until(lambda: not node.look(lambda: commits.busy), "nothing is left of former tests")
    with paused_store(store):
        sender.write(b"".join(send(f"held.{name}", number) for number in range(10)))
        wait_until(lambda: node.look(lambda: commits.first._under_way), "the store is to store what has no room")
        for number in range(3):  # in writes of their own, which wait for the store
            sender.write(send(f"held.{name}", 10 + number) * (number < 2) + send(name, number))
            wait_until(
                lambda number=number: node.look(lambda: len(commits.first._units)) == number + 1, "it is submitted"
            )
    for queue, count in ((name, 3), (f"held.{name}", 12)):
        consumer.tell("SUBSCRIBE", {"destination": f"/queue/{queue}", "id": queue})
        assert [int(consumer.hear().body.split()[0]) for _ in range(count)] == list(range(count))


def test_a_queue_that_comes_to_exist_by_a_message_gets_the_later_ones_of_the_same_write(raw, node, name):
    sender, topic = raw(), f"fed.{name}"
    queue = f"Consumer.c.{topic}"

    def send(destination, body, **headers):
        return encode("SEND", {"destination": destination, "persistent": "true", **headers}, body)

    sender.write(send(f"/topic/{topic}", b"0", receipt="before"))
    assert sender.hear().headers["receipt-id"] == "before"
    sender.write(
        send(f"/topic/{topic}", b"1") + send(f"/queue/{queue}", b"2") + send(f"/topic/{topic}", b"3", receipt="after")
    )
    assert sender.hear().headers["receipt-id"] == "after"
    assert node.bodies(queue) == ["2", "3"]


def test_subscribers_of_several_topics_get_what_is_sent_in_one_write_in_the_order_in_which_it_was_sent(
    raw, connect, name
):
    chance, wanted = random.Random(3), {"all": [], "some": [], "slow": [], "one": []}
    subscribers = {each: connect() for each in wanted}
    subscribers["all"].subscribe(f"/topic/{name}.>", ack="auto")
    subscribers["some"].subscribe(f"/topic/{name}.*", ack="auto", selector="colour = 'red'")
    subscribers["slow"].subscribe(f"/topic/{name}.>", ack="client-individual", prefetch=7)
    subscribers["one"].subscribe(f"/topic/{name}.2", ack="auto")
    sent = []
    for number in range(300):
        kind, colour = chance.randrange(6), chance.choice(["red", "blue"])
        destination = f"/topic/{name}.{kind}" if kind < 5 else f"/queue/{name}"
        headers = {"destination": destination, "colour": colour, "persistent": chance.choice(["true", "false"])}
        sent.append(encode("SEND", headers, str(number).encode()))
        for subscriber, gets in (("all", kind < 5), ("slow", kind < 5), ("one", kind == 2)):
            wanted[subscriber] += [str(number)] * gets
        wanted["some"] += [str(number)] * (kind < 5 and colour == "red")
    raw().write(b"".join(sent))
    for subscriber, client in subscribers.items():
        got = []
        while len(got) < len(wanted[subscriber]):
            for message in client.take():
                got.append(message.body)
                if subscriber == "slow":
                    client.ack(message)
        assert got == wanted[subscriber]


def test_subscribers_of_several_topics_get_what_is_sent_in_several_writes_in_the_order_in_which_it_was_sent(
    store, raw, node, name
):
    sender, subscriber, commits = raw(), raw(), node.node.broker.commits
    topics = [f"VirtualTopic.{name}.{number}" for number in range(2)]
    for each in topics:
        subscriber.tell("SUBSCRIBE", {"destination": f"/queue/Consumer.c.{each}", "id": each, "receipt": each})
        subscriber.hear()
        subscriber.tell("UNSUBSCRIBE", {"id": each})
    subscriber.tell("SUBSCRIBE", {"destination": f"/topic/VirtualTopic.{name}.>", "id": "1", "receipt": "s"})
    subscriber.hear()
    wait_until(lambda: not node.look(lambda: commits.busy), "nothing is left of former tests")
    with paused_store(store):
        sender.write(encode("SEND", {"destination": f"/queue/{name}", "persistent": "true"}))
        wait_until(lambda: node.look(lambda: commits.first._under_way), "the store is to store what comes first")
        for count in (1, 2):  # two writes, which the store commits at once
            bodies = range(4 * count - 4, 4 * count)
            sender.write(
                b"".join(encode("SEND", {"destination": f"/topic/{topics[each % 2]}"}, b"%d" % each) for each in bodies)
            )
            wait_until(lambda count=count: node.look(lambda: len(commits.first._units)) == count, "it is submitted")
    assert [int(subscriber.hear().body) for _ in range(8)] == list(range(8))


def test_queues_that_get_other_messages_of_one_commit_count_their_own_bytes(store, raw, node, name):
    both, clients = f"/queue/one.{name},/queue/two.{name}", [raw(), raw()]
    with paused_store(store):  # all that follows the first goes into one commit
        for number, (destination, size) in enumerate([(both, 10), (both, 20), (f"/queue/one.{name}", 400), (both, 30)]):
            headers = {"destination": destination, "receipt": str(number), "content-length": str(size)}
            clients[number % 2].write(encode("SEND", headers, b"x" * size))
    for client in clients:
        assert [client.hear().command for _ in range(2)] == ["RECEIPT", "RECEIPT"]
    one, two = (node.numbers(Destination.queue(f"{each}.{name}")) for each in ("one", "two"))
    assert (one.EnqueueCount, one.EnqueueBytes, one.MinMessageSize, one.MaxMessageSize) == (4, 460, 10, 400)
    assert (two.EnqueueCount, two.EnqueueBytes, two.MinMessageSize, two.MaxMessageSize) == (3, 60, 10, 30)
